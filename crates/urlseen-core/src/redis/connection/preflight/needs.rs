//! Needs of a crawl in Redis: the types that its keys must have, and the commands that it runs.

/// Types of urlseen's keys, as `TYPE` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// List, `list` in the reply to `TYPE`.
    List,
    /// Hash, `hash` in the reply to `TYPE`.
    Hash,
    /// String, `string` in the reply to `TYPE`.
    String,
    /// Set, `set` in the reply to `TYPE`.
    Set,
    /// Sorted set, `zset` in the reply to `TYPE`.
    SortedSet,
}

impl KeyKind {
    /// Returns the name of the type in the reply to `TYPE`.
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

/// Origin of a key's name: the user or urlseen. The advice in messages depends on the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOwner {
    /// Key that the user named, with the setting that names it, such as `sink.key`.
    Setting(&'static str),
    /// Key that urlseen named, with its purpose, such as `crawl record`.
    Own(&'static str),
}

/// Key that must hold a value of one type, or not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyNeed {
    pub(super) owner: KeyOwner,
    pub(super) key: Vec<u8>,
    pub(super) kind: KeyKind,
}

/// Command in the form that the crawl sends. The form states which arguments are keys, because
/// Redis has permissions for keys.
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
    /// Creates a command without arguments. `words` is the name in capitals, with a blank before a
    /// subcommand: `RPUSH`, `SCRIPT LOAD`.
    pub fn new(words: &'static str) -> Self {
        Self { words, args: Vec::new() }
    }

    /// Adds an argument that is the name of a key.
    #[must_use]
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.args.push(Arg::Key(key.into()));
        self
    }

    /// Adds an argument that is not a key. Its value does not matter: it only makes the command
    /// complete.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<Vec<u8>>) -> Self {
        self.args.push(Arg::Plain(arg.into()));
        self
    }

    /// Returns the name of the command for messages: `SCRIPT LOAD`.
    pub(super) fn name(&self) -> &'static str {
        self.words
    }

    /// Returns the arguments that are keys.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.args.iter().filter_map(|arg| match arg {
            Arg::Key(key) => Some(key.as_slice()),
            Arg::Plain(_) => None,
        })
    }

    /// Builds the command in the form that Redis takes.
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

/// Keys and commands that a crawl needs in Redis. Each part of urlseen adds its own.
///
/// Commands inside scripts must be added, too. Otherwise, Redis refuses such a command only when
/// the script runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    pub(super) keys: Vec<KeyNeed>,
    pub(super) commands: Vec<CommandNeed>,
}

impl Needs {
    /// Creates an empty collection of needs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds all needs of another part.
    pub fn extend(&mut self, other: Self) {
        self.keys.extend(other.keys);
        self.commands.extend(other.commands);
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

    /// Adds commands on a key. Each text has the name of a command, and the arguments that follow
    /// the key, separated by blanks: `LTRIM 0 -1`.
    pub fn commands(&mut self, key: &str, commands: &[&'static str]) {
        for command in commands {
            let mut words = command.split(' ');
            let need = CommandNeed::new(words.next().unwrap_or_default()).key(key);
            self.command(words.fold(need, CommandNeed::arg));
        }
    }
}
