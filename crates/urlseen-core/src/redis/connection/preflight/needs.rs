//! What a crawl needs of Redis: keys of a type, and commands on them.

/// The types that urlseen's keys have, as `TYPE` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// `list`.
    List,
    /// `hash`.
    Hash,
    /// `string`.
    String,
    /// `set`.
    Set,
    /// `zset`.
    SortedSet,
}

impl KeyKind {
    /// The name that `TYPE` gives it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Hash => "hash",
            Self::String => "string",
            Self::Set => "set",
            Self::SortedSet => "zset",
        }
    }
}

/// Who chose the name of a key, and so what to do when something else is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOwner {
    /// The user, with this key of the config, such as `sink.key`.
    Setting(&'static str),
    /// urlseen, for this purpose, such as `taken list`.
    Own(&'static str),
}

/// A key that must hold a value of one type, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyNeed {
    pub(super) owner: KeyOwner,
    pub(super) key: Vec<u8>,
    pub(super) kind: KeyKind,
}

/// A command as the crawl will send it; what its arguments are decides what an ACL says to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandNeed {
    words: &'static str,
    args: Vec<Arg>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Arg {
    Key(Vec<u8>),
    Plain(Vec<u8>),
}

impl CommandNeed {
    /// A command, or a command and its subcommand with a blank between, in capitals: `RPUSH`,
    /// `SCRIPT LOAD`.
    pub fn new(words: &'static str) -> Self {
        Self { words, args: Vec::new() }
    }

    /// Adds an argument that is the name of a key.
    #[must_use]
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.args.push(Arg::Key(key.into()));
        self
    }

    /// Adds any other argument. Its value does not matter, only that the command is complete.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<Vec<u8>>) -> Self {
        self.args.push(Arg::Plain(arg.into()));
        self
    }

    /// The command as a message can show it: `SCRIPT LOAD`.
    pub(super) fn name(&self) -> &'static str {
        self.words
    }

    /// The keys among the arguments.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.args.iter().filter_map(|arg| match arg {
            Arg::Key(key) => Some(key.as_slice()),
            Arg::Plain(_) => None,
        })
    }

    /// The command as Redis takes it.
    pub(super) fn to_cmd(&self) -> redis::Cmd {
        let mut cmd = redis::Cmd::new();
        for word in self.words.split(' ') {
            cmd.arg(word);
        }
        for Arg::Key(bytes) | Arg::Plain(bytes) in &self.args {
            cmd.arg(bytes);
        }
        cmd
    }
}

/// All that a crawl needs. Each part of urlseen adds its own.
///
/// Commands inside scripts are needs, too: Redis checks those only when they run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    pub(super) keys: Vec<KeyNeed>,
    pub(super) commands: Vec<CommandNeed>,
}

impl Needs {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a key that must be of `kind` or absent.
    pub fn key(&mut self, owner: KeyOwner, key: impl Into<Vec<u8>>, kind: KeyKind) -> &mut Self {
        self.keys.push(KeyNeed { owner, key: key.into(), kind });
        self
    }

    /// Adds a command that the user must be allowed to run.
    pub fn command(&mut self, command: CommandNeed) -> &mut Self {
        self.commands.push(command);
        self
    }
}
