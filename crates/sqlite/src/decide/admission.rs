//! Which appends are acceptable at all, before the file is touched.

use bellwether_storage::{
    AppendBatch, EVENT_BYTES_MAX, EVENTS_PER_APPEND_MAX, Error, HEADERS_BYTES_MAX, NewEvent, Result, Sequence,
};

/// Refuses a batch that names a tenant twice or out of order.
///
/// # Errors
///
/// `Rejected`.
pub(crate) fn check_batch(batch: &AppendBatch) -> Result<()> {
    match batch.tenants.is_sorted_by(|a, b| a.tenant < b.tenant) {
        true => Ok(()),
        false => Err(Error::rejected("the tenants of a batch are not in ascending order")
            .fix("sort and merge its entries")),
    }
}

/// Refuses events that are too many, too large, or have no numbers left after this head.
///
/// # Errors
///
/// `Rejected`, with the figures.
pub(crate) fn check_events(head: Sequence, events: &[NewEvent]) -> Result<()> {
    let count = events.len();
    if count == 0 {
        return Err(Error::rejected("an append without events").fix("leave the tenant out of the batch"));
    }
    if count > EVENTS_PER_APPEND_MAX {
        return Err(Error::rejected(format!(
            "{count} events in one append, at most {EVENTS_PER_APPEND_MAX}"
        ))
        .fix("split the append"));
    }
    if Sequence::MAX.get() - head.get() < count as u64 {
        return Err(Error::rejected(format!(
            "{count} events after sequence {head} exceed the largest number"
        ))
        .fix("the tenant's numbers are used up: copy it into a new one"));
    }
    for event in events {
        for (what, bytes, bytes_max) in
            [("body", event.body.len(), EVENT_BYTES_MAX), ("headers", event.headers.len(), HEADERS_BYTES_MAX)]
        {
            if bytes > bytes_max {
                let stream = event.stream.as_str();
                return Err(Error::rejected(format!(
                    "{what} of an event of stream {stream:?}: {bytes} bytes, at most {bytes_max}"
                ))
                .fix("keep large things elsewhere, with their address in the event"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bellwether_storage::{Encoding, EventType, Place, StreamId, TenantAppend, TenantNo, Version};
    use bytes::Bytes;

    use super::*;

    fn event(body: usize, headers: usize) -> NewEvent {
        NewEvent {
            stream: StreamId::new("s").unwrap(),
            version: Version::new(1),
            id: uuid::Uuid::nil(),
            event_type: EventType::new("t").unwrap(),
            encoding: Encoding::Json,
            body: Bytes::from(vec![0; body]),
            headers: Bytes::from(vec![0; headers]),
        }
    }

    #[test]
    fn limits_are_met_exactly() {
        let check = |head, events: &[NewEvent]| check_events(Sequence::new(head), events).is_ok();
        let last = Sequence::MAX.get();
        assert!(check(last - 1, &[event(EVENT_BYTES_MAX, HEADERS_BYTES_MAX)]));
        assert!(!check(last, &[event(1, 0)]));
        assert!(!check(0, &[]));
        assert!(!check(0, &[event(EVENT_BYTES_MAX + 1, 0)]));
        assert!(!check(0, &[event(0, HEADERS_BYTES_MAX + 1)]));
        assert!(check(0, &vec![event(0, 0); EVENTS_PER_APPEND_MAX]));
        assert!(!check(0, &vec![event(0, 0); EVENTS_PER_APPEND_MAX + 1]));
    }

    #[test]
    fn a_batch_names_each_tenant_once_in_order() {
        let batch = |numbers: &[i32]| AppendBatch {
            tenants: numbers
                .iter()
                .map(|number| TenantAppend {
                    tenant: TenantNo(*number),
                    expected_head: Sequence::ZERO,
                    place: Place(0),
                    events: vec![event(1, 0)],
                })
                .collect(),
            ..AppendBatch::default()
        };
        assert!(check_batch(&batch(&[1, 3, 7])).is_ok());
        assert!(check_batch(&batch(&[])).is_ok());
        assert!(check_batch(&batch(&[3, 3])).is_err());
        assert!(check_batch(&batch(&[3, 1])).is_err());
    }
}
