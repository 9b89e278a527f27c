//! Tests of whole configurations.

mod documented;
mod layered;
mod limits;
mod refused;
mod secrets;

use super::*;

/// Loads a configuration from a file's text, environment variables and `--set` arguments.
fn load(toml: &str, env: &[(&str, &str)], set: &[&str]) -> Result<Config, Problems> {
    let mut layers = Layers::default();
    layers.add_toml(Path::new("config.toml"), toml);
    layers.add_environment(env.iter().map(|(name, value)| (name.into(), value.into())).collect());
    layers.add_set(&set.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>());
    Config::checked(layers, |_| None)
}

/// Lines of the problems, without the last line that counts them.
#[track_caller]
fn refused(toml: &str, env: &[(&str, &str)], set: &[&str]) -> Vec<String> {
    let problems = load(toml, env, set).expect_err("refused").to_string();
    let mut lines: Vec<_> = problems.lines().map(str::to_owned).collect();
    lines.pop();
    lines
}
