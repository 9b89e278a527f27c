//! Table of the commands that the server knows, as the reply to `COMMAND` shows it.

/// Facts about a command, in the form of the reply to `COMMAND`.
pub(super) struct Spec {
    pub(super) name: &'static str,
    /// Number of words of the command, including its name. A negative number stands for a minimum:
    /// -3 means at least three words.
    pub(super) arity: i64,
    /// Flags in the reply to `COMMAND`.
    pub(super) flags: &'static [&'static str],
    /// Positions of the first and the last key; -1 is the last word, and 0 stands for no key.
    pub(super) keys: (i64, i64),
}

impl Spec {
    /// Returns the keys among the words of a parsed command.
    pub(super) fn keys_of<'w, 'a>(&self, words: &'w [&'a [u8]]) -> &'w [&'a [u8]] {
        match self.keys {
            (1, 1) => &words[1..2],
            (1, -1) => &words[1..],
            _ => &[],
        }
    }
}

const fn spec(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    keys: (i64, i64),
) -> Spec {
    Spec { name, arity, flags, keys }
}

const WRITE: &[&str] = &["write", "denyoom", "fast"];
const READ: &[&str] = &["readonly", "fast"];
const PLAIN: &[&str] = &["loading", "stale", "fast"];

/// All commands that the server knows, by name.
pub(super) const SPECS: &[Spec] = &[
    spec("auth", -2, PLAIN, (0, 0)),
    spec("bf.add", 3, WRITE, (1, 1)),
    spec("bf.card", 2, READ, (1, 1)),
    spec("bf.exists", 3, READ, (1, 1)),
    spec("bf.info", -2, READ, (1, 1)),
    spec("bf.insert", -4, WRITE, (1, 1)),
    spec("bf.madd", -3, WRITE, (1, 1)),
    spec("bf.mexists", -3, READ, (1, 1)),
    spec("bf.reserve", -4, WRITE, (1, 1)),
    spec("client", -2, PLAIN, (0, 0)),
    spec("command", -1, PLAIN, (0, 0)),
    spec("del", -2, &["write"], (1, -1)),
    spec("discard", 1, PLAIN, (0, 0)),
    spec("echo", 2, PLAIN, (0, 0)),
    spec("exec", 1, PLAIN, (0, 0)),
    spec("hello", -1, PLAIN, (0, 0)),
    spec("info", -1, PLAIN, (0, 0)),
    spec("multi", 1, PLAIN, (0, 0)),
    spec("ping", -1, PLAIN, (0, 0)),
    spec("quit", -1, PLAIN, (0, 0)),
    spec("sadd", -3, WRITE, (1, 1)),
    spec("scard", 2, READ, (1, 1)),
    spec("select", 2, PLAIN, (0, 0)),
    spec("sismember", 3, READ, (1, 1)),
    spec("smismember", -3, READ, (1, 1)),
    spec("srem", -3, &["write", "fast"], (1, 1)),
];

/// Finds a command by its name in any case.
pub(super) fn find(name: &[u8]) -> Option<&'static Spec> {
    SPECS.iter().find(|spec| name.eq_ignore_ascii_case(spec.name.as_bytes()))
}
