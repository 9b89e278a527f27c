//! Gives changed inputs to one target. libFuzzer prefers inputs that reach new code: see
//! scripts/fuzz.

#![no_main]

mod targets;

use std::env;
use std::sync::OnceLock;

/// Variable that names the target.
const TARGET: &str = "FUZZ_TARGET";

static CHECK: OnceLock<fn(&[u8])> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        let name = env::var(TARGET).unwrap_or_default();
        let target = targets::ALL.iter().find(|(known, _)| *known == name);
        let (_, check) = target.expect("FUZZ_TARGET names a target");
        CHECK.get_or_init(|| *check);
    },
    |input: &[u8]| CHECK.get().expect("the target is known")(input)
);
