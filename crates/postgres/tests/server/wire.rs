//! A client that speaks the protocol by hand, so that it can stop where no driver stops.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) struct Client {
    socket: TcpStream,
}

impl Client {
    /// Connects as `postgres` (trusted) under this application name.
    pub(crate) async fn connect(url: &str, name: &str) -> Self {
        let (_, address) = url.rsplit_once('@').expect("a url with a user");
        let (address, database) = address.split_once('/').expect("a url with a database");
        let database = database.split('?').next().expect("a database");
        let mut client = Self { socket: TcpStream::connect(address).await.expect("the server") };
        let mut startup = 196_608i32.to_be_bytes().to_vec();
        for text in ["user", "postgres", "database", database, "application_name", name] {
            startup.extend(text.bytes());
            startup.push(0);
        }
        startup.push(0);
        let length = i32::try_from(startup.len() + 4).expect("a short message");
        client.send(&[&length.to_be_bytes(), startup.as_slice()].concat()).await;
        client.until_ready().await;
        client
    }

    /// One simple query, read to its end.
    pub(crate) async fn query(&mut self, text: &str) {
        self.send(&message(b'Q', &[text.as_bytes(), &[0]].concat())).await;
        self.until_ready().await;
    }

    /// Locks with a simple query, then sends a Parse and stops: no Sync follows.
    pub(crate) async fn query_then_parse_without_sync(&mut self, text: &str) {
        self.query(text).await;
        self.send(&message(b'P', b"\0SELECT 1\0\0\0")).await;
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.expect("a message");
    }

    async fn until_ready(&mut self) {
        loop {
            let kind = self.socket.read_u8().await.expect("an answer");
            let length = self.socket.read_u32().await.expect("its length") as usize;
            let mut body = vec![0; length - 4];
            self.socket.read_exact(&mut body).await.expect("its body");
            match kind {
                b'E' => panic!("the server refused: {}", String::from_utf8_lossy(&body)),
                b'Z' => return,
                _ => {}
            }
        }
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(body.len() + 4).expect("a short message");
    [&[kind], length.to_be_bytes().as_slice(), body].concat()
}
