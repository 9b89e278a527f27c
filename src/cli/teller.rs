//! Progress and messages of a flow, such as an import, on standard error.

use indicatif::HumanCount;

use crate::admin::printable::say;
use urlseen_engine::flow::driver::{Audience, Progress};
use urlseen_engine::flow::feed::Bad;

use super::bar::Bar;

/// Maximum number of malformed entries that the command prints. It only counts the entries after
/// these.
const NAMED: usize = 10;

/// Shows the progress of a flow as a bar. Above the bar, it prints the first malformed entries.
pub(super) struct Teller {
    bar: Bar,
    /// Function that draws the bar at each step of progress.
    draw: fn(&Bar, &Progress),
    /// Number of items that the flow had read at the last step of progress.
    pub(super) read: u64,
    named: Vec<Bad>,
}

impl Teller {
    /// Returns a teller that shows a flow with the given bar.
    pub(super) fn new(bar: Bar, draw: fn(&Bar, &Progress)) -> Self {
        Self { bar, draw, read: 0, named: Vec::new() }
    }

    /// Clears the bar. Of the `bad` malformed entries, only the first ones were printed: prints the
    /// number of the others, and returns the printed ones. `are` describes the entries in the
    /// message.
    pub(super) fn end(self, bad: u64, are: &str) -> Vec<Bad> {
        drop(self.bar);
        let named = self.named.len() as u64;
        if bad > named {
            say(format_args!("urlseen: … and {} more that {are}", HumanCount(bad - named)));
        }
        self.named
    }
}

impl Audience for Teller {
    fn say(&mut self, words: &str) {
        self.bar.above(|| say(format_args!("urlseen: {words}")));
    }

    fn bad(&mut self, bad: &Bad) {
        if self.named.len() < NAMED {
            self.say(&bad.to_string());
            self.named.push(bad.clone());
        }
    }

    fn progress(&mut self, progress: &Progress) {
        self.read = progress.count.read;
        (self.draw)(&self.bar, progress);
    }
}
