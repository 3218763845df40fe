//! The unit of work of a page: one streaming transaction.

use async_trait::async_trait;
use bellwether_storage::{
    DeadLetter, Document, DocumentKey, DocumentSet, DocumentWrite, Error, Owner, PageStart, Progress, Result,
    Row, Sequence, Statement, Timestamp, UnitOfWork, ViewNo,
};

use crate::error::nothing_happened;
use crate::fence::bind_keys;
use crate::perform::link::Link;
use crate::projections;
use crate::sql;
use crate::user;
use crate::values::Values;

/// Bytes of one statement that writes documents. A chunk is split: the driver copies a statement twice before it is sent, and
/// those copies must stay small beside the chunk.
const STATEMENT_BYTES_MAX: usize = 256 * 1024;

/// Documents of one statement: chunks of 100 to 500 are the fastest.
const STATEMENT_DOCUMENTS_MAX: usize = 500;

pub(crate) struct PostgresUnit {
    link: Link,
    start: PageStart,
    /// Something failed or was cut short: the transaction may not commit any more.
    gone: bool,
}

impl PostgresUnit {
    /// Begins, locks the progress row and compares: two round trips.
    pub(crate) async fn begin(mut link: Link, start: PageStart) -> Result<Self> {
        link.begin("").await.map_err(nothing_happened)?;
        if let Err(error) = compare(&mut link, &start).await {
            link.roll_back().await;
            return Err(error);
        }
        Ok(Self { link, start, gone: false })
    }

    /// Refuses to go on after a failure. What is begun counts as failed until [`PostgresUnit::went_well`].
    fn go_on(&mut self) -> Result<()> {
        if self.gone {
            return Err(Error::unavailable("this unit of work is gone: something in it failed")
                .fix("begin the page again"));
        }
        self.gone = true;
        Ok(())
    }

    fn went_well<T>(&mut self, answer: Result<T>) -> Result<T> {
        self.gone = answer.is_err();
        answer
    }

    fn set(&self, view: ViewNo) -> DocumentSet {
        DocumentSet { view, tenant: self.start.key.tenant, build: self.start.key.build }
    }

    async fn write_all(&mut self, view: ViewNo, writes: &[DocumentWrite]) -> Result<()> {
        let mut rest = writes;
        let mut largest = 0;
        while !rest.is_empty() {
            let (part, others) = rest.split_at(statement_of(rest));
            largest = largest.max(part.iter().map(DocumentWrite::size).sum());
            self.upsert(view, part).await?;
            self.delete(view, part).await?;
            rest = others;
        }
        if largest > STATEMENT_BYTES_MAX {
            self.link.shrink(largest);
        }
        Ok(())
    }

    async fn upsert(&mut self, view: ViewNo, part: &[DocumentWrite]) -> Result<()> {
        let stored = part.iter().filter_map(|write| Some((write.key.as_str(), write.body.as_deref()?)));
        let (keys, bodies): (Vec<&str>, Vec<&[u8]>) = stored.unzip();
        if !keys.is_empty() {
            let bytes = part.iter().map(DocumentWrite::size).sum::<usize>();
            let values = Values::with_room(bytes + keys.len() * 8 + 256)
                .add(self.start.key.tenant.0)?
                .add(self.start.key.build.0)?
                .add(keys)?
                .add(bodies)?
                .done();
            let text = sql::for_view(sql::DOCUMENTS_UPSERT, view);
            self.link.execute(text, values).await.map_err(nothing_happened)?;
        }
        Ok(())
    }

    async fn delete(&mut self, view: ViewNo, part: &[DocumentWrite]) -> Result<()> {
        let deleted = part.iter().filter(|write| write.body.is_none());
        let keys: Vec<&str> = deleted.map(|write| write.key.as_str()).collect();
        if !keys.is_empty() {
            let values = Values::default()
                .add(self.start.key.tenant.0)?
                .add(self.start.key.build.0)?
                .add(keys)?
                .done();
            let text = sql::for_view(sql::DOCUMENTS_DELETE, view);
            self.link.execute(text, values).await.map_err(nothing_happened)?;
        }
        Ok(())
    }

    /// Everything but the commit.
    async fn close_page(&mut self, to: Sequence, dead_letters: &[DeadLetter]) -> Result<()> {
        if to < self.start.from {
            return Err(Error::rejected(format!("a page from {} cannot end at {to}", self.start.from))
                .fix("end it at or after its start"));
        }
        for part in dead_letters.chunks(STATEMENT_DOCUMENTS_MAX) {
            let values = bind_dead_letters(part)?.done();
            self.link.execute(sql::DEAD_LETTERS_UPSERT, values).await.map_err(nothing_happened)?;
        }
        let PageStart { key, from, generation, owner } = self.start;
        let values = Values::default()
            .add(key.tenant.0)?
            .add(key.projection.0)?
            .add(i64::from(key.version))?
            .add(key.build.0)?
            .add(from.as_i64())?
            .add(generation.0)?
            .add(owner.0)?
            .add(to.as_i64())?
            .done();
        match self.link.execute(sql::PROGRESS_FINISH, values).await.map_err(nothing_happened)? {
            1 => Ok(()),
            _ => Err(Error::fenced("the progress row is no longer what this page began with")
                .fix("position anew through the fence")),
        }
    }
}

/// Locks the progress row and compares it with what the page was read under.
async fn compare(link: &mut Link, start: &PageStart) -> Result<()> {
    let key = start.key;
    let values = Values::default()
        .add(key.tenant.0)?
        .add(key.projection.0)?
        .add(i64::from(key.version))?
        .add(key.build.0)?
        .done();
    let rows = link.rows(sql::PROGRESS_LOCK, values).await.map_err(nothing_happened)?;
    let found = rows.first().map(projections::read_progress).transpose()?.flatten();
    let wanted = Progress { sequence: start.from, generation: start.generation, owner: Some(start.owner) };
    match found {
        Some(found) if found == wanted => Ok(()),
        Some(found) => Err(Error::fenced(format!(
            "the progress row holds sequence {}, generation {} and {}, not sequence {} and generation {} of this owner",
            found.sequence,
            found.generation.0,
            owner_name(found.owner, start.owner),
            wanted.sequence,
            wanted.generation.0
        ))
        .fix("position anew through the fence")),
        None => Err(Error::fenced("there is no such progress row").fix("position through the fence first")),
    }
}

fn owner_name(found: Option<Owner>, own: Owner) -> &'static str {
    match found {
        Some(found) if found == own => "this owner",
        Some(_) => "another owner",
        None => "no owner",
    }
}

fn bind_dead_letters(letters: &[DeadLetter]) -> Result<Values> {
    let texts = |text: fn(&DeadLetter) -> &str| letters.iter().map(text).collect::<Vec<_>>();
    let keys: Vec<_> = letters.iter().map(|letter| letter.key).collect();
    // What the user's code says may hold a NUL, which this database cannot store; losing the letter over it would be worse.
    let printable = |text: fn(&DeadLetter) -> &str| {
        letters.iter().map(|letter| text(letter).replace('\0', "\u{fffd}")).collect::<Vec<_>>()
    };
    let moments =
        letters.iter().map(|letter| (letter.at != Timestamp::default()).then_some(letter.at.as_micros()));
    bind_keys(Values::default(), &keys)?
        .add(letters.iter().map(|letter| letter.sequence.as_i64()).collect::<Vec<_>>())?
        .add(texts(|letter| &letter.member))?
        .add(letters.iter().map(|letter| letter.event_id).collect::<Vec<_>>())?
        .add(texts(|letter| letter.event_type.as_str()))?
        .add(printable(|letter| &letter.class))?
        .add(printable(|letter| &letter.reason))?
        .add(moments.collect::<Vec<_>>())
}

/// How many of these writes go into one statement; at least one.
fn statement_of(writes: &[DocumentWrite]) -> usize {
    let mut bytes = 0;
    let fit = writes.iter().take(STATEMENT_DOCUMENTS_MAX).take_while(|write| {
        bytes += write.size();
        bytes <= STATEMENT_BYTES_MAX
    });
    fit.count().max(1)
}

#[async_trait]
impl UnitOfWork for PostgresUnit {
    async fn load(&mut self, view: ViewNo, keys: &[DocumentKey]) -> Result<Vec<Document>> {
        self.go_on()?;
        let set = self.set(view);
        let found = projections::load(&mut self.link, set, keys).await;
        self.went_well(found)
    }

    async fn write(&mut self, view: ViewNo, writes: Vec<DocumentWrite>) -> Result<()> {
        self.go_on()?;
        let written = self.write_all(view, &writes).await;
        self.went_well(written)
    }

    async fn execute(&mut self, statement: &Statement) -> Result<u64> {
        self.go_on()?;
        let (text, values) = user::prepare(statement)?;
        let changed = self.link.execute(text, values).await.map_err(user::refused);
        self.went_well(changed)
    }

    async fn query(&mut self, statement: &Statement) -> Result<Vec<Row>> {
        self.go_on()?;
        let (text, values) = user::prepare(statement)?;
        let rows = projections::query(&mut self.link, text, values).await;
        self.went_well(rows)
    }

    async fn finish(mut self: Box<Self>, to: Sequence, dead_letters: &[DeadLetter]) -> Result<()> {
        let closed = match self.go_on() {
            Ok(()) => self.close_page(to, dead_letters).await,
            gone => gone,
        };
        match closed {
            Ok(()) => {
                self.link.commit().await?;
                self.link.shrink(usize::MAX);
                Ok(())
            }
            Err(error) => {
                self.link.roll_back().await;
                Err(error)
            }
        }
    }

    async fn roll_back(mut self: Box<Self>) {
        self.link.roll_back().await;
    }
}
