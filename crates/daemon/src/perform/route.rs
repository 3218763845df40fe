//! Which documents a page's events and changes go to, a window at a time.

use std::collections::VecDeque;

use bellwether_storage::{DocumentKey, PageStart};

use crate::Keys;
use crate::decide::sizing::WINDOW_KEYS;
use crate::member::{Emitted, Refused, Slot};

use crate::projection::Seat;

use super::work::{Trouble, Work};

/// One application to come: an input, by its place in the window, and the document it goes to.
pub(super) struct Route {
    pub(super) input: usize,
    pub(super) seat: usize,
    pub(super) key: DocumentKey,
}

/// Keys of an event that are not in a window yet.
pub(super) struct Pending {
    pub(super) index: usize,
    pub(super) seat: usize,
    pub(super) keys: Keys,
    pub(super) taken: usize,
}

impl Work<'_> {
    /// The next applications, up to a window of them: routes events as far as needed.
    pub(super) fn window(
        &self,
        pending: &mut VecDeque<Pending>,
        unrouted: &mut usize,
        end: usize,
    ) -> Result<Vec<Route>, Trouble> {
        let mut window = Vec::new();
        while window.len() < WINDOW_KEYS {
            if let Some(next) = pending.front_mut() {
                while next.taken < next.keys.len() && window.len() < WINDOW_KEYS {
                    let key = self.key(next.index, next.seat, next.keys.at(next.taken))?;
                    window.push(Route { input: next.index, seat: next.seat, key });
                    next.taken += 1;
                }
                if next.taken == next.keys.len() {
                    pending.pop_front();
                }
                continue;
            }
            if *unrouted == end {
                break;
            }
            let index = *unrouted;
            *unrouted += 1;
            for &(seat, set) in &self.event_seats {
                let Slot::At(at) = self.loaded.sets[set].slot(index) else { continue };
                if self.skips.contains_key(&(index, seat)) {
                    continue;
                }
                let mut keys = Keys::default();
                self.working[seat]
                    .route(self.loaded.sets[set].event(*at), &mut keys)
                    .map_err(|refused| Trouble::Refused { index, seat, refused })?;
                if !keys.is_empty() {
                    pending.push_back(Pending { index, seat, keys, taken: 0 });
                }
            }
        }
        Ok(window)
    }

    pub(super) fn key(&self, index: usize, seat: usize, key: &str) -> Result<DocumentKey, Trouble> {
        DocumentKey::new(key).map_err(|error| Trouble::Refused {
            index,
            seat,
            refused: Refused { class: "key", reason: error.to_string() },
        })
    }

    /// Lets changes flow on to the members that follow, and on to those that follow them.
    pub(super) async fn flow(
        &mut self,
        seats: &[Seat],
        emitted: Vec<(usize, Emitted)>,
        start: &PageStart,
    ) -> Result<(), Trouble> {
        debug_assert_eq!(seats.len(), self.working.len());
        let mut changes = emitted;
        while !changes.is_empty() {
            let mut next = Vec::new();
            let mut routes = Vec::new();
            for (input, (index, change)) in changes.iter().enumerate() {
                if self.skips.contains_key(&(*index, change.to)) {
                    continue;
                }
                let mut keys = Keys::default();
                self.working[change.to]
                    .route(change.change.as_ref(), &mut keys)
                    .map_err(|refused| Trouble::Refused { index: *index, seat: change.to, refused })?;
                for key in keys.iter() {
                    routes.push(Route { input, seat: change.to, key: self.key(*index, change.to, key)? });
                }
                if routes.len() >= WINDOW_KEYS || input + 1 == changes.len() {
                    self.follow(&routes, &changes, start, &mut next).await?;
                    routes.clear();
                }
            }
            self.follow(&routes, &changes, start, &mut next).await?;
            changes = next;
        }
        Ok(())
    }

    pub(super) async fn follow(
        &mut self,
        routes: &[Route],
        changes: &[(usize, Emitted)],
        start: &PageStart,
        next: &mut Vec<(usize, Emitted)>,
    ) -> Result<(), Trouble> {
        let mut at = 0;
        while at < routes.len() {
            let ready = self.take_in(&routes[at..]).await?;
            for route in &routes[at..at + ready] {
                let (index, change) = &changes[route.input];
                self.apply(*index, route.seat, &route.key, change.change.as_ref(), next)?;
                at += 1;
                if self.bytes() > self.room.chunk.hard {
                    break;
                }
            }
            if self.bytes() > self.room.chunk.hard {
                self.make_room(start).await?;
            }
        }
        Ok(())
    }
}
