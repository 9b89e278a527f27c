//! Integration tests: the built binary against real servers, and the rules that the sources keep.
//! Integration tests.

mod connect;
mod harness;
mod imports;
mod links;
mod preflight;
mod tidy;
mod trouble;
mod util;
