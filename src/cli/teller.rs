//! Progress and messages of a flow, on standard error.

use indicatif::HumanCount;

use crate::admin::printable::say;
use urlseen_engine::flow::driver::{Audience, Progress};
use urlseen_engine::flow::feed::Bad;

use super::bar::Bar;

/// Most malformed entries that are named; the others are only counted.
const NAMED: usize = 10;

/// Shows a flow as a bar, and names the first malformed entries above it.
pub(super) struct Teller {
    bar: Bar,
    /// Draws the bar at each progress.
    draw: fn(&Bar, &Progress),
    /// Items that were read, as of the last progress.
    pub(super) read: u64,
    named: Vec<Bad>,
}

impl Teller {
    /// Returns a teller that shows the flow with this bar.
    pub(super) fn new(bar: Bar, draw: fn(&Bar, &Progress)) -> Self {
        Self { bar, draw, read: 0, named: Vec::new() }
    }

    /// Clears the bar, and prints the number of malformed entries that were not named. Returns
    /// those that were.
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
