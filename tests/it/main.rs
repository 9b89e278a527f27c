//! Integration tests: the built binary against real servers, and the rules that the sources keep.

mod daemon;
mod harness;
mod imports;
mod links;
mod tidy;
mod util;
