//! The bounded map of documents a member works on.

use std::any::Any;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bellwether_storage::{DocumentKey, DocumentWrite, Encoding};
use bytes::Bytes;
use serde::Serialize;

use crate::{Change, Keys};

use super::kind::Kind;
use super::tap::Taken;
use super::{Cause, Emitted, Refused, Tap, Working};

/// What a held document counts beside its key and content: the map's entry and the numbers in it.
const HELD_OVERHEAD_BYTES: u64 = 96;

/// A document in work.
struct Held<D> {
    document: D,
    /// Whether it exists: stored, or saved by this page.
    exists: bool,
    /// Whether what is stored differs.
    changed: bool,
    bytes: u64,
    /// Applications since it was taken in, and the count at which its size is measured again: 1, 2, 4, 8 …
    applied: u32,
    measure_at: u32,
}

/// The documents of one member that a page is working on, in key order.
pub(crate) struct Documents<K: Kind> {
    held: BTreeMap<DocumentKey, Held<K::Document>>,
    bytes: u64,
    taps: Vec<(usize, Tap)>,
}

impl<K: Kind> Documents<K> {
    pub(crate) fn new(taps: Vec<(usize, Tap)>) -> Self {
        Self { held: BTreeMap::new(), bytes: 0, taps }
    }
}

impl<K: Kind> Working for Documents<K> {
    fn route(&self, input: &dyn Any, keys: &mut Keys) -> Result<(), Refused> {
        guarded(|| K::route(typed::<K>(input), keys))
    }

    fn holds(&self, key: &DocumentKey) -> bool {
        self.held.contains_key(key)
    }

    fn insert(&mut self, key: DocumentKey, body: Option<&[u8]>) -> Result<(), String> {
        let (document, content) = match body {
            None => (K::Document::default(), 0),
            Some(body) => {
                let document = bellwether_events::decode(K::NAME, K::ENCODING, body)
                    .map_err(|error| error.to_string())?;
                (document, body.len() as u64)
            }
        };
        let bytes = key.as_str().len() as u64 + content + HELD_OVERHEAD_BYTES;
        let held =
            Held { document, exists: body.is_some(), changed: false, bytes, applied: 0, measure_at: 1 };
        self.bytes += bytes;
        if let Some(old) = self.held.insert(key, held) {
            self.bytes -= old.bytes;
        }
        Ok(())
    }

    fn apply(
        &mut self,
        key: &DocumentKey,
        input: &dyn Any,
        cause: &Cause<'_>,
        emitted: &mut Vec<Emitted>,
    ) -> Result<(), Refused> {
        let held = self.held.get_mut(key).expect("a document is inserted before it is worked on");
        let taps = &self.taps;
        let (change, taken) = guarded(|| {
            let taken: Vec<_> = taps.iter().map(|(_, tap)| take(tap, held)).collect();
            (K::apply(&mut held.document, key.as_str(), typed::<K>(input)), taken)
        })?;
        match change {
            Change::Keep => {
                if !held.exists {
                    // Nothing is stored, so whatever the code left behind is not there for the next event either.
                    held.document = K::Document::default();
                }
                return Ok(());
            }
            Change::Refuse(reason) => return Err(Refused { class: "apply", reason }),
            Change::Save => held.exists = true,
            Change::Delete => {
                held.exists = false;
                held.document = K::Document::default();
            }
        }
        held.changed = true;
        held.applied += 1;
        if held.applied >= held.measure_at || !held.exists {
            held.measure_at = held.applied.saturating_mul(2);
            let content = match held.exists {
                true => guarded(|| encoded_len(K::ENCODING, &held.document))?
                    .map_err(|reason| Refused { class: "encode", reason })?,
                false => 0,
            };
            let bytes = key.as_str().len() as u64 + content + HELD_OVERHEAD_BYTES;
            self.bytes = self.bytes + bytes - held.bytes;
            held.bytes = bytes;
        }
        guarded(|| {
            for ((to, tap), before) in taps.iter().zip(taken) {
                if let Some(change) = (tap.change)(cause, key.as_str(), before, take(tap, held)) {
                    emitted.push(Emitted { to: *to, change });
                }
            }
        })
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn count(&self) -> usize {
        self.held.len()
    }

    fn drain(&mut self, count_max: usize, bytes_max: u64) -> Result<Vec<DocumentWrite>, String> {
        let mut writes = Vec::new();
        let mut bytes = 0;
        while let Some(entry) = self.held.first_entry() {
            if entry.get().changed
                && (writes.len() >= count_max
                    || (!writes.is_empty() && bytes + entry.get().bytes > bytes_max))
            {
                break;
            }
            let (key, held) = entry.remove_entry();
            self.bytes -= held.bytes;
            if !held.changed {
                continue;
            }
            bytes += held.bytes;
            let body = match held.exists {
                false => None,
                true => {
                    let encoded = guarded(|| bellwether_events::encode(K::NAME, K::ENCODING, &held.document));
                    let encoded =
                        encoded.map_err(|refused| refused.reason)?.map_err(|error| error.to_string())?;
                    Some(Bytes::from(encoded))
                }
            };
            writes.push(DocumentWrite { key, body });
        }
        Ok(writes)
    }
}

fn typed<K: Kind>(input: &dyn Any) -> &K::Input {
    input.downcast_ref::<K::Input>().expect("a member gets inputs of its own source")
}

fn take<D: Any>(tap: &Tap, held: &Held<D>) -> Option<Taken> {
    held.exists.then(|| (tap.take)(&held.document))
}

/// Runs the user's code; a panic in it refuses the event instead of ending the daemon.
fn guarded<T>(code: impl FnOnce() -> T) -> Result<T, Refused> {
    catch_unwind(AssertUnwindSafe(code))
        .map_err(|panic| Refused { class: "panic", reason: format!("panicked: {}", panic_text(panic)) })
}

/// What a panic said.
pub(crate) fn panic_text(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic
            .downcast_ref::<&str>()
            .map_or_else(|| "without a message".to_owned(), |text| (*text).to_owned()),
    }
}

/// Length of the encoded document, without its bytes.
fn encoded_len<T: Serialize>(encoding: Encoding, document: &T) -> Result<u64, String> {
    let mut counter = Counter(0);
    match encoding {
        Encoding::Json => serde_json::to_writer(&mut counter, document).map_err(|error| error.to_string())?,
        _ => rmp_serde::encode::write_named(&mut counter, document).map_err(|error| error.to_string())?,
    }
    Ok(counter.0)
}

/// Counts what is written to it.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
