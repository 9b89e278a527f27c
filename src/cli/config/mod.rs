//! `urlseen config`: commands about the configuration, of which `show` prints each value.

mod check;
mod examples;
mod init;

use crate::config::{Effective, EffectiveRule, EffectiveValue, ValueOrigin, toml_text};

use crate::cli::commands;
use crate::cli::prelude::*;
use crate::cli::settings::ConfigArgs;

commands! {
    /// Check, show or write the configuration.
    ///
    /// Examples:
    /// ```text
    /// urlseen config check
    /// urlseen config show --set filter.capacity=1e9
    /// ```
    ConfigCommand {
        Check(check::ConfigCheckArgs) => check::run,
        Test(examples::ConfigTestArgs) => examples::run,
        Show(ConfigShowArgs) => show,
        Init(init::ConfigInitArgs) => init::run,
    }
}

/// Longest text of a value, in columns. A longer one moves its origin to the right.
const WIDEST: usize = 40;

/// Show the value of each key, and where it comes from: a default, the file, the environment or
/// `--set`.
///
/// Passwords are not shown. With `--toml`, the output is a configuration file with the same values.
/// Set the passwords in the environment then.
///
/// Examples:
/// ```text
/// urlseen config show --changed
/// urlseen config show --set crawl.name=news --toml  # > news.toml
/// ```
#[derive(Debug, clap::Args)]
pub(super) struct ConfigShowArgs {
    #[command(flatten)]
    layers: ConfigArgs,
    /// Show only keys that the file, the environment or --set have set
    #[arg(long)]
    changed: bool,
    /// Print a configuration file with these values
    #[arg(long, conflicts_with = "json")]
    toml: bool,
    /// Print a JSON object with all values and origins
    #[arg(long)]
    json: bool,
}

fn show(args: &ConfigShowArgs) -> anyhow::Result<Outcome> {
    let mut shown = Effective::load(args.layers.sources(&[]))?;
    if args.changed {
        shown.values.retain(|value| value.origin != ValueOrigin::Default);
    }
    let json = args.json.then(|| format!("{:#}", to_json(&shown)));
    answer(json, |mut out| {
        if args.toml { out.write_all(shown.to_toml().as_bytes()) } else { print(&shown, out) }
    })
}

fn print(shown: &Effective, mut out: impl Write) -> io::Result<()> {
    let Effective { values, rules, passwords } = shown;
    let values = values
        .iter()
        .map(|EffectiveValue { key, value, origin }| ((*key).to_owned(), toml_text(value), origin));
    let rules = rules.iter().map(|EffectiveRule { kind, origin, values }| {
        let values = values.iter().map(|(key, value)| format!("{key} = {}", toml_text(value)));
        (format!("[[{kind}]]"), values.collect::<Vec<_>>().join(", "), origin)
    });
    let passwords = passwords
        .iter()
        .map(|(server, origin)| (format!("{server} password"), "***".to_owned(), origin));
    let rows: Vec<_> = values.chain(rules).chain(passwords).collect();
    let key_width = rows.iter().map(|(key, ..)| key.len()).max().unwrap_or(0);
    let width = rows.iter().map(|(_, value, _)| value.len().min(WIDEST)).max().unwrap_or(0);
    for (key, value, origin) in rows {
        writeln!(out, "{key:<key_width$}  {value:<width$}  {origin}")?;
    }
    Ok(())
}

fn to_json(shown: &Effective) -> serde_json::Value {
    let Effective { values, rules, passwords } = shown;
    let values: BTreeMap<_, _> = values.iter().map(|it| (it.key, it)).collect();
    let passwords = passwords.iter().map(|(server, from)| (server, json!({ "from": from })));
    json!({
        "values": values,
        "rules": rules,
        "passwords": passwords.collect::<BTreeMap<_, _>>(),
    })
}
