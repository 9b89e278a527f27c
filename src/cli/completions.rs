//! `urlseen completions` and `urlseen man-pages`: texts for shells and `man`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
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

/// Write the manual pages of all commands into a folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen man-pages ~/.local/share/man/man1
  urlseen man-pages debian/urlseen/usr/share/man/man1")]
pub(super) struct ManPagesArgs {
    /// Folder for the pages, which must exist
    folder: PathBuf,
}

pub(super) fn write_pages(args: &ManPagesArgs) -> anyhow::Result<Outcome> {
    let folder = &args.folder;
    clap_mangen::generate_to(grammar(), folder).with_context(|| {
        format!("cannot write the manual pages to {}; create the folder first", folder.display())
    })?;
    Ok(Outcome::Done)
}
