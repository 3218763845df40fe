//! Versions of streams the writer knows; the least recently used are forgotten first.

use std::num::NonZeroUsize;

use bellwether_storage::{StreamId, StreamState, TenantNo};
use lru::LruCache;

/// Bounded cache of stream versions.
///
/// An entry belongs to an *era* of its tenant: the time since the writer last learned the tenant's head from somebody else.
/// Starting a new era makes all older entries void without touching them.
#[derive(Debug)]
pub(super) struct Versions {
    entries: LruCache<(TenantNo, StreamId), (u64, StreamState)>,
}

impl Versions {
    pub(super) fn new(entries_max: usize) -> Self {
        Self { entries: LruCache::new(NonZeroUsize::new(entries_max).unwrap_or(NonZeroUsize::MIN)) }
    }

    pub(super) fn get(&mut self, tenant: TenantNo, era: u64, stream: &StreamId) -> Option<StreamState> {
        self.entries.get(&(tenant, stream.clone())).filter(|(of, _)| *of == era).map(|(_, state)| *state)
    }

    /// Remembers a version; returns the tenant and era of the entry that had to go.
    pub(super) fn put(
        &mut self,
        tenant: TenantNo,
        era: u64,
        stream: StreamId,
        state: StreamState,
    ) -> Option<(TenantNo, u64)> {
        let key = (tenant, stream);
        let (gone, (of, _)) = self.entries.push(key.clone(), (era, state))?;
        // An entry that was replaced is not one that was lost.
        (gone != key).then_some((gone.0, of))
    }
}

#[cfg(test)]
mod tests {
    use bellwether_storage::Version;

    use super::*;

    #[test]
    fn a_lost_entry_is_named_and_an_old_era_is_void() {
        let stream = |name: &str| StreamId::new(name).unwrap();
        let state = |version| StreamState { version: Version::new(version), archived: false };
        let mut versions = Versions::new(2);
        assert_eq!(versions.put(TenantNo(1), 7, stream("a"), state(1)), None);
        assert_eq!(versions.put(TenantNo(1), 7, stream("a"), state(2)), None);
        assert_eq!(versions.put(TenantNo(2), 9, stream("b"), state(1)), None);
        assert_eq!(versions.get(TenantNo(1), 7, &stream("a")), Some(state(2)));
        assert_eq!(versions.get(TenantNo(1), 8, &stream("a")), None);
        assert_eq!(versions.put(TenantNo(3), 1, stream("c"), state(1)), Some((TenantNo(2), 9)));
    }
}
