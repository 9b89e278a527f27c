//! `urlseen config`: commands about the configuration.

mod check;
mod init;
mod show;

use super::Outcome;

/// Check, show or write the configuration.
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
}

pub(super) fn run(args: &ConfigArgs) -> anyhow::Result<Outcome> {
    match &args.command {
        ConfigCommand::Check(args) => check::run(args),
        ConfigCommand::Show(args) => show::run(args),
        ConfigCommand::Init(args) => init::run(args),
    }
}
