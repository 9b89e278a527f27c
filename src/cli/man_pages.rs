//! `urlseen man-pages`: writes the manual pages. Only packages need this command.

use std::path::PathBuf;

use anyhow::Context;

use super::{Outcome, grammar};

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

pub(super) fn run(args: &ManPagesArgs) -> anyhow::Result<Outcome> {
    let folder = &args.folder;
    clap_mangen::generate_to(grammar(), folder).with_context(|| {
        format!("cannot write the manual pages to {}; create the folder first", folder.display())
    })?;
    Ok(Outcome::Done)
}
