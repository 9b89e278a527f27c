//! Lua scripts that run in Redis.

use std::sync::Arc;

use redis::{Cmd, cmd};

/// Beginning of every script: the maximum number of arguments of a Lua call, and the refusal of
/// commands that the user may not run.
pub const COMMON: &str = include_str!("common.lua");

/// Lua script, with the hash by which Redis identifies the script.
#[derive(Debug, Clone)]
pub struct Script {
    text: Arc<str>,
    hash: Arc<str>,
}

impl Script {
    /// Prepares a script. Comments and indentation are not sent to Redis.
    pub fn new(text: &str) -> Self {
        let lines = text.lines().map(str::trim_start);
        let code = lines.filter(|line| !line.is_empty() && !line.starts_with("--"));
        let text = code.collect::<Vec<_>>().join("\n");
        Self { hash: redis::Script::new(&text).get_hash().into(), text: text.into() }
    }

    /// Returns the text that is sent to Redis.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the SHA-1 of the text, the argument of `EVALSHA`.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Prepares a call with these keys and arguments.
    pub fn call(&self, keys: &[&str], arguments: Vec<Vec<u8>>) -> Call {
        let keys = keys.iter().map(ToString::to_string).collect();
        Call { script: self.clone(), keys, arguments }
    }

    /// Builds the command that loads the script into a server.
    pub fn load(&self) -> Cmd {
        let mut command = cmd("SCRIPT");
        command.arg("LOAD").arg(&*self.text);
        command
    }
}

/// Script with the keys and arguments of one call.
#[derive(Debug)]
pub struct Call {
    script: Script,
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
}

impl Call {
    /// Builds the call with the script's text, which any server understands.
    pub fn by_text(&self) -> Cmd {
        self.by("EVAL", self.script.text())
    }

    /// Builds the call by the script's hash. A server that does not know the script answers
    /// `NOSCRIPT`.
    pub fn by_hash(&self) -> Cmd {
        self.by("EVALSHA", self.script.hash())
    }

    fn by(&self, name: &str, script: &str) -> Cmd {
        let mut command = cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.arguments);
        command
    }
}
