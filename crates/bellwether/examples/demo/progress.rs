//! What a person sees while it runs: a bar on a terminal, else a line every few seconds.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

const LINE_EVERY: Duration = Duration::from_secs(3);
const BAR_EVERY: Duration = Duration::from_millis(100);

/// Progress of one phase.
pub(crate) struct Progress {
    phase: &'static str,
    total: Option<u64>,
    bar: Option<ProgressBar>,
    shown: Cell<Instant>,
    began: Instant,
}

impl Progress {
    /// Begins a phase; `total` is what `done` will reach, where that is known.
    pub(crate) fn new(phase: &'static str, total: Option<u64>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let (bar, template) = match total {
                Some(total) => {
                    (ProgressBar::new(total), "{prefix:>9} [{bar:30}] {human_pos}/{human_len} {msg}")
                }
                None => (ProgressBar::new_spinner(), "{prefix:>9} {spinner} {human_pos} {msg}"),
            };
            let style = ProgressStyle::with_template(template).expect("the template is a constant");
            bar.with_style(style.progress_chars("=> ")).with_prefix(phase)
        });
        let now = Instant::now();
        Self { phase, total, bar, shown: Cell::new(now), began: now }
    }

    /// Shows how far the phase is, if it is time; `more` is only asked for then.
    pub(crate) fn at(&self, done: u64, more: impl FnOnce() -> String) {
        let every = if self.bar.is_some() { BAR_EVERY } else { LINE_EVERY };
        if self.shown.get().elapsed() < every {
            return;
        }
        self.shown.set(Instant::now());
        match (&self.bar, self.total) {
            (Some(bar), _) => {
                bar.set_position(done);
                bar.set_message(more());
            }
            (None, Some(total)) => eprintln!("{}: {done} of {total} {}", self.phase, more()),
            (None, None) => eprintln!("{}: {done} {}", self.phase, more()),
        }
    }

    /// Ends the phase and says what it took.
    pub(crate) fn end(self, done: u64) -> Duration {
        let took = self.began.elapsed();
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
        eprintln!("{}: {done} in {:.1} s", self.phase, took.as_secs_f64());
        took
    }
}
