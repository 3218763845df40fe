//! Whose turn it is to write.
//!
//! A file has one writer at a time. Appends and other short writes go before pages, because a caller waits for them; a page
//! that was passed over [`PASSED_OVER_MAX`] times goes next, so that a busy log never starves its projections.

use std::collections::VecDeque;

/// Short writes that may go before a waiting page. Eight commits cost a page some milliseconds; fewer would let a crowd of
/// pages slow every append down.
pub(crate) const PASSED_OVER_MAX: u32 = 8;

/// What somebody wants to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// An append, a fence, a registration: short, and a caller waits for it.
    Short,
    /// A page of a projection.
    Page,
}

/// A place in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(u64);

/// Answer to somebody who wants to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nobody writes: go.
    Go,
    /// Wait until [`Turns::end`] names this ticket.
    Wait(Ticket),
}

/// The line before the one writer. First come, first served within each kind.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    taken: bool,
    short: VecDeque<Ticket>,
    pages: VecDeque<Ticket>,
    passed_over: u32,
    next: u64,
}

impl Turns {
    /// Somebody wants to write.
    pub(crate) fn ask(&mut self, turn: Turn) -> Answer {
        if !self.taken {
            self.taken = true;
            return Answer::Go;
        }
        let ticket = Ticket(self.next);
        self.next += 1;
        match turn {
            Turn::Short => self.short.push_back(ticket),
            Turn::Page => self.pages.push_back(ticket),
        }
        Answer::Wait(ticket)
    }

    /// The writer is done: who goes next. `None` leaves the writer free.
    pub(crate) fn end(&mut self) -> Option<Ticket> {
        let page_is_due = self.passed_over >= PASSED_OVER_MAX || self.short.is_empty();
        let next = if page_is_due && !self.pages.is_empty() {
            self.passed_over = 0;
            self.pages.pop_front()
        } else {
            if !self.pages.is_empty() {
                self.passed_over += 1;
            }
            self.short.pop_front()
        };
        self.taken = next.is_some();
        next
    }

    /// Somebody no longer waits. False when the ticket is not in the line (its turn has come).
    pub(crate) fn withdraw(&mut self, ticket: Ticket) -> bool {
        let waiting = self.short.len() + self.pages.len();
        self.short.retain(|other| *other != ticket);
        self.pages.retain(|other| *other != ticket);
        if self.pages.is_empty() {
            self.passed_over = 0;
        }
        self.short.len() + self.pages.len() < waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(turns: &mut Turns, turn: Turn) -> Ticket {
        match turns.ask(turn) {
            Answer::Wait(ticket) => ticket,
            Answer::Go => panic!("the writer was free"),
        }
    }

    #[test]
    fn a_free_writer_is_taken_at_once_and_only_once() {
        let mut turns = Turns::default();
        assert_eq!(turns.ask(Turn::Page), Answer::Go);
        let second = wait(&mut turns, Turn::Short);
        assert_eq!(turns.end(), Some(second));
        assert_eq!(turns.end(), None);
        assert_eq!(turns.ask(Turn::Short), Answer::Go);
    }

    #[test]
    fn appends_go_before_pages_and_each_kind_in_order() {
        let mut turns = Turns::default();
        turns.ask(Turn::Short);
        let page_1 = wait(&mut turns, Turn::Page);
        let append_1 = wait(&mut turns, Turn::Short);
        let page_2 = wait(&mut turns, Turn::Page);
        let append_2 = wait(&mut turns, Turn::Short);
        let order: Vec<_> = std::iter::from_fn(|| turns.end()).collect();
        assert_eq!(order, [append_1, append_2, page_1, page_2]);
    }

    #[test]
    fn endless_appends_never_starve_a_page() {
        let mut turns = Turns::default();
        turns.ask(Turn::Short);
        let page = wait(&mut turns, Turn::Page);
        let mut passed_over = 0;
        loop {
            wait(&mut turns, Turn::Short);
            if turns.end() == Some(page) {
                break;
            }
            passed_over += 1;
            assert!(passed_over <= PASSED_OVER_MAX, "the page waits for ever");
        }
        assert_eq!(passed_over, PASSED_OVER_MAX);
    }

    #[test]
    fn each_page_is_passed_over_anew_so_that_pages_never_crowd_out_appends() {
        let mut turns = Turns::default();
        turns.ask(Turn::Short);
        let pages = [wait(&mut turns, Turn::Page), wait(&mut turns, Turn::Page)];
        let mut gone = Vec::new();
        for _ in 0..2 * PASSED_OVER_MAX + 2 {
            wait(&mut turns, Turn::Short);
            gone.push(turns.end().unwrap());
        }
        let places: Vec<_> =
            pages.iter().map(|page| gone.iter().position(|ticket| ticket == page).unwrap()).collect();
        assert_eq!(places, [PASSED_OVER_MAX as usize, 2 * PASSED_OVER_MAX as usize + 1]);
    }

    #[test]
    fn who_withdraws_is_not_called() {
        let mut turns = Turns::default();
        turns.ask(Turn::Short);
        let page = wait(&mut turns, Turn::Page);
        let append = wait(&mut turns, Turn::Short);
        assert!(turns.withdraw(append));
        assert!(!turns.withdraw(append));
        assert_eq!(turns.end(), Some(page));
        assert!(!turns.withdraw(page), "its turn has come");
        assert_eq!(turns.end(), None);
    }
}
