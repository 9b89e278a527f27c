//! Output of a running urlseen: log lines, and on a terminal one line of progress below them.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracing::Metadata;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use crate::admin::printable::{json_text, printable};
use crate::config::{Level, LogFormat};
use crate::report::AllRepeats;

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

    /// Removes the line of progress.
    pub(crate) fn clear(&self) {
        self.line.finish_and_clear();
    }

    /// Writes all log lines of at least `level` to this console. Only the first call in a process
    /// has an effect.
    pub(crate) fn log(&self, level: Level, format: LogFormat) {
        let filter = tracing_subscriber::EnvFilter::new(format!("urlseen={level}"));
        let (line, is_json) = (self.line.clone(), format == LogFormat::Json);
        let shows_all = matches!(level, Level::Debug | Level::Trace);
        let warnings = (!shows_all).then(Mutex::default);
        let lines = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_target(false)
            .with_writer(Lines { line, is_json, warnings });
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

/// Writers of log lines, one for each line.
struct Lines {
    line: ProgressBar,
    is_json: bool,
    /// Warnings so far; `None` if the log shows all of them.
    warnings: Option<Mutex<AllRepeats>>,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Above<'a>;

    fn make_writer(&'a self) -> Above<'a> {
        Above { lines: self, is_warning: false }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Above<'a> {
        Above { lines: self, is_warning: *meta.level() == tracing::Level::WARN }
    }
}

/// Writer that prints a log line above the line of progress.
struct Above<'a> {
    lines: &'a Lines,
    is_warning: bool,
}

impl Above<'_> {
    /// Returns the line as it is to be printed. Returns `None` for a warning that repeats, and is
    /// not due.
    fn due(&self, line: &str) -> Option<String> {
        let Lines { is_json, warnings, .. } = self.lines;
        let Some(warnings) = warnings.as_ref().filter(|_| self.is_warning) else {
            return Some(line.to_owned());
        };
        // The time comes first. Waits before the next attempt make no difference.
        let after_time = if *is_json { ',' } else { ' ' };
        let text = line.split_once(after_time).map_or(line, |(_, text)| text);
        let (text, wait) = text.split_once(" Trying again in ").unwrap_or((text, ""));
        let text = format!("{text}{}", wait.trim_start_matches(|it: char| it.is_ascii_digit()));
        let mut warnings = warnings.lock().unwrap_or_else(PoisonError::into_inner);
        Some(match (warnings.turn(&text, Instant::now())?, line.trim_end().strip_suffix('}')) {
            (0, _) => line.to_owned(),
            (silent, Some(fields)) if *is_json => format!("{fields},\"repeated\":{silent}}}\n"),
            (silent, _) => format!("{} ({silent} more since the last one)\n", line.trim_end()),
        })
    }
}

impl Write for Above<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(line) = self.due(&String::from_utf8_lossy(bytes)) {
            let line = if self.lines.is_json { json_text(&line) } else { line };
            self.lines.line.suspend(|| io::stderr().write_all(line.as_bytes()))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
