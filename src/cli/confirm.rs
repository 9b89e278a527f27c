//! Asking before something is gone for good.

use std::io::{self, IsTerminal, Write};

/// Asks on the terminal, and takes no answer for a no. Where nobody can be asked, it is an error
/// that names `--yes`.
pub(super) fn confirm(question: &str) -> anyhow::Result<bool> {
    anyhow::ensure!(
        io::stdin().is_terminal() && io::stderr().is_terminal(),
        "{question}: there is no terminal to ask on; say --yes"
    );
    eprint!("{question} [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}
