//! A bar for bytes that go from here to there.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error, where that is a terminal; gone once dropped.
pub(super) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar for what `word` says is done with the bytes.
    pub(super) fn new(word: &'static str) -> Self {
        let template = "{wide_bar} {binary_bytes} of {binary_total_bytes} {msg}, {eta} left";
        let style = ProgressStyle::with_template(template).expect("known fields");
        let bar = ProgressBar::new(0).with_style(style).with_message(word);
        Self { bar }
    }

    /// The same for things that are counted.
    pub(super) fn counting(word: &'static str) -> Self {
        let template = "{wide_bar} {human_pos} of {human_len} {msg}, {eta} left";
        let style = ProgressStyle::with_template(template).expect("known fields");
        Self { bar: ProgressBar::new(0).with_style(style).with_message(word) }
    }

    /// So much, where nobody knows of how much.
    pub(super) fn tell(&self, words: String) {
        self.bar.set_style(ProgressStyle::with_template("{msg}").expect("a known field"));
        self.bar.set_message(words);
        self.bar.tick();
    }

    /// Prints above the bar.
    pub(super) fn above(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// So many of so many.
    pub(super) fn show(&self, done: u64, all: u64) {
        self.bar.set_length(all);
        self.bar.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
