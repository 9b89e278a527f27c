//! The `urlseen` command: a thin shell around the library.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
