//! Progress bar on the terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// Progress bar on standard error, if that is a terminal. Dropping it clears the bar.
pub(super) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// Returns a bar of bytes; `word` says what is done with them.
    pub(super) fn new(word: &'static str) -> Self {
        Self::of("{binary_bytes} of {binary_total_bytes} {msg}", word)
    }

    /// Returns a bar of counts; `word` names what is counted.
    pub(super) fn counting(word: &'static str) -> Self {
        Self::of("{human_pos} of {human_len} {msg}", word)
    }

    /// Returns a bar with these fields of indicatif's template.
    pub(super) fn of(fields: &str, word: &'static str) -> Self {
        let template = format!("{{wide_bar}} {fields}, {{eta}} left");
        let style = ProgressStyle::with_template(&template).expect("known fields");
        Self { bar: ProgressBar::new(0).with_style(style).with_message(word) }
    }

    /// Shows words in place of the bar, if the total is not known.
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

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
