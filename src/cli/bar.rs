//! Progress bar on the terminal.

use std::io::Read;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use urlseen_engine::flow::driver::Audience;
use urlseen_engine::flow::feed::Bad;

use crate::cli::prelude::*;

/// Progress bar on standard error, if that is a terminal. Dropping its last clone clears the bar.
#[derive(Clone)]
pub(super) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// Returns a bar that counts bytes. `word` says what the command does with the bytes.
    pub(super) fn new(word: &'static str) -> Self {
        Self::of("{binary_bytes} of {binary_total_bytes} {msg}", word)
    }

    /// Returns a bar that counts things, such as fingerprints. `word` names them.
    pub(super) fn counting(word: &'static str) -> Self {
        Self::of("{human_pos} of {human_len} {msg}", word)
    }

    /// Returns a bar with the given fields of indicatif's template.
    pub(super) fn of(fields: &str, word: &'static str) -> Self {
        let template = format!("{{wide_bar}} {fields}, {{eta}} left");
        let style = ProgressStyle::with_template(&template).expect("known fields");
        let bar = ProgressBar::new(0).with_style(style).with_message(word);
        Self { bar: bar.with_finish(ProgressFinish::AndClear) }
    }

    /// Wraps a reader of `all` bytes. The bar shows the share of bytes that were read.
    pub(super) fn reading<R: Read>(&self, reader: R, all: u64) -> impl Read {
        self.bar.set_length(all);
        self.bar.wrap_read(reader)
    }

    /// Wraps a writer of `all` bytes. The bar shows the share of bytes that were written.
    pub(super) fn writing<W: Write>(&self, writer: W, all: u64) -> impl Write {
        self.bar.set_length(all);
        self.bar.wrap_write(writer)
    }

    /// Shows words in place of the bar, for work without a known total.
    pub(super) fn tell(&self, words: String) {
        self.bar.set_style(ProgressStyle::with_template("{msg}").expect("a known field"));
        self.bar.set_message(words);
        self.bar.tick();
    }

    /// Shows words beside the bar.
    pub(super) fn show_with(&self, words: String, done: u64, all: u64) {
        self.bar.set_message(words);
        self.show(done, all);
    }

    /// Prints lines above the bar.
    pub(super) fn above(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Shows `done` of `all`.
    pub(super) fn show(&self, done: u64, all: u64) {
        self.bar.set_length(all);
        self.bar.set_position(done);
    }
}

/// Maximum number of malformed entries that the command prints. It only counts the entries after
/// these.
const NAMED: usize = 10;

/// Shows the progress of a flow as a bar. Above the bar, it prints the first malformed entries.
pub(super) struct BarAudience<D> {
    bar: Bar,
    /// Function that draws the bar at each step of progress.
    draw: D,
    /// Number of items that the flow had read at the last step of progress.
    pub(super) read: u64,
    named: Vec<Bad>,
}

impl<D: Fn(&Bar, &Progress)> BarAudience<D> {
    /// Returns a teller that shows a flow with the given bar.
    pub(super) fn new(bar: Bar, draw: D) -> Self {
        Self { bar, draw, read: 0, named: Vec::new() }
    }

    /// Clears the bar. Of the `bad` malformed entries, only the first ones were printed: prints the
    /// number of the others, and returns the printed ones. `are` describes the entries in the
    /// message.
    pub(super) fn end(self, bad: u64, are: &str) -> Vec<Bad> {
        self.bar.bar.finish_and_clear();
        let named = self.named.len() as u64;
        if bad > named {
            say(format_args!("urlseen: … and {} more that {are}", HumanCount(bad - named)));
        }
        self.named
    }
}

impl<D: Fn(&Bar, &Progress)> Audience for BarAudience<D> {
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
