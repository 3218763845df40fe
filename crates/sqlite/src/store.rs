//! The store: one file as a database of tenants.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bellwether_storage::{
    Activity, AppendBatch, AppendReceipt, Counters, Database, DeadLetter, Discovery, DiscoveryCursor,
    Document, DocumentKey, DocumentSet, EventLog, FenceOutcome, FenceRequest, HeadLock, Moved, Owner, Page,
    PageQuery, PageStart, PageStyle, Progress, ProgressKey, ProjectionName, ProjectionNo, Projections,
    Result, Row, ServerIdentity, SqlDialect, Statement, StreamId, StreamPage, StreamQuery, StreamVersions,
    TenantEntry, TenantId, TenantNo, Tenants, UnitOfWork, ViewName, ViewNo,
};

use crate::SqliteConfig;
use crate::perform::file::File;
use crate::perform::gate::Gate;
use crate::perform::readers::Readers;
use crate::perform::{
    append, discovery, head_lock, migrate, page, progress, tenants, unit, user_statement, views,
};
use crate::sql;

/// A store in one SQLite file. Cloning it gives another handle to the same connections.
///
/// Several processes may open the same file; they take turns to write through SQLite's own lock.
#[derive(Clone)]
pub struct Sqlite {
    file: Arc<File>,
    gate: Arc<Gate>,
    readers: Arc<Readers>,
    name: String,
}

impl std::fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sqlite").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Sqlite {
    /// Opens the file with the defaults of [`SqliteConfig`]; creates it when it is not there, migrates it when it is older.
    ///
    /// # Errors
    ///
    /// `Rejected` when the file belongs to another application (nothing in it is changed) or to a newer version of this one;
    /// `Unavailable` when it cannot be opened or stays locked; `Unsupported` on a file system without shared memory.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(SqliteConfig::new(path.as_ref())).await
    }

    /// Opens the file with a configuration.
    ///
    /// # Errors
    ///
    /// As [`open`](Sqlite::open); `Rejected` also when the configuration is not valid.
    pub async fn open_with(config: SqliteConfig) -> Result<Self> {
        config.validate()?;
        let name = config.path.display().to_string();
        let file = Arc::new(migrate::open(config).await?);
        Ok(Self { gate: Gate::new(Arc::clone(&file)), readers: Readers::new(Arc::clone(&file)), file, name })
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.file.config().path.clone()
    }

    /// Prepares a text of [`sql_files`](crate::sql_files) against this file without running it.
    ///
    /// `{view}` is replaced by the name of the view's table; create it before with
    /// [`ensure_view`](bellwether_storage::Projections::ensure_view).
    ///
    /// # Errors
    ///
    /// `Rejected` when SQLite does not accept the text.
    pub async fn prepare(&self, text: &str, view: ViewNo) -> Result<()> {
        let mut reader = self.readers.get().await?;
        let outcome = reader.link.prepare(sql::for_view(text, view)).await;
        reader.done();
        outcome
    }
}

#[async_trait]
impl Database for Sqlite {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Option<SqlDialect> {
        Some(SqlDialect::Sqlite)
    }

    fn page_style(&self) -> PageStyle {
        PageStyle::ComputeFirst
    }

    fn pages_max(&self) -> Option<u32> {
        Some(1)
    }

    async fn identity(&self) -> Result<ServerIdentity> {
        let mut reader = self.readers.get().await?;
        let system = reader.link.one(sqlx::query(sql::SERVER_IDENTITY)).await?;
        reader.done();
        Ok(ServerIdentity { system, ..self.file.identity() })
    }

    async fn activity(&self) -> Result<Option<Vec<Activity>>> {
        Ok(None)
    }

    fn counters(&self) -> Counters {
        Counters { statements: self.file.statements(), discovery_reads: self.file.discovery_reads() }
    }

    async fn close(&self) {
        // Readers last: closing the last connection of a file folds its write-ahead log in.
        self.gate.close().await;
        self.readers.close().await;
    }
}

#[async_trait]
impl EventLog for Sqlite {
    async fn append(&self, batch: &AppendBatch) -> Result<AppendReceipt> {
        append::append(&self.file, &self.gate, batch).await
    }

    async fn lock_head(&self, tenant: TenantNo, wait: Duration) -> Result<Box<dyn HeadLock>> {
        head_lock::lock_head(&self.file, &self.gate, tenant, wait).await
    }

    async fn stream_versions(&self, tenant: TenantNo, streams: &[StreamId]) -> Result<StreamVersions> {
        let mut reader = self.readers.get().await?;
        let versions = page::read_versions(&mut reader.link, tenant, streams, self.file.identity()).await?;
        reader.done();
        Ok(versions)
    }

    async fn read_page(&self, query: &PageQuery<'_>) -> Result<Page> {
        let mut reader = self.readers.get().await?;
        let page = page::read_page(&mut reader.link, query, self.file.identity()).await?;
        reader.done();
        Ok(page)
    }

    async fn read_stream(&self, query: &StreamQuery<'_>) -> Result<StreamPage> {
        let mut reader = self.readers.get().await?;
        let page = page::read_stream(&mut reader.link, query, self.file.identity()).await?;
        reader.done();
        Ok(page)
    }
}

#[async_trait]
impl Discovery for Sqlite {
    async fn moved_heads(&self, cursor: Option<&DiscoveryCursor>) -> Result<Moved> {
        let mut reader = self.readers.get().await?;
        self.file.count_discovery_read();
        let moved = discovery::moved_heads(&mut reader.link, cursor, self.file.identity()).await?;
        reader.done();
        Ok(moved)
    }
}

#[async_trait]
impl Tenants for Sqlite {
    async fn ensure_tenant(&self, id: &TenantId) -> Result<TenantEntry> {
        tenants::ensure(&self.file, &self.gate, &self.readers, id).await
    }

    async fn find_tenant(&self, id: &TenantId) -> Result<Option<TenantEntry>> {
        let mut reader = self.readers.get().await?;
        let entry = tenants::find(&mut reader.link, id).await?;
        reader.done();
        Ok(entry)
    }

    async fn list_tenants(&self, after: Option<TenantNo>, limit: u32) -> Result<Vec<TenantEntry>> {
        let mut reader = self.readers.get().await?;
        let entries = tenants::list(&mut reader.link, after, limit).await?;
        reader.done();
        Ok(entries)
    }
}

#[async_trait]
impl Projections for Sqlite {
    async fn ensure_projection(&self, name: &ProjectionName) -> Result<ProjectionNo> {
        views::ensure_projection(&self.file, &self.gate, name).await
    }

    async fn ensure_view(&self, name: &ViewName, version: u32) -> Result<ViewNo> {
        views::ensure_view(&self.file, &self.gate, name, version).await
    }

    async fn fence(&self, owner: Owner, requests: &[FenceRequest]) -> Result<Vec<FenceOutcome>> {
        progress::fence(&self.file, &self.gate, owner, requests).await
    }

    async fn progress(&self, keys: &[ProgressKey]) -> Result<Vec<Option<Progress>>> {
        let mut reader = self.readers.get().await?;
        let rows = progress::read(&mut reader.link, keys).await?;
        reader.done();
        Ok(rows)
    }

    async fn begin(&self, start: &PageStart) -> Result<Box<dyn UnitOfWork>> {
        unit::begin(&self.file, &self.gate, start).await
    }

    async fn load(&self, set: DocumentSet, keys: &[DocumentKey]) -> Result<Vec<Document>> {
        views::check_keys(keys)?;
        let mut reader = self.readers.get().await?;
        let documents = views::load(&mut reader.link, set.view, set.tenant, set.build, keys).await?;
        reader.done();
        Ok(documents)
    }

    async fn list(&self, set: DocumentSet, after: Option<&DocumentKey>, limit: u32) -> Result<Vec<Document>> {
        let mut reader = self.readers.get().await?;
        let documents =
            views::list(&mut reader.link, (set.view, set.tenant, set.build), after, limit).await?;
        reader.done();
        Ok(documents)
    }

    async fn dead_letters(&self, tenant: TenantNo, limit: u32) -> Result<Vec<DeadLetter>> {
        let mut reader = self.readers.get().await?;
        let letters = views::dead_letters(&mut reader.link, tenant, limit).await?;
        reader.done();
        Ok(letters)
    }

    async fn set_up(&self, statements: &[Statement]) -> Result<()> {
        user_statement::set_up(&self.file, &self.gate, statements).await
    }

    async fn query(&self, statement: &Statement) -> Result<Vec<Row>> {
        let mut reader = self.readers.get().await?;
        let rows = user_statement::query(&mut reader.link, statement).await?;
        reader.done();
        Ok(rows)
    }
}
