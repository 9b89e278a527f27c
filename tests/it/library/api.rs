//! Comparison of the library's public API with `tests/api.txt`, so that each change is visible.

use std::fs;
use std::path::Path;
use std::process::Command;

use public_api::Builder;

/// Returns the public API of the library, one item a line.
fn now() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let rustdoc = root.join("tests/it/library/rustdoc");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["rustdoc", "--quiet", "--locked", "--package", "urlseen", "--lib"]);
    cargo.args(["--all-features", "--target-dir"]).arg(target).env("RUSTDOC", rustdoc);
    cargo.args(["--", "-Z", "unstable-options", "--output-format", "json"]);
    let output = cargo.current_dir(root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json = Builder::from_rustdoc_json(target.join("doc/urlseen.json"));
    let json = json.omit_blanket_impls(true).omit_auto_trait_impls(true);
    let api = json.omit_auto_derived_impls(true).build();
    let api = api.expect("another version of Rust needs another version of the crate public-api");
    api.to_string()
}

#[test]
fn the_public_api_equals_the_recorded_one() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api.txt");
    let (now, then) = (now(), fs::read_to_string(&file).unwrap_or_default());
    if std::env::var_os("ACCEPT_API").is_some() {
        return fs::write(&file, now).unwrap();
    }
    let without = |all: &str, other: &str| -> Vec<String> {
        let other: Vec<_> = other.lines().collect();
        all.lines().filter(|line| !other.contains(line)).map(str::to_owned).collect()
    };
    let (gone, new) = (without(&then, &now), without(&now, &then));
    assert!(
        now == then,
        "the public API is not what tests/api.txt says; if that is meant, run this test with \
         ACCEPT_API=1, and say so in CHANGELOG.md\ngone: {gone:#?}\nnew: {new:#?}"
    );
}
