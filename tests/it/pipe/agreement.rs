//! `scripts/bench-filter` measures several tools. It first checks that they print the same lines.

use crate::util::binary::Run;
use crate::util::sources::root;

/// Runs only this check, with few lines.
#[test]
fn urlseen_and_awk_print_the_same_canonical_lines() {
    let program = env!("CARGO_BIN_EXE_urlseen");
    let script = root().join("scripts/bench-filter");
    let output = Run::of(script, ["--only-agreement", "--lines", "100000", program]).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    let said = "print the same lines: ";
    assert!(output.text().contains(said), "{}", output.text());
}
