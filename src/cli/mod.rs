//! The command line: one file a command.

mod filter;
mod fingerprint;
mod lines;
mod plan;
mod run;
mod start;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// How a command that ran ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// All done.
    Done,
    /// Done, but some of the input was bad; each piece was named on standard error.
    BadInput,
    /// Not all done; the reason was named on standard error.
    Failed,
}

/// The URL-seen test for distributed crawls: which of these requests are new?
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    after_help = "Exit status: 0 done, 1 some input was bad, 2 wrong use, \
    3 a file failed."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Filter(filter::Args),
    Fingerprint(fingerprint::Args),
    Plan(plan::Plan),
}

/// Runs the command that the process was started with; its exit status is the return value.
pub(crate) fn run() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Filter(args) => filter::run(&args),
        Command::Fingerprint(args) => fingerprint::run(&args),
        Command::Plan(plan) => plan::run(&plan),
    };
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::BadInput) => ExitCode::from(1),
        Ok(Outcome::Failed) => ExitCode::from(3),
        // Whoever read the output has all they wanted.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("urlseen: {error:#}");
            ExitCode::from(3)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
