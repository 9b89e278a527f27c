//! Tables with a name and a text in each row, for people.

use std::io::StdoutLock;

use crate::admin::printable::{Plain, json_text};
use crate::cli::prelude::*;
use crate::report::RuleCount;

/// Widths of a name and of a number in the tables of a crawl, in columns.
pub(super) const CRAWL: [usize; 2] = [12, 15];

/// Widths of a name and of a number in the summaries of commands, in columns.
pub(super) const SUMMARY: [usize; 2] = [10, 12];

/// Widths of a name and of a number in the tables of `explain` and `compare`, in columns.
pub(super) const COMPARED: [usize; 2] = [14, 15];

/// Table with a name and a text in each row.
pub(super) struct Rows<W> {
    out: W,
    /// Width of a name and width of a number, in columns.
    widths: [usize; 2],
}

impl<W: Write> Rows<W> {
    /// Returns a table with the given widths of a name and of a number.
    pub(super) fn new(out: W, widths: [usize; 2]) -> Self {
        Self { out, widths }
    }

    /// Prints a row with a name and a text.
    pub(super) fn row(&mut self, name: &str, text: impl Display) -> io::Result<()> {
        let ([width, _], text) = (self.widths, printable(text.to_string().as_bytes(), None));
        writeln!(self.out, "{name:<width$} {text}")
    }

    /// Prints a row with a name, a number and what the number counts.
    pub(super) fn number(
        &mut self,
        name: &str,
        number: impl Display,
        what: impl Display,
    ) -> io::Result<()> {
        let ([_, width], number) = (self.widths, number.to_string());
        self.row(name, format_args!("{number:>width$}   {what}"))
    }

    /// Prints a row with a name, the number of some things and what they are.
    pub(super) fn count(&mut self, name: &str, count: u64, what: impl Display) -> io::Result<()> {
        self.number(name, HumanCount(count), what)
    }

    /// Prints such a row unless the number is 0.
    pub(super) fn some(&mut self, name: &str, count: u64, what: &str) -> io::Result<()> {
        if count == 0 { Ok(()) } else { self.count(name, count, what) }
    }

    /// Prints a row for each text. Only the first row has the name.
    pub(super) fn each<T: Display>(
        &mut self,
        name: &str,
        texts: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        let names = std::iter::once(name).chain(std::iter::repeat(""));
        texts.into_iter().zip(names).try_for_each(|(text, name)| self.row(name, text))
    }

    /// Prints a row for each rule, with its number of items.
    pub(super) fn by_rule(&mut self, counts: &[RuleCount]) -> io::Result<()> {
        counts.iter().try_for_each(|RuleCount { rule, items }| {
            self.count("", *items, format_args!("of these by the rule {rule:?}"))
        })
    }

    /// Prints an empty line after a part of a table.
    pub(super) fn gap(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }
}

/// Prints the answer of a command: the JSON, or if there is none, the text for people that `print`
/// writes.
pub(super) fn answer<E>(
    json: Option<String>,
    print: impl FnOnce(Plain<StdoutLock<'static>>) -> Result<(), E>,
) -> anyhow::Result<Outcome>
where
    anyhow::Error: From<E>,
{
    match json {
        Some(json) => writeln!(stdout(), "{}", json_text(&json))?,
        None => print(stdout())?,
    }
    Ok(Outcome::Done)
}

/// Prints the only line of a command that succeeded.
pub(super) fn done(line: impl Display) -> anyhow::Result<Outcome> {
    writeln!(stdout(), "{line}")?;
    Ok(Outcome::Done)
}

/// Describes the fill of a filter in a summary.
pub(super) fn filled(fill: f64, error_rate: f64) -> String {
    format!("fingerprints, {:.1} % full, error rate now {error_rate:.1e}", 100.0 * fill)
}

/// Describes a number of entries: the time that they took, and the entries a second.
pub(super) fn paced(count: u64, seconds: f64) -> String {
    format!("{seconds:.2} s, {:.0} a second", count as f64 / seconds.max(1e-9))
}
