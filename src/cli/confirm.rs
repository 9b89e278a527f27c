//! Question before something is deleted for good.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::admin::printable::{printable, stderr};
use clap::error::ErrorKind;

/// Asks at the terminal; an empty answer means no. If standard input is not a terminal, the process
/// ends as it does for wrong arguments.
pub(super) fn confirm(question: &str) -> io::Result<bool> {
    let input = io::stdin();
    if !input.is_terminal() {
        let message = format!("{question} There is no terminal for an answer: give --yes\n");
        super::refuse(&clap::Error::raw(ErrorKind::MissingRequiredArgument, message));
    }
    write!(stderr(), "{} [y/N] ", printable(question.as_bytes(), None))?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}
