//! The `urlseen` command: a thin shell around the crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    urlseen_cli::cli::run()
}
