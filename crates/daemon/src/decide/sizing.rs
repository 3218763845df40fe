//! How large pages, chunks and loads are.

/// What the agent's last pages held; what the next one asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    /// Bytes per event: the larger of the last two pages.
    last: u64,
    before: u64,
}

/// Bytes per event before any page was seen.
const EVENT_BYTES_UNKNOWN: u64 = 512;

/// The least a page asks for: below it the count of pages costs more than their bytes.
const PAGE_BYTES_MIN: u64 = 4 * 1024;

impl Estimate {
    pub(crate) fn new() -> Self {
        Self { last: EVENT_BYTES_UNKNOWN, before: 0 }
    }

    /// Bytes to ask for a page of so many events, a quarter above what such pages held.
    pub(crate) fn page_bytes(&self, events: u64, bytes_max: u64) -> u64 {
        let event = self.last.max(self.before);
        let bytes = events.saturating_mul(event);
        bytes.saturating_add(bytes / 4).clamp(PAGE_BYTES_MIN.min(bytes_max), bytes_max)
    }

    /// A page held this.
    pub(crate) fn held(&mut self, events: u64, bytes: u64) {
        if events > 0 {
            self.before = self.last;
            self.last = bytes.div_ceil(events);
        }
    }
}

/// How the working chunk of one page is shared out, so that all real copies together stay within it.
///
/// Half of it holds the documents in work; beside it there are, at any moment, the encoded part that is being written and the
/// driver's copy of that, or the documents that are being loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Documents in work are written, or the page is cut, from here on.
    pub(crate) soft: u64,
    /// Even in the middle of an event.
    pub(crate) hard: u64,
    /// Encoded bytes written at once.
    pub(crate) write_bytes: u64,
    /// Bytes loaded at once, as far as sizes are known.
    pub(crate) load_bytes: u64,
}

/// Documents written at once: more per statement are slower.
pub(crate) const WRITE_DOCUMENTS: usize = 100;

/// Keys looked at together: bounds the routing of a page, and the statements it takes.
pub(crate) const WINDOW_KEYS: usize = 512;

/// Keys loaded at once while the size of a view's documents is not known.
const KEYS_UNKNOWN: u64 = 32;

impl Chunk {
    /// Shares out so many bytes.
    pub(crate) fn of(bytes: u64) -> Self {
        Self {
            soft: (bytes / 2).max(1),
            hard: (bytes / 8 * 5).max(1),
            write_bytes: (bytes / 8).max(1),
            load_bytes: (bytes / 8).max(1),
        }
    }

    /// The same with more room for documents in work.
    pub(crate) fn grown(self, by: u64) -> Self {
        Self { soft: self.soft.saturating_add(by), hard: self.hard.saturating_add(by), ..self }
    }

    /// How many keys to load at once, given the largest document seen so far (zero for none).
    pub(crate) fn keys(&self, document_bytes_max: u64) -> usize {
        let keys = match document_bytes_max {
            0 => KEYS_UNKNOWN,
            bytes => (self.load_bytes / bytes).max(1),
        };
        usize::try_from(keys).unwrap_or(WINDOW_KEYS).min(WINDOW_KEYS)
    }
}

/// What to do after an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// There is room.
    GoOn,
    /// Commit what is done so far, and go on with another transaction.
    Cut,
    /// Write the documents in work inside the page's transaction.
    Write,
}

/// How the documents in work stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    /// Bytes of the documents in work.
    pub(crate) bytes: u64,
    /// What the next event will add, as far as one can tell.
    pub(crate) next_bytes: u64,
    /// Whether an event has just ended: only there may a page be cut.
    pub(crate) ends_event: bool,
    /// Whether a page's open transaction keeps others waiting, so that it is cut rather than kept open.
    pub(crate) cuts: bool,
    /// Whether the transaction is open.
    pub(crate) open: bool,
}

impl Chunk {
    /// What to do now.
    ///
    /// Where transactions may stay open the documents are written as soon as they fill the chunk. Where they may not the page
    /// is cut between events; only an event that by itself goes beyond the chunk is written in parts, and its transaction
    /// ends with it.
    pub(crate) fn fill(&self, now: Standing) -> Fill {
        let filled = now.bytes > self.soft;
        match (now.cuts, now.ends_event) {
            (false, _) if filled => Fill::Write,
            (true, true) if filled || now.open || now.bytes.saturating_add(now.next_bytes) > self.hard => {
                Fill::Cut
            }
            (true, false) if now.bytes > self.hard => Fill::Write,
            _ => Fill::GoOn,
        }
    }
}

/// What a page reserves: its events as loaded and as decoded, and a chunk.
pub(crate) fn reservation(page_bytes: u64, chunk_bytes: u64) -> u64 {
    page_bytes.saturating_mul(2).saturating_add(chunk_bytes)
}

/// What a page's events may weigh under a reservation that was granted.
pub(crate) fn page_bytes(granted: u64, chunk_bytes: u64) -> u64 {
    (granted.saturating_sub(chunk_bytes) / 2).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn copies_of_a_chunk_fit_the_chunk(bytes in 64u64..(1 << 30)) {
            let chunk = Chunk::of(bytes);
            prop_assert!(chunk.hard + 2 * chunk.write_bytes <= bytes);
            prop_assert!(chunk.hard + 2 * chunk.load_bytes <= bytes);
            prop_assert!(chunk.soft < chunk.hard);
        }

        #[test]
        fn pages_are_cut_only_between_events_and_documents_never_outgrow_the_chunk(
            bytes in 0u64..2_000_000, next_bytes in 0u64..2_000_000,
            ends_event: bool, cuts: bool, open: bool,
        ) {
            let chunk = Chunk::of(1 << 20);
            let fill = chunk.fill(Standing { bytes, next_bytes, ends_event, cuts, open });
            prop_assert!(fill != Fill::Cut || (ends_event && cuts));
            prop_assert!(fill != Fill::GoOn || bytes <= chunk.hard);
            // Nobody is kept waiting over the end of an event.
            if cuts && open && ends_event { prop_assert_eq!(fill, Fill::Cut); }
            // Nothing is written in the middle of a page that could still be cut.
            if cuts && fill == Fill::Write { prop_assert!(!ends_event && bytes > chunk.hard); }
            // No page is cut for nothing.
            if fill == Fill::Cut && !open && next_bytes == 0 { prop_assert!(bytes > chunk.soft); }
        }

        #[test]
        fn a_page_fits_what_was_granted_for_it(page in 1u64..(1 << 30), chunk in 1u64..(1 << 20)) {
            prop_assert_eq!(page_bytes(reservation(page, chunk), chunk), page);
        }

        #[test]
        fn an_ask_follows_what_pages_held_and_stays_below_the_bound(
            pages in prop::collection::vec((1u64..1_000, 1u64..10_000), 1..20), bytes_max in 1u64..(4 << 20),
        ) {
            let mut estimate = Estimate::new();
            for (events, event_bytes) in &pages {
                estimate.held(*events, events * event_bytes);
            }
            let (events, event_bytes) = pages[pages.len() - 1];
            let asked = estimate.page_bytes(events, bytes_max);
            prop_assert!(asked <= bytes_max);
            prop_assert!(asked >= (events * event_bytes).min(bytes_max));
        }
    }

    #[test]
    fn an_empty_page_says_nothing_about_sizes() {
        let mut estimate = Estimate::new();
        estimate.held(10, 100_000);
        estimate.held(0, 0);
        assert_eq!(estimate.page_bytes(1, u64::MAX), 12_500);
    }

    #[test]
    fn large_documents_are_loaded_few_at_a_time() {
        let chunk = Chunk::of(1 << 20);
        assert_eq!(chunk.keys(0), 32);
        assert_eq!(chunk.keys(8 << 10), 16);
        assert_eq!(chunk.keys(100), 512);
        assert_eq!(chunk.keys(10 << 20), 1);
    }
}
