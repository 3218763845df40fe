//! Every bound of the storage vocabulary, with its reason.

/// Bytes of a tenant id: the length of a DNS label and of a PostgreSQL identifier, so that it fits wherever it is shown.
pub const TENANT_ID_BYTES_MAX: usize = 63;

/// Bytes of a stream id: three such columns must fit a B-tree entry (2,704 bytes in PostgreSQL).
pub const STREAM_ID_BYTES_MAX: usize = 512;

/// Bytes of an event type's name: written with each event.
pub const EVENT_TYPE_BYTES_MAX: usize = 128;

/// Bytes of a document's key: must fit a B-tree entry beside two numbers.
pub const DOCUMENT_KEY_BYTES_MAX: usize = 1024;

/// Bytes of one encoded event: larger things belong in a blob store, with their address in the event. A page must be able to
/// hold at least one event, so this also bounds how far one event can overshoot a byte budget.
pub const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of one event's encoded headers: correlation, causation, user; not content.
pub const HEADERS_BYTES_MAX: usize = 16 * 1024;

/// Events of one append: it is one transaction under one head lock, and other appends of the tenant wait for it.
pub const EVENTS_PER_APPEND_MAX: usize = 10_000;

/// Bytes of one append batch over all its tenants: beyond it a batch gains nothing and delays everybody in it
/// (`protocols.md` §1.2).
pub const BATCH_BYTES_MAX: usize = 256 * 1024;

/// Bytes of one tenant in a shared batch; what is larger goes into a transaction of its own, so that one tenant's import
/// never delays another tenant.
pub const APPENDS_PER_TENANT_AND_BATCH_BYTES_MAX: usize = 64 * 1024;
