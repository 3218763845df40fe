//! The line of those who wait: first come, first served, with one exception.
//!
//! Who gave a page back because its first event alone was larger than the reservation returns to the front with the exact size;
//! it has had its turn already and would lose it at the back. Several who return keep their own order.

use std::collections::BTreeMap;

/// A place in line, and later the name of the reservation that grew out of it.
///
/// Tickets order like the line itself: the smallest ticket is the front. No ticket is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    // The order of these fields is the rule: all who return stand before all who come.
    entry: Entry,
    number: u64,
}

/// Where somebody joins the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Entry {
    /// Behind those who returned earlier, before everybody else.
    Front,
    /// Behind everybody.
    Back,
}

/// Who waits, in order. Leaving from the middle costs no more than leaving the front.
#[derive(Debug)]
pub(crate) struct Line<W> {
    waiting: BTreeMap<Ticket, W>,
    tickets: u64,
}

impl<W> Line<W> {
    /// An empty line.
    pub(crate) fn new() -> Line<W> {
        Line { waiting: BTreeMap::new(), tickets: 0 }
    }

    /// A ticket for somebody who may not even have to wait.
    pub(crate) fn ticket(&mut self, entry: Entry) -> Ticket {
        self.tickets += 1;
        Ticket { entry, number: self.tickets }
    }

    /// Joins at the place the ticket says.
    pub(crate) fn join(&mut self, ticket: Ticket, who: W) {
        self.waiting.insert(ticket, who);
    }

    /// Leaves the line; nothing if the ticket is not in it.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<W> {
        self.waiting.remove(&ticket)
    }

    /// Who is next.
    pub(crate) fn front(&self) -> Option<(Ticket, &W)> {
        self.waiting.first_key_value().map(|(ticket, who)| (*ticket, who))
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Everybody, front first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ticket, &W)> {
        self.waiting.iter().map(|(ticket, who)| (*ticket, who))
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Line};

    fn check(entries: &[Entry], expected: &[usize]) {
        let mut line = Line::new();
        for (who, entry) in entries.iter().enumerate() {
            let ticket = line.ticket(*entry);
            line.join(ticket, who);
        }
        assert_eq!(line.iter().map(|(_, who)| *who).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn first_come_first_served() {
        check(&[Entry::Back, Entry::Back, Entry::Back], &[0, 1, 2]);
    }

    #[test]
    fn who_returns_stands_before_all_who_came() {
        check(&[Entry::Back, Entry::Back, Entry::Front], &[2, 0, 1]);
    }

    #[test]
    fn those_who_return_keep_their_own_order() {
        check(&[Entry::Back, Entry::Front, Entry::Front], &[1, 2, 0]);
    }

    #[test]
    fn leaving_the_middle_keeps_the_order_of_the_others() {
        let mut line = Line::new();
        let tickets: Vec<_> = (0..3).map(|_| line.ticket(Entry::Back)).collect();
        tickets.iter().enumerate().for_each(|(who, ticket)| line.join(*ticket, who));
        assert_eq!(line.leave(tickets[1]), Some(1));
        assert_eq!(line.leave(tickets[1]), None);
        assert_eq!(line.iter().map(|(_, who)| *who).collect::<Vec<_>>(), [0, 2]);
    }
}
