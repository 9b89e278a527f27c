//! Integration tests.

mod fingerprint;
