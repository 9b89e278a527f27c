//! Integration tests: the built binary against real servers, and the rules that the sources keep.

mod cli;
mod connect;
mod daemon;
mod filter;
mod fingerprint;
mod harness;
mod imports;
mod links;
mod pipe;
mod preflight;
mod tidy;
mod trouble;
mod util;
