//! From the rows of one page statement to a page, or to the hole they show.

use bellwether_storage::{Error, Result, Sequence, StoredEvent, Version};

/// Sequences one page statement looks at: a page of a rare type must not hold a connection for long (20,000 small events
/// take about 10 ms).
pub(crate) const SEQUENCES_LOOKED_AT_MAX: u64 = 20_000;

/// One row of the page statement.
pub(crate) struct PageRow {
    pub(crate) sequence: u64,
    /// How many events the statement met up to this one, from the start of the range.
    pub(crate) nth: u64,
    /// Whether it is of a type that was asked for.
    pub(crate) wanted: bool,
    pub(crate) size: u64,
    /// The event itself when it is wanted and fits.
    pub(crate) event: Option<StoredEvent>,
}

/// What a page statement was asked for, and the head it found.
pub(crate) struct Asked {
    pub(crate) after: u64,
    /// End of the range looked at; may lie past the head.
    pub(crate) look_to: u64,
    pub(crate) head: u64,
    pub(crate) events_max: u64,
    pub(crate) bytes_max: u64,
}

/// What the rows say.
#[derive(Debug, PartialEq)]
pub(crate) struct Assembled {
    pub(crate) through: Sequence,
    pub(crate) events: Vec<StoredEvent>,
    pub(crate) too_large: Option<(Sequence, u64)>,
}

/// Puts a page together.
///
/// # Errors
///
/// `Corrupt` when an event below the head is missing.
pub(crate) fn assemble(asked: &Asked, rows: Vec<PageRow>) -> Result<Assembled> {
    let reach = asked.head.min(asked.look_to);
    let mut page =
        Assembled { through: number(asked.after)?, events: Vec::with_capacity(rows.len()), too_large: None };
    if reach <= asked.after {
        return Ok(page);
    }
    for row in rows {
        if row.sequence - asked.after != row.nth {
            return Err(hole(asked, page.through.get() + 1, row.sequence - 1));
        }
        match row.event {
            Some(event) => {
                page.through = event.sequence;
                page.events.push(event);
            }
            None if row.wanted => {
                // Found, but it does not fit: everything before it was looked at.
                let too_large = page.events.is_empty() && asked.events_max > 0 && row.size > asked.bytes_max;
                page.too_large = too_large.then_some((number(row.sequence)?, row.size));
                page.through = number(row.sequence - 1)?;
                return Ok(page);
            }
            None => page.through = number(row.sequence)?,
        }
    }
    if page.through.get() < reach {
        return Err(hole(asked, page.through.get() + 1, reach));
    }
    Ok(page)
}

fn hole(asked: &Asked, from: u64, to: u64) -> Error {
    Error::corrupt(format!("an event between {from} and {to} is missing below the head {}", asked.head))
        .fix("stop writing to this tenant and restore it from a backup")
}

fn number(sequence: u64) -> Result<Sequence> {
    i64::try_from(sequence)
        .map_err(|_| Error::corrupt(format!("sequence {sequence} is out of range")))
        .and_then(Sequence::from_i64)
}

/// Checks that the versions of one stream follow each other without a hole.
pub(crate) fn check_versions(
    after: Version,
    last: Version,
    limit: u32,
    events: &[StoredEvent],
) -> Result<()> {
    let mut expected = after;
    for event in events {
        expected = expected.next();
        if event.version != expected {
            return Err(missing(event, expected));
        }
    }
    if events.is_empty() && limit > 0 && after < last {
        return Err(Error::corrupt(format!(
            "version {} is missing below the last version {last}",
            after.next()
        ))
        .fix("stop writing to this tenant and restore it from a backup"));
    }
    Ok(())
}

fn missing(next: &StoredEvent, version: Version) -> Error {
    Error::corrupt(format!("version {version} of stream {:?} is missing", next.stream.as_str()))
        .fix("stop writing to this tenant and restore it from a backup")
}

#[cfg(test)]
mod tests {
    use bellwether_storage::{Encoding, ErrorKind, EventType, StreamId, Timestamp};

    use super::*;

    fn event(sequence: u64) -> StoredEvent {
        StoredEvent {
            sequence: Sequence::new(sequence),
            stream: StreamId::new("s").unwrap(),
            version: Version::new(sequence),
            id: uuid::Uuid::from_u128(u128::from(sequence)),
            event_type: EventType::new("t").unwrap(),
            encoding: Encoding::MessagePack,
            body: bytes::Bytes::new(),
            headers: bytes::Bytes::new(),
            at: Timestamp::default(),
        }
    }

    fn fits(sequence: u64, nth: u64) -> PageRow {
        PageRow { sequence, nth, wanted: true, size: 100, event: Some(event(sequence)) }
    }

    fn left_out(sequence: u64, nth: u64, size: u64) -> PageRow {
        PageRow { sequence, nth, wanted: true, size, event: None }
    }

    fn marker(sequence: u64, nth: u64) -> PageRow {
        PageRow { sequence, nth, wanted: false, size: 100, event: None }
    }

    fn asked(after: u64, look_to: u64, head: u64) -> Asked {
        Asked { after, look_to, head, events_max: 10, bytes_max: 1_000 }
    }

    /// Through which sequence, which events, what was too large.
    fn check(asked: &Asked, rows: Vec<PageRow>, expected: (u64, &[u64], Option<(u64, u64)>)) {
        let page = assemble(asked, rows).unwrap();
        let events: Vec<u64> = page.events.iter().map(|event| event.sequence.get()).collect();
        let too_large = page.too_large.map(|(sequence, size)| (sequence.get(), size));
        assert_eq!((page.through.get(), events.as_slice(), too_large), expected);
    }

    #[test]
    fn a_page_ends_where_its_rows_end() {
        check(&asked(0, 20_000, 2), vec![fits(1, 1), fits(2, 2)], (2, &[1, 2], None));
        check(&asked(5, 20_005, 5), vec![], (5, &[], None));
        check(&asked(9, 20_009, 5), vec![], (9, &[], None));
        check(&asked(4, 6, 100), vec![fits(5, 1), fits(6, 2)], (6, &[5, 6], None));
    }

    #[test]
    fn what_does_not_fit_ends_the_page_before_it() {
        check(&asked(0, 100, 9), vec![fits(1, 1), left_out(2, 2, 950)], (1, &[1], None));
        check(&asked(0, 100, 9), vec![left_out(3, 3, 5_000)], (2, &[], Some((3, 5_000))));
        // The limit of events left it out, not its size.
        check(&asked(0, 100, 9), vec![fits(1, 1), left_out(4, 4, 10)], (3, &[1], None));
    }

    #[test]
    fn a_page_without_a_match_still_gets_on() {
        check(&asked(10, 20_010, 50), vec![marker(50, 40)], (50, &[], None));
        check(&asked(10, 30, 50), vec![marker(30, 20)], (30, &[], None));
        check(&asked(10, 30, 50), vec![fits(12, 2), marker(30, 20)], (30, &[12], None));
    }

    #[test]
    fn a_hole_is_never_skipped() {
        let holes = [
            (asked(0, 100, 3), vec![fits(1, 1), fits(3, 2)]),
            (asked(0, 100, 3), vec![fits(2, 1), fits(3, 2)]),
            (asked(0, 100, 3), vec![fits(1, 1), fits(2, 2)]),
            (asked(0, 100, 3), vec![]),
            (asked(0, 100, 9), vec![fits(2, 2), marker(9, 8)]),
            (asked(0, 100, 9), vec![fits(2, 2), left_out(7, 6, 5_000)]),
        ];
        for (asked, rows) in holes {
            assert_eq!(assemble(&asked, rows).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }

    #[test]
    fn a_missing_version_is_corrupt() {
        let check = |after, last, events: &[StoredEvent]| {
            check_versions(Version::new(after), Version::new(last), 10, events).map_err(|error| error.kind())
        };
        assert_eq!(check(0, 2, &[event(1), event(2)]), Ok(()));
        assert_eq!(check(2, 2, &[]), Ok(()));
        assert_eq!(check(0, 3, &[event(1), event(3)]), Err(ErrorKind::Corrupt));
        assert_eq!(check(1, 3, &[]), Err(ErrorKind::Corrupt));
    }
}
