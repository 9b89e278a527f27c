//! The Python module `urlseen._urlseen`: fingerprints, filters and the command. The package in
//! `python/urlseen` exports its parts, and has their types and documentation.

// The examples in the documentation are in Python, which shows it to its users.
#![allow(rustdoc::invalid_rust_codeblocks)]

mod command;
mod error;
mod explaining;
mod filter;
mod fingerprints;
mod key;

use pyo3::pymodule;

#[pymodule]
mod _urlseen {
    #[pymodule_export]
    use super::command::run;
    #[pymodule_export]
    use super::explaining::explain_json;
    #[pymodule_export]
    use super::filter::{Filter, forked};
    #[pymodule_export]
    use super::fingerprints::{canonicalize, fingerprint, fingerprints};
}
