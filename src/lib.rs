//! The command `urlseen`: the daemon, the tools around it, and their command line.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod admin;
pub mod cli;
pub mod config;
mod pipeline;
pub mod report;
mod route;
pub(crate) mod serve;
