//! Time per URL.
fn main() {}
