//! The hash functions that layouts use: the only file that names a hash crate.
