//! `urlseen completions`: prints the completions of a shell.

use std::io::Write;

use clap_complete::Shell;

use super::{Outcome, grammar};

/// Print a script with which a shell completes the commands and options of urlseen.
///
/// The Debian package installs these scripts for bash, zsh and fish.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen completions bash  # for ~/.local/share/bash-completion/completions/urlseen
  urlseen completions zsh   # for the file _urlseen in a folder of $fpath")]
pub(super) struct CompletionsArgs {
    /// Shell that reads the script
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut grammar(), "urlseen", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Outcome::Done)
}
