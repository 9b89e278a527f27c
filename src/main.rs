//! The `urlseen` command.
fn main() {}
