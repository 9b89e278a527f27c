//! The command `urlseen`: the daemon, the tools around it, and their command line.
//!
//! | to find | look in |
//! |---|---|
//! | a key of the configuration | `config/keys.rs` |
//! | the daemon's loop, and its steps of a batch | `pipeline/session/` |
//! | the state of a run that status, metrics and page show | `report/` |
//! | the answers to clients in the Redis protocol | `serve/` |
//! | the router | `route/` |
//! | the HTTP endpoint, its metrics and its page | `admin/` |
//! | what `plan`, `replay`, `explain` and `compare` compute | `analysis/` |
//! | a command; the rows of its tables | `cli/`; `cli/table.rs` |

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod admin;
pub mod analysis;
pub mod cli;
pub mod config;
mod pipeline;
pub mod report;
mod route;
pub(crate) mod serve;
