//! Targets of the fuzzer. Each function checks one input, and panics if it finds a fault. A test in
//! `tests/it` includes this module too, and checks the inputs of `fuzz/corpus`.

mod config;
mod item;
mod storage;
mod url;

/// Name of a target, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const ALL: [Target; 4] = [
    ("config", config::check),
    ("item", item::check),
    ("storage", storage::check),
    ("url", url::check),
];
