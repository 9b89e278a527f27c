//! Needs of a crawl in Redis: the types that its keys must have, and the commands that it runs.

use redis::Cmd;

/// Origin of a key's name: the user or urlseen. The advice in messages depends on the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOwner {
    /// Key that the user named, with the setting that names it, such as `sink.key`.
    Setting(&'static str),
    /// Key that urlseen named, with its purpose, such as `crawl record`.
    Own(&'static str),
}

/// Key that must hold a value of one type, or not exist.
#[derive(Debug, Clone)]
pub(super) struct KeyNeed {
    pub(super) owner: KeyOwner,
    pub(super) key: String,
    /// Type in the reply to `TYPE`.
    pub(super) kind: &'static str,
}

/// Command in the form that the crawl sends. The form states which arguments are keys, because
/// Redis has permissions for keys.
#[derive(Debug, Clone)]
pub(super) struct CommandNeed {
    /// Name for messages, with a blank before a subcommand.
    pub(super) name: String,
    pub(super) command: Cmd,
    /// Arguments that are keys.
    pub(super) keys: Vec<String>,
}

/// Keys and commands that a crawl needs in Redis. Each part of urlseen adds its own.
///
/// Commands inside scripts must be added, too. Otherwise, Redis refuses such a command only when
/// the script runs.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    pub(super) keys: Vec<KeyNeed>,
    pub(super) commands: Vec<CommandNeed>,
}

impl Needs {
    /// Adds all needs of another part.
    pub fn extend(&mut self, other: Self) {
        self.keys.extend(other.keys);
        self.commands.extend(other.commands);
    }

    /// Adds a key that must be of `kind` or absent. `kind` is a reply to `TYPE`, such as `list`.
    pub fn key(&mut self, owner: KeyOwner, key: &str, kind: &'static str) {
        self.keys.push(KeyNeed { owner, key: key.to_owned(), kind });
    }

    /// Adds commands that the user must be allowed to run. Each text has the name of a command in
    /// capitals and its arguments, separated by blanks. Each `$` stands for the next of `keys`, and
    /// the values of the other arguments only make the command complete.
    pub fn commands(&mut self, keys: &[&str], commands: &[&str]) {
        for text in commands {
            let is_name =
                |it: &&str| it.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            let name: Vec<_> = text.split(' ').take_while(is_name).collect();
            let keys = &keys[..text.matches('$').count()];
            let (mut command, mut next) = (Cmd::new(), keys.iter());
            for word in text.split(' ') {
                command.arg(if word == "$" { next.next().unwrap_or(&word) } else { word });
            }
            let (name, keys) = (name.join(" "), keys.iter().map(ToString::to_string).collect());
            self.commands.push(CommandNeed { name, command, keys });
        }
    }
}
