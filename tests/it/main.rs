//! Integration tests.

mod connect;
mod preflight;
mod trouble;
