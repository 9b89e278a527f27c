//! Tests of whole configurations.

mod documented;
mod effective;
mod layered;
mod limits;
mod refused;
mod secrets;
mod unknown;

use super::*;
use std::path::Path;

/// Loads a configuration from a file's text, environment variables and `--set` arguments.
fn load(toml: &str, env: &[(&str, &str)], set: &[&str]) -> Result<Config, Problems> {
    Config::checked(layers(toml, env, set), |_| None).map(|(config, _)| config)
}

/// Reads the layers of a configuration.
fn layers(toml: &str, env: &[(&str, &str)], set: &[&str]) -> Layers {
    let mut layers = Layers::default();
    layers.add_toml(Path::new("config.toml"), toml);
    layers.add_environment(env.iter().map(|(name, value)| (name.into(), value.into())).collect());
    layers.add_set(&set.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>());
    layers
}

/// Lines of the problems, without the last line that counts them, and without the names that exist.
#[track_caller]
fn refused(toml: &str, env: &[(&str, &str)], set: &[&str]) -> Vec<String> {
    let problems = load(toml, env, set).expect_err("refused").to_string();
    let mut lines: Vec<_> = problems.lines().map(|line| without_names(line).to_owned()).collect();
    lines.pop();
    lines
}

/// Cuts off the names that exist, at the end of a message about an unknown name.
fn without_names(line: &str) -> &str {
    let starts = [" ([", "; [", " (the sections are", "; the sections are"];
    let names = starts.iter().filter_map(|start| line.find(start)).min();
    &line[..names.unwrap_or(line.len())]
}
