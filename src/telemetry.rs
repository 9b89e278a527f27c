//! What urlseen says while it works: log lines, and on a terminal one line of progress below them.

use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracing_subscriber::fmt::MakeWriter;

use crate::config::{Level, LogFormat};

/// Standard error, with a line of progress at its foot where it is a terminal.
#[derive(Debug, Clone)]
pub struct Console {
    line: ProgressBar,
}

impl Console {
    /// Standard error as it is.
    pub fn new() -> Self {
        let target = if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let line = ProgressBar::with_draw_target(None, target);
        line.set_style(ProgressStyle::with_template("{msg}").expect("a template of one field"));
        Self { line }
    }

    /// Whether the line of progress can be seen.
    pub fn is_terminal(&self) -> bool {
        !self.line.is_hidden()
    }

    /// Shows this as the line of progress.
    pub fn show(&self, line: String) {
        self.line.set_message(line);
        self.line.tick();
    }

    /// Prints a line above the line of progress.
    pub fn say(&self, line: &str) {
        self.line.suspend(|| eprintln!("{line}"));
    }

    /// Takes the line of progress away.
    pub fn clear(&self) {
        self.line.finish_and_clear();
    }

    /// Sends all log lines of at least `level` here from now on. Only the first call in a process
    /// does something.
    pub fn log(&self, level: Level, format: LogFormat) {
        let filter = tracing_subscriber::EnvFilter::new(format!("urlseen={level}"));
        let lines = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_target(false)
            .with_writer(self.clone());
        let _ = match format {
            LogFormat::Text => lines.with_ansi(self.is_terminal()).try_init(),
            LogFormat::Json => lines.json().flatten_event(true).try_init(),
        };
    }
}

impl Default for Console {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> MakeWriter<'a> for Console {
    type Writer = Above<'a>;

    fn make_writer(&'a self) -> Above<'a> {
        Above(&self.line)
    }
}

/// Writes above the line of progress.
#[derive(Debug)]
pub struct Above<'a>(&'a ProgressBar);

impl Write for Above<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.suspend(|| io::stderr().write_all(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
