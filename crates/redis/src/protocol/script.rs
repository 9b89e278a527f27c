//! Lua scripts that run in Redis.

use std::sync::Arc;

use redis::{Cmd, cmd};

/// Beginning of every script: functions that several scripts need.
const COMMON: &str = include_str!("common.lua");

/// Lua script, with the hash by which Redis identifies the script.
#[derive(Debug, Clone)]
pub struct Script {
    /// Text that is sent to Redis.
    pub text: Arc<str>,
    /// SHA-1 of the text, the argument of `EVALSHA`.
    pub hash: Arc<str>,
}

impl Script {
    /// Prepares a script of this text.
    pub(super) fn new(text: &str) -> Self {
        Self::with_kind("", text)
    }

    /// Prepares a script of this text, which calls the functions `kind` of a kind of filter.
    /// Comments and indentation are not sent to Redis.
    pub fn with_kind(kind: &str, text: &str) -> Self {
        let lines = [COMMON, kind, text].into_iter().flat_map(str::lines).map(str::trim_start);
        let code = lines.filter(|line| !line.is_empty() && !line.starts_with("--"));
        let text = code.collect::<Vec<_>>().join("\n");
        Self { hash: redis::Script::new(&text).get_hash().into(), text: text.into() }
    }

    /// Prepares a call with these keys and arguments.
    pub fn call(&self, keys: &[&str], arguments: Vec<Vec<u8>>) -> Call {
        let keys = keys.iter().map(ToString::to_string).collect();
        Call::Script { script: self.clone(), keys, arguments }
    }
}

/// Command, or script with the keys and arguments of one call.
#[derive(Debug)]
pub enum Call {
    /// Command that is sent as it is.
    Command(Cmd),
    /// Script that is sent by its hash, or by its text.
    Script {
        /// Text of the script, and its hash.
        script: Script,
        /// Redis keys of the call, which the script has in `KEYS`.
        keys: Vec<String>,
        /// Arguments of the call, which the script has in `ARGV`.
        arguments: Vec<Vec<u8>>,
    },
}

impl Call {
    /// Builds the command of the call. If `by_text` is true, the command has the text of the
    /// script, which any server understands. A server that does not know the hash of a script
    /// answers `NOSCRIPT`.
    pub fn command(&self, by_text: bool) -> Cmd {
        let (script, keys, arguments) = match self {
            Self::Command(command) => return command.clone(),
            Self::Script { script, keys, arguments } => (script, keys, arguments),
        };
        let mut command = cmd(if by_text { "EVAL" } else { "EVALSHA" });
        command.arg(if by_text { &*script.text } else { &*script.hash });
        command.arg(keys.len()).arg(keys).arg(arguments);
        command
    }

    /// Builds the command with the text of the script.
    pub fn by_text(&self) -> Cmd {
        self.command(true)
    }
}

impl From<Cmd> for Call {
    fn from(command: Cmd) -> Self {
        Self::Command(command)
    }
}
