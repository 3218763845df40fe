//! The hopper of one agent: how much of its own work may be in flight.
//!
//! The load budget bounds a node; the hopper bounds one agent, which may have several pages in flight when it loads ahead of
//! its commits. With nothing in flight there is always room for a page, so a hopper stops nobody for good.

use serde::{Deserialize, Serialize};

/// Settings of the hopper, per agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HopperConfig {
    /// Events of one agent loaded and not yet committed. Default 5,000. Zero is unbounded.
    pub events_max: u64,
    /// Bytes of the same. Default zero: unbounded, since the load budget counts them.
    pub bytes_max: u64,
    /// Events of one page. Default 500: pages of 5,000 are read more slowly than pages of 500.
    pub page_events: u64,
    /// Events of one page while rebuilding. Default 1,000: fewer commits over a long history.
    pub rebuild_page_events: u64,
}

impl Default for HopperConfig {
    fn default() -> HopperConfig {
        HopperConfig { events_max: 5_000, bytes_max: 0, page_events: 500, rebuild_page_events: 1_000 }
    }
}

/// What an agent is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pace {
    /// Following the head.
    Following,
    /// Building anew from the first event.
    Rebuilding,
}

/// What one agent has in flight.
///
/// ```
/// use bellwether_daemon::{Hopper, HopperConfig, Pace};
///
/// let mut hopper = Hopper::new(HopperConfig { events_max: 600, ..HopperConfig::default() });
/// assert_eq!(hopper.next_page(Pace::Following), Some(500));
/// hopper.put(500, 40_000);
/// assert_eq!(hopper.next_page(Pace::Following), Some(100)); // what is left of the 600
/// hopper.put(100, 8_000);
/// assert_eq!(hopper.next_page(Pace::Following), None);      // wait for a commit
/// hopper.take(500, 40_000);
/// assert_eq!(hopper.next_page(Pace::Following), Some(500));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hopper {
    config: HopperConfig,
    events: u64,
    bytes: u64,
}

impl Hopper {
    /// A hopper with nothing in it.
    pub fn new(config: HopperConfig) -> Hopper {
        Hopper { config, events: 0, bytes: 0 }
    }

    /// How many events the next page may hold, at least 1; `None` if it must wait for a commit.
    pub fn next_page(&self, pace: Pace) -> Option<u64> {
        let page = match pace {
            Pace::Following => self.config.page_events,
            Pace::Rebuilding => self.config.rebuild_page_events,
        };
        let room = match self.config.events_max {
            0 => page,
            events_max => page.min(events_max.saturating_sub(self.events)),
        };
        let bytes_full = self.config.bytes_max != 0 && self.bytes >= self.config.bytes_max;
        match (self.events == 0 && self.bytes == 0, room) {
            (true, room) => Some(room.max(1)),
            (false, 0) => None,
            (false, _) if bytes_full => None,
            (false, room) => Some(room),
        }
    }

    /// A page was loaded.
    pub fn put(&mut self, events: u64, bytes: u64) {
        self.events = self.events.saturating_add(events);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// A page was committed or given up: the amounts it was put in with.
    pub fn take(&mut self, events: u64, bytes: u64) {
        self.events = self.events.saturating_sub(events);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Events and bytes in flight.
    pub fn in_flight(&self) -> (u64, u64) {
        (self.events, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Hopper, HopperConfig, Pace};

    fn check(config: HopperConfig, in_flight: (u64, u64), pace: Pace, expected: Option<u64>) {
        let mut hopper = Hopper::new(config);
        hopper.put(in_flight.0, in_flight.1);
        assert_eq!(hopper.next_page(pace), expected, "{config:?} with {in_flight:?} in flight");
    }

    // T7
    #[test]
    fn an_agent_has_at_most_5000_events_in_flight() {
        let mut hopper = Hopper::new(HopperConfig::default());
        let mut pages = Vec::new();
        while let Some(events) = hopper.next_page(Pace::Following) {
            hopper.put(events, events * 100);
            pages.push(events);
        }
        assert_eq!((pages.iter().sum(), pages.len()), (5_000_u64, 10));
    }

    // T7
    #[test]
    fn pages_hold_500_events_and_1000_while_rebuilding() {
        check(HopperConfig::default(), (0, 0), Pace::Following, Some(500));
        check(HopperConfig::default(), (0, 0), Pace::Rebuilding, Some(1_000));
        check(HopperConfig::default(), (4_900, 1), Pace::Rebuilding, Some(100));
    }

    // T7
    #[test]
    fn bytes_stop_the_next_page_where_they_are_bounded() {
        let bounded = HopperConfig { bytes_max: 1_000, ..HopperConfig::default() };
        check(bounded, (1, 999), Pace::Following, Some(500));
        check(bounded, (1, 1_000), Pace::Following, None);
        check(HopperConfig::default(), (1, u64::MAX), Pace::Following, Some(500));
    }

    #[test]
    fn with_nothing_in_flight_a_page_always_passes() {
        let zero_pages = HopperConfig { page_events: 0, ..HopperConfig::default() };
        check(zero_pages, (0, 0), Pace::Following, Some(1));
        check(
            HopperConfig { events_max: 1, bytes_max: 1, ..HopperConfig::default() },
            (0, 0),
            Pace::Following,
            Some(1),
        );
    }

    #[test]
    fn zero_is_unbounded() {
        let unbounded = HopperConfig { events_max: 0, ..HopperConfig::default() };
        check(unbounded, (u64::MAX, 0), Pace::Following, Some(500));
    }
}
