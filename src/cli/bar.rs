//! A bar for what goes from here to there.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error, where that is a terminal; gone once dropped.
pub(super) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// Shows an amount of bytes; `word` says what is done with them.
    pub(super) fn new(word: &'static str) -> Self {
        Self::of("{binary_bytes} of {binary_total_bytes} {msg}", word)
    }

    /// Shows a count; `word` says of what.
    pub(super) fn counting(word: &'static str) -> Self {
        Self::of("{human_pos} of {human_len} {msg}", word)
    }

    /// Shows these fields.
    pub(super) fn of(fields: &str, word: &'static str) -> Self {
        let template = format!("{{wide_bar}} {fields}, {{eta}} left");
        let style = ProgressStyle::with_template(&template).expect("known fields");
        Self { bar: ProgressBar::new(0).with_style(style).with_message(word) }
    }

    /// So much, where nobody knows of how much.
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
