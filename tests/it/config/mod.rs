//! `urlseen config` with real servers.

mod check;
mod init;
mod show;
