//! The `urlseen` command: a thin shell around the crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(urlseen_cli::cli::run(std::env::args_os()))
}
