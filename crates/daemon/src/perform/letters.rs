//! Dead letters: what is kept of an event that a member could not work on.

use bellwether_storage::{DeadLetter, ProgressKey, StoredEvent, Timestamp};

use crate::member::Refused;

/// Bytes of a reason: enough for a message and where it came from, not for a dump.
const REASON_BYTES_MAX: usize = 4 * 1024;

/// What is kept of an event that a member could not work on.
pub(crate) fn letter(key: ProgressKey, member: &str, event: &StoredEvent, refused: &Refused) -> DeadLetter {
    let mut reason = refused.reason.clone();
    let mut end = REASON_BYTES_MAX.min(reason.len());
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason.truncate(end);
    DeadLetter {
        key,
        sequence: event.sequence,
        member: member.to_owned(),
        event_id: event.id,
        event_type: event.event_type.clone(),
        class: refused.class.to_owned(),
        reason,
        at: Timestamp::default(),
    }
}
