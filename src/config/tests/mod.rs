//! Tests of whole configurations.

mod documented;
mod effective;
mod layered;
mod refused;
mod secrets;
mod values;

use super::found::Layers;
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
