//! Analysis of filters and crawls, apart from the daemon: replay, compare, explain and plots.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod compare;
pub mod explain;
pub mod plot;
pub mod replay;
