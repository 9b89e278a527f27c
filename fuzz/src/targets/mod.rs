//! Targets of the fuzzer. Each function checks one input, and panics if it finds a fault. A test in
//! `tests/it` includes this module too, and checks the inputs of `fuzz/corpus`.

mod config;
mod item;
mod storage;
mod url;

/// All targets with their names.
pub const ALL: [(&str, fn(&[u8])); 4] = [
    ("config", config::check),
    ("item", item::check),
    ("storage", storage::check),
    ("url", url::check),
];
