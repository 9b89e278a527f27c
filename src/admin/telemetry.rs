//! Output of a running urlseen: log lines, and on a terminal one line of progress below them.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use crate::admin::printable::{json_text, printable, say};
use urlseen_engine::config::{Level, LogFormat};

/// Standard error. If it is a terminal, a line of progress follows the log lines.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    line: ProgressBar,
}

impl Console {
    /// Opens standard error. A line of progress is possible only on a terminal.
    pub(crate) fn new() -> Self {
        let target = if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let line = ProgressBar::with_draw_target(None, target);
        line.set_style(ProgressStyle::with_template("{msg}").expect("a template of one field"));
        Self { line }
    }

    /// Returns true if the line of progress is visible.
    pub(crate) fn is_terminal(&self) -> bool {
        !self.line.is_hidden()
    }

    /// Shows a text as the line of progress.
    pub(crate) fn show(&self, line: String) {
        self.line.set_message(line);
        self.line.tick();
    }

    /// Prints a line above the line of progress.
    pub(crate) fn say(&self, line: &str) {
        self.line.suspend(|| say(line));
    }

    /// Removes the line of progress.
    pub(crate) fn clear(&self) {
        self.line.finish_and_clear();
    }

    /// Writes all log lines of at least `level` to this console. Only the first call in a process
    /// has an effect.
    pub(crate) fn log(&self, level: Level, format: LogFormat) {
        let filter = tracing_subscriber::EnvFilter::new(format!("urlseen={level}"));
        let (line, is_json) = (self.line.clone(), format == LogFormat::Json);
        let lines = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_target(false)
            .with_writer(move || Above { line: line.clone(), is_json });
        let _ = match format {
            LogFormat::Text => {
                let lines = lines.with_ansi(self.is_terminal());
                lines.fmt_fields(debug_fn(show).delimited(" ")).try_init()
            }
            LogFormat::Json => lines.json().flatten_event(true).try_init(),
        };
    }
}

/// Writes a field of an event.
fn show(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let value = printable(format!("{value:?}").as_bytes(), None);
    match field.name() {
        "message" => write!(writer, "{value}"),
        name => write!(writer, "{name}={value}"),
    }
}

/// Writer that prints log lines above the line of progress.
struct Above {
    line: ProgressBar,
    is_json: bool,
}

impl Write for Above {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.suspend(|| {
            if self.is_json {
                io::stderr().write_all(json_text(&String::from_utf8_lossy(bytes)).as_bytes())
            } else {
                io::stderr().write_all(bytes)
            }
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
