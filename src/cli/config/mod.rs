//! `urlseen config`: commands about the configuration.

mod check;
mod findings;
mod init;
mod show;

use std::io::Write;

use super::Outcome;
use crate::admin::printable::stdout;

/// Check, show, describe or write the configuration.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen config check
  urlseen config show --set filter.capacity=1e9")]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigCommand {
    Check(check::ConfigCheckArgs),
    Show(show::ConfigShowArgs),
    Init(init::ConfigInitArgs),
    /// Print the JSON schema of the configuration file.
    ///
    /// Editors use the schema to complete keys and to mark mistakes. The schema knows names, types,
    /// words and ranges. `urlseen config check` also knows which values fit together.
    #[command(after_help = "\
Examples:
  urlseen config schema
  urlseen config schema  # > urlseen.schema.json, for an editor")]
    Schema,
}

pub(super) fn run(args: &ConfigArgs) -> anyhow::Result<Outcome> {
    match &args.command {
        ConfigCommand::Check(args) => check::run(args),
        ConfigCommand::Show(args) => show::run(args),
        ConfigCommand::Init(args) => init::run(args),
        ConfigCommand::Schema => {
            writeln!(stdout(), "{:#}", urlseen_engine::config::schema())?;
            Ok(Outcome::Done)
        }
    }
}
