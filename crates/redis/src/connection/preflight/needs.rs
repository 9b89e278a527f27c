//! Needs of a crawl in Redis: the types that its keys must have, and the commands that it runs.

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
    /// Type in the reply to `TYPE`.
    pub(super) kind: &'static str,
}

/// Command in the form that the crawl sends. The form states which arguments are keys, because
/// Redis has permissions for keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandNeed {
    words: &'static str,
    args: Vec<Vec<u8>>,
    /// Arguments that are keys.
    pub(super) keys: Vec<Vec<u8>>,
}

impl CommandNeed {
    /// Creates a command without arguments. `words` is the name in capitals, with a blank before a
    /// subcommand: `RPUSH`, `SCRIPT LOAD`.
    pub fn new(words: &'static str) -> Self {
        Self { words, args: Vec::new(), keys: Vec::new() }
    }

    /// Adds an argument that is the name of a key.
    #[must_use]
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        let key = key.into();
        self.keys.push(key.clone());
        self.args.push(key);
        self
    }

    /// Adds an argument that is not a key. Its value does not matter: it only makes the command
    /// complete.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<Vec<u8>>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Returns the name of the command for messages: `SCRIPT LOAD`.
    pub(super) fn name(&self) -> &'static str {
        self.words
    }

    /// Builds the command in the form that Redis takes.
    pub(super) fn to_cmd(&self) -> redis::Cmd {
        let mut cmd = redis::Cmd::new();
        for word in self.words.split(' ') {
            cmd.arg(word);
        }
        cmd.arg(&self.args);
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

    /// Adds a key that must be of `kind` or absent. `kind` is a reply to `TYPE`, such as `list`.
    pub fn key(
        &mut self,
        owner: KeyOwner,
        key: impl Into<Vec<u8>>,
        kind: &'static str,
    ) -> &mut Self {
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
    pub(crate) fn commands(&mut self, key: &str, commands: &[&'static str]) {
        for command in commands {
            let mut words = command.split(' ');
            let need = CommandNeed::new(words.next().unwrap_or_default()).key(key);
            self.command(words.fold(need, CommandNeed::arg));
        }
    }
}
