//! A wire between a store and its server that breaks at a chosen point.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Where the wire breaks: at exchange `step / 2` from now, before the request is passed on (even) or with its answer in hand
/// (odd).
#[derive(Default)]
pub(crate) struct Fuse {
    armed: Mutex<Option<u32>>,
    exchanges: AtomicU32,
}

impl Fuse {
    /// Arms it.
    pub(crate) fn arm(&self, step: u32) {
        let mut armed = self.armed.lock().expect("a fuse");
        assert_eq!(*armed, None, "the call had fewer exchanges than it was armed for");
        *armed = Some(step);
        self.exchanges.store(0, Ordering::SeqCst);
    }

    /// Whether the wire breaks here; once.
    fn blows(&self, step: u32) -> bool {
        let mut armed = self.armed.lock().expect("a fuse");
        let blows = *armed == Some(step);
        if blows {
            *armed = None;
        }
        blows
    }
}

/// Listens on a free port and connects what arrives with the server. Ends with the runtime.
pub(crate) async fn start(server_port: u16, fuse: Arc<Fuse>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", server_port)).await.expect("the server");
            tokio::spawn(carry(client, server, Arc::clone(&fuse)));
        }
    });
    port
}

/// Carries bytes both ways until one side ends or the fuse blows; then both sides end.
async fn carry(mut client: TcpStream, mut server: TcpStream, fuse: Arc<Fuse>) {
    let (mut request, mut answer) = (vec![0; 65_536], vec![0; 65_536]);
    let mut asking = false;
    let mut exchange = 0;
    loop {
        tokio::select! {
            read = client.read(&mut request) => {
                let Ok(bytes @ 1..) = read else { return };
                // A Sync alone only asks whether the connection lives, and comes or not as time goes by.
                if !asking && request[0] != b'S' {
                    asking = true;
                    exchange = fuse.exchanges.fetch_add(1, Ordering::SeqCst);
                    if fuse.blows(exchange * 2) {
                        return;
                    }
                }
                if server.write_all(&request[..bytes]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut answer) => {
                let Ok(bytes @ 1..) = read else { return };
                if asking && fuse.blows(exchange * 2 + 1) {
                    return;
                }
                asking = false;
                if client.write_all(&answer[..bytes]).await.is_err() {
                    return;
                }
            }
        }
    }
}
