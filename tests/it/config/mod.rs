//! `urlseen config` with real servers.

mod check;
mod init;
mod schema;
mod show;
