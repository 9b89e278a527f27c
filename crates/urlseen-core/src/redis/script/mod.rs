//! Scripts that run in Redis.

use redis::{Cmd, cmd};

/// What stands before all else in a script: how many arguments Lua hands over at once, and the
/// refusal of what this user may not do.
pub const COMMON: &str = include_str!("common.lua");

/// A script, and the name that Redis knows it by.
#[derive(Debug)]
pub struct Script {
    text: String,
    hash: String,
}

impl Script {
    /// Comments and indentation stay here.
    pub fn new(text: &str) -> Self {
        let lines = text.lines().map(str::trim_start);
        let code = lines.filter(|line| !line.is_empty() && !line.starts_with("--"));
        let text = code.collect::<Vec<_>>().join("\n");
        Self { hash: redis::Script::new(&text).get_hash().to_owned(), text }
    }

    /// What is sent.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its SHA-1: what `EVALSHA` takes.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// A call with these keys and arguments.
    pub(crate) fn call(&self, keys: &[&str], arguments: Vec<Vec<u8>>) -> Call<'_> {
        let keys = keys.iter().map(ToString::to_string).collect();
        Call { script: self, keys, arguments }
    }

    /// Teaches a server the script.
    pub fn load(&self) -> Cmd {
        let mut command = cmd("SCRIPT");
        command.arg("LOAD").arg(&self.text);
        command
    }
}

/// A script with the keys and arguments of one call.
#[derive(Debug)]
pub struct Call<'a> {
    script: &'a Script,
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
}

impl Call<'_> {
    /// The call with the script's text, which any server understands.
    pub fn by_text(&self) -> Cmd {
        self.by("EVAL", self.script.text())
    }

    /// The call by the script's hash. A server that does not know the script answers `NOSCRIPT`.
    pub fn by_hash(&self) -> Cmd {
        self.by("EVALSHA", self.script.hash())
    }

    fn by(&self, name: &str, script: &str) -> Cmd {
        let mut command = cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.arguments);
        command
    }
}
