//! Reading documents back.

use bellwether_events::Tenant;
use bellwether_storage::{Build, Database, DocumentKey, DocumentSet, Error, Result, ViewName};

use crate::Readable;

/// Documents of one statement.
const LIST_MAX: u32 = 1_000;

/// Reads documents of views, on a [`Tenant`]: `tenant.load::<Totals>("all")`.
///
/// What is read is what the last committed page left: never half a page. `Kind` is always inferred.
pub trait ReadViews<Kind> {
    /// The document under a key, `None` where there is none. One round trip, and one more when the view was never used before.
    ///
    /// # Errors
    ///
    /// `Rejected` when the key is not allowed or the tenant is unknown; `Corrupt` when the document does not fit the type:
    /// raise its `VERSION`; `Unavailable` when the database cannot be reached: try again.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    fn load<V: Readable<Kind>>(&self, key: &str) -> impl Future<Output = Result<Option<V>>> + Send;

    /// Up to `limit` documents (1,000 at most) whose key is after `after`, in byte order of the key. Go on after the last key;
    /// an empty answer is the end.
    ///
    /// # Errors
    ///
    /// As [`load`](ReadViews::load).
    ///
    /// # Cancel safety
    ///
    /// Safe.
    fn list<V: Readable<Kind>>(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<(String, V)>>> + Send;
}

impl<Kind> ReadViews<Kind> for Tenant {
    async fn load<V: Readable<Kind>>(&self, key: &str) -> Result<Option<V>> {
        let key = DocumentKey::new(key)?;
        let (database, set) = documents::<V, Kind>(self).await?;
        let found = database.load(set, std::slice::from_ref(&key)).await?;
        found.first().map(|document| decode::<V, Kind>(self, &document.key, &document.body)).transpose()
    }

    async fn list<V: Readable<Kind>>(&self, after: Option<&str>, limit: u32) -> Result<Vec<(String, V)>> {
        let after = after.map(DocumentKey::new).transpose()?;
        let (database, set) = documents::<V, Kind>(self).await?;
        let found = database.list(set, after.as_ref(), limit.min(LIST_MAX)).await?;
        found
            .into_iter()
            .map(|document| {
                let value = decode::<V, Kind>(self, &document.key, &document.body)?;
                Ok((document.key.as_str().to_owned(), value))
            })
            .collect()
    }
}

/// Where a view's documents of this tenant are.
async fn documents<V: Readable<Kind>, Kind>(tenant: &Tenant) -> Result<(&dyn Database, DocumentSet)> {
    let location = tenant.store().directory().locate(tenant.id()).await?;
    let databases = tenant.store().databases();
    let database = databases.get(location.database.0 as usize).ok_or_else(|| {
        Error::corrupt(format!(
            "the directory places tenant {} in database {}, this store has {}",
            tenant.id(),
            location.database,
            databases.len()
        ))
        .fix("open the store and its directory with the same list of databases")
    })?;
    let view = database.ensure_view(&ViewName::new(V::NAME)?, V::VERSION).await?;
    Ok((database.as_ref(), DocumentSet { view, tenant: location.tenant, build: Build::FIRST }))
}

fn decode<V: Readable<Kind>, Kind>(tenant: &Tenant, key: &DocumentKey, body: &[u8]) -> Result<V> {
    bellwether_events::decode(V::NAME, V::ENCODING, body).map_err(|error| {
        Error::corrupt(format!("document {key} of tenant {}: {error}", tenant.id()))
            .fix("raise the view's VERSION when its fields change in a way old documents do not fit")
    })
}
