//! Dependencies of the crate `urlseen` with each of its features.

use std::collections::BTreeSet;
use std::process::Command;

/// Crates that only the command and the daemon need. A program that uses the library must not
/// depend on them.
const COMMAND: [&str; 10] = [
    "anyhow",
    "axum",
    "clap",
    "hyper",
    "indicatif",
    "plotters",
    "prometheus-client",
    "reqwest",
    "toml",
    "tracing-subscriber",
];

/// Returns the crates that a program gets with these features.
fn crates(package: &str, features: &str) -> BTreeSet<String> {
    let tree = ["tree", "--locked", "--offline", "--edges", "normal", "--prefix", "none"];
    let mut command = Command::new(env!("CARGO"));
    command.args(tree).args(["--format", "{p}", "--package", package, "--features", features]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn a_filter_has_no_dependency_of_the_command() {
    let all = crates("urlseen-cli", "");
    assert!(all.contains("clap") && all.contains("redis") && all.contains("tokio"));
    for features in ["", "storage", "redis", "tokio", "tls", "storage,tokio,tls"] {
        let some = crates("urlseen", features);
        let unwanted: Vec<_> = COMMAND.iter().filter(|name| some.contains(**name)).collect();
        assert!(unwanted.is_empty(), "with the features {features:?} there are {unwanted:?}");
    }
}

#[test]
fn a_feature_adds_only_its_own_dependencies() {
    assert_eq!(
        crates("urlseen", "").iter().filter(|name| ["redis", "tokio"].contains(&&***name)).count(),
        0
    );
    assert!(!crates("urlseen", "storage").contains("tokio"));
    let redis = crates("urlseen", "redis");
    assert!(redis.contains("redis") && !redis.contains("tokio") && !redis.contains("rustls"));
    assert!(!crates("urlseen", "tokio").contains("rustls"));
}
