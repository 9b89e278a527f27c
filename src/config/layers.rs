//! Layers of the configuration (file, environment and `--set`), joined in one flat map. For each
//! key, the map holds the values with their origins. Another module checks the values.

use super::found::Layers;
use super::keys::{KEYS, SECTIONS};
use super::problem::{FilePlace, ValueOrigin};
use super::rule_kinds::KINDS;
use super::secret::{Secret, carries_password, masked};
use super::unknown::{
    PASSWORD, PREFIX, presentable, unknown_key, unknown_section, unknown_variable, variable,
};
use super::value::Raw;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// Name of the file that is read if the user names no file. This file may be missing.
pub(crate) const DEFAULT_FILE: &str = "config.toml";

/// Configuration file that is always empty, for a command that reads no configuration file.
pub(crate) const NO_FILE: &str = "/dev/null";

/// Name of the tables with examples, which only `urlseen config test` reads.
const EXAMPLES: &str = "test";

/// Origins of a configuration.
#[derive(Debug, Default)]
pub struct Sources {
    /// Path from `--config`; `DEFAULT_FILE` if it is not given.
    pub file: Option<PathBuf>,
    /// Environment of the process. Variables that do not begin with `URLSEEN_` are ignored.
    pub env: Vec<(OsString, OsString)>,
    /// Argument `key=value` of each `--set`, in order.
    pub set: Vec<String>,
}

/// Servers with a password or a token that only the environment has, each with its variable.
pub(super) const SECRETS: [(&str, &str); 3] =
    [("redis", PASSWORD), ("serve", "URLSEEN_SERVE_PASSWORD"), ("admin", "URLSEEN_ADMIN_TOKEN")];
/// Maximum size of the file in bytes. A longer file is refused.
const LONGEST_FILE: u64 = 1 << 20;

impl Layers {
    /// Reads the file, the environment and the command line into layers.
    pub(super) fn read(sources: Sources) -> Self {
        let mut layers = Self::default();
        match &sources.file {
            Some(path) => layers.add_file(path, true),
            None => layers.add_file(Path::new(DEFAULT_FILE), false),
        }
        layers.add_environment(sources.env);
        layers.add_set(&sources.set);
        layers
    }

    /// Reads a file into the layers. A missing file is a problem only if the user named the file.
    pub(super) fn add_file(&mut self, path: &Path, asked_for: bool) {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path);
        let read = file.and_then(|file| file.take(LONGEST_FILE + 1).read_to_end(&mut bytes));
        let (place, fault) = match (read, std::str::from_utf8(&bytes)) {
            (Err(error), _) if error.kind() == ErrorKind::NotFound && !asked_for => return,
            (Err(error), _) => {
                (None, format!("cannot be read: {error}; give the path of a readable file"))
            }
            (Ok(length), _) if length as u64 > LONGEST_FILE => {
                let remedy = "give the path of a configuration";
                (None, format!("is longer than {LONGEST_FILE} bytes; {remedy}"))
            }
            (Ok(_), Ok(text)) => return self.add_toml(path, text),
            (Ok(_), Err(error)) => {
                let place = FilePlace::of(error.valid_up_to(), &bytes);
                (Some(place), "is not UTF-8 from here on; save the file as UTF-8 text".to_owned())
            }
        };
        self.refuse_file(path, place, fault);
    }

    /// Reads the text of a file into the layers. If the text is not valid TOML, reads the keys of
    /// sections on the lines without an error.
    pub(super) fn add_toml(&mut self, path: &Path, text: &str) {
        let (document, errors) = DeTable::parse_recoverable(text);
        let broken = self.add_syntax_errors(path, text, &errors);
        let path: Arc<Path> = path.into();
        let place = |byte| FilePlace::of(byte, text.as_bytes());
        let at = |byte| ValueOrigin::File(path.clone(), Some(place(byte)));
        let is_broken = |byte| broken.contains(&place(byte).line);
        for (section, value) in document.get_ref() {
            let (start, section) = (section.span().start, section.get_ref().as_ref());
            if section == EXAMPLES {
                continue;
            }
            if let Some(&kind) = KINDS.iter().find(|kind| kind.name == section) {
                // A rule may lack the keys on broken lines.
                if broken.is_empty() {
                    self.add_rules(kind, value, at);
                }
                continue;
            }
            let fault = match (SECTIONS.contains(&section), value.get_ref()) {
                (true, DeValue::Table(table)) => {
                    for (key, value) in table {
                        let (key_start, span) = (key.span().start, value.span());
                        // The parser replaces a missing value by one without a place.
                        if span.is_empty() || is_broken(key_start) || is_broken(span.start) {
                            continue;
                        }
                        let name = format!("{section}.{}", key.get_ref());
                        let start = if KEYS.contains(&&*name) { span.start } else { key_start };
                        self.add(&name, Raw::from_toml(value.get_ref()), at(start));
                    }
                    continue;
                }
                _ if is_broken(start) => continue,
                (true, other) => format!(
                    "{section} is {}; allowed: a section, which begins with the line [{section}]",
                    Raw::from_toml(other).kind
                ),
                (false, DeValue::Table(_)) => unknown_section(section),
                (false, _) => unknown_key(section),
            };
            self.refuse(at(start), fault);
        }
    }

    /// Records the errors of the TOML parser as problems, at most one for each line. Further errors
    /// of a line are mostly consequences of the first. Returns the lines with errors.
    fn add_syntax_errors(
        &mut self,
        path: &Path,
        text: &str,
        errors: &[toml::de::Error],
    ) -> BTreeSet<usize> {
        let mut lines = BTreeSet::new();
        for error in errors {
            let span = error.span().unwrap_or(text.len()..text.len());
            let place = FilePlace::of(span.start, text.as_bytes());
            if !lines.insert(place.line) {
                continue;
            }
            let message = match (error.message(), text.get(span)) {
                ("duplicate key", Some(key)) => {
                    format!("{} is here for the second time; delete one", presentable(key))
                }
                (message, _) => message.to_owned(),
            };
            self.refuse_file(path, Some(place), format!("not valid TOML: {message}"));
        }
        lines
    }

    /// Reads the environment variables that begin with the prefix of urlseen into the layers.
    pub(super) fn add_environment(&mut self, pairs: Vec<(OsString, OsString)>) {
        for (name, value) in pairs {
            let name = name.to_string_lossy().into_owned();
            if !name.starts_with(PREFIX) {
                continue;
            }
            let origin = ValueOrigin::Environment(presentable(&name));
            let Ok(value) = value.into_string() else {
                self.refuse(origin, "is not UTF-8; set it to UTF-8 text".to_owned());
                continue;
            };
            if let Some((server, _)) = SECRETS.into_iter().find(|(_, secret)| *secret == name) {
                match Secret::of(server, value) {
                    Ok(secret) => self.secrets.extend(secret.map(|secret| (server, secret))),
                    Err(fault) => self.refuse(origin, fault),
                }
            } else if let Some(key) = KEYS.iter().find(|key| variable(key) == name) {
                self.add(key, Raw::new(value), origin);
            } else {
                self.refuse(origin, unknown_variable(&name));
            }
        }
    }

    /// Reads the `key=value` arguments of `--set` into the layers.
    pub(super) fn add_set(&mut self, arguments: &[String]) {
        for argument in arguments {
            let Some((name, value)) = argument.split_once('=') else {
                let fault = "has no value; write --set key=value, as in --set filter.capacity=1e9";
                self.refuse(ValueOrigin::Set(presentable(argument)), fault.to_owned());
                continue;
            };
            let name = name.trim();
            let origin = ValueOrigin::Set(presentable(name));
            if name == "redis.url" && carries_password(value) {
                let fault = format!(
                    "redis.url is {:?}: a password on the command line shows in the process list; \
                     put it in the environment as URLSEEN_REDIS_PASSWORD, or the URL as \
                     URLSEEN_REDIS__URL",
                    masked(value)
                );
                self.refuse(origin.clone(), fault);
            }
            self.add(name, Raw::new(value.to_owned()), origin);
        }
    }

    /// Adds a value to those of its key. Refuses the name if there is no such key.
    fn add(&mut self, name: &str, raw: Raw, origin: ValueOrigin) {
        match KEYS.iter().find(|key| **key == name) {
            Some(key) => self.found.entry(key).or_default().push((raw, origin)),
            None => self.refuse(origin, unknown_key(name)),
        }
    }

    /// Records a problem that makes the values of a file unknown.
    fn refuse_file(&mut self, path: &Path, place: Option<FilePlace>, fault: String) {
        self.incomplete = true;
        self.refuse(ValueOrigin::File(path.into(), place), fault);
    }
}
