//! `urlseen config` with real servers.

mod check;
mod schema;
mod show;
