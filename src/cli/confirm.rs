//! Question before a command deletes data.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::admin::printable::{printable, stderr, stdout};
use clap::error::ErrorKind;

/// Asks the question at the terminal, and returns true if the answer is yes. If `yes` is set
/// (`--yes`), returns true without a question. An empty answer means no. If the answer is no, the
/// function prints `unchanged`. If standard input is not a terminal, the process ends with the exit
/// status for wrong arguments.
pub(super) fn confirmed(yes: bool, question: &str, unchanged: &str) -> io::Result<bool> {
    let input = io::stdin();
    if yes {
        return Ok(true);
    }
    if !input.is_terminal() {
        let message = format!("{question} There is no terminal for an answer: give --yes\n");
        super::refuse(&clap::Error::raw(ErrorKind::MissingRequiredArgument, message));
    }
    write!(stderr(), "{} [y/N] ", printable(question.as_bytes(), None))?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    let is_yes = ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str());
    if !is_yes {
        writeln!(stdout(), "{unchanged}")?;
    }
    Ok(is_yes)
}
