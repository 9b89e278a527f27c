//! The commands, one file each.

mod plan;

use std::io::{self, Write};

use clap::{Parser, Subcommand};

pub use plan::Plan;

/// The command line.
#[derive(Debug, Parser)]
#[command(version, about)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Plan(Plan),
}

impl Cli {
    /// Runs the command that was given.
    pub fn run(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match &self.command {
            Command::Plan(plan) => plan.run(&mut out)?,
        }
        out.flush()
    }
}
