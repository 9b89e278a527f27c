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

    /// Teaches a server the script.
    pub fn load(&self) -> Cmd {
        let mut command = cmd("SCRIPT");
        command.arg("LOAD").arg(&self.text);
        command
    }
}
