//! Messages of a flow on standard error.

use indicatif::HumanCount;

use crate::admin::printable::say;
use urlseen_engine::flow::driver::{Audience, Progress};
use urlseen_engine::flow::feed::Bad;

use super::bar::Bar;

/// Malformed entries that are named; the rest is counted.
const NAMED: usize = 10;

/// Tells of a flow by a bar, and names the first malformed entries above it.
pub(super) struct Teller {
    bar: Bar,
    /// Draws the bar.
    draw: fn(&Bar, &Progress),
    /// Items that were read, as of the last progress.
    pub(super) read: u64,
    named: Vec<Bad>,
}

impl Teller {
    /// Tells by this bar.
    pub(super) fn new(bar: Bar, draw: fn(&Bar, &Progress)) -> Self {
        Self { bar, draw, read: 0, named: Vec::new() }
    }

    /// Takes the bar away, and says how many of all malformed
    /// entries were not named. Returns those that were.
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
