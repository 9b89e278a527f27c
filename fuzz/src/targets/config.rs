//! Configurations. The input is a file, and after a zero byte each the lines of `--set` and of the
//! environment.

use std::ffi::OsString;

use tempfile::NamedTempFile;
use urlseen_cli::config::{Effective, Problems, Sources};

pub fn check(input: &[u8]) {
    let mut parts = input.split(|&byte| byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    let (file, set, env) = (part(), lines(part()), lines(part()));
    let env: Vec<(OsString, OsString)> = env
        .iter()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let effective = match load(file, set, env.clone()) {
        Ok(effective) => effective,
        Err(problems) => return assert!(!problems.to_string().is_empty()),
    };
    // The shown configuration has no passwords, and some settings need them.
    let is_password = |(name, _): &(OsString, OsString)| {
        ["URLSEEN_REDIS_PASSWORD", "URLSEEN_SERVE_PASSWORD", "URLSEEN_ADMIN_TOKEN"]
            .iter()
            .any(|password| name == password)
    };
    let passwords = env.into_iter().filter(is_password).collect();
    let shown = effective.to_toml();
    let again = load(shown.as_bytes(), Vec::new(), passwords)
        .unwrap_or_else(|problems| panic!("{problems}\n{shown}"));
    let values = |it: &Effective| {
        let values = it.values.iter().map(|it| (it.key, it.value.clone()));
        let rules = it.rules.iter().map(|it| (it.kind, it.values.clone()));
        (values.collect::<Vec<_>>(), rules.collect::<Vec<_>>())
    };
    assert_eq!(values(&again), values(&effective), "{shown}");
}

fn load(
    file: &[u8],
    set: Vec<String>,
    env: Vec<(OsString, OsString)>,
) -> Result<Effective, Problems> {
    let written = NamedTempFile::new().expect("a temporary file");
    std::fs::write(&written, file).expect("a file can be written");
    Effective::load(Sources { file: Some(written.path().to_owned()), set, env })
}

fn lines(part: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(part).lines().map(str::to_owned).collect()
}
