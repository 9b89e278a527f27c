//! The `urlseen` command.

use clap::Parser;
use urlseen::cli::Cli;

fn main() -> anyhow::Result<()> {
    Ok(Cli::parse().run()?)
}
