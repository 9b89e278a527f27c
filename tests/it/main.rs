//! Integration tests.

mod filter;
