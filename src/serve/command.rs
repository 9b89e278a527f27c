//! Commands of clients, read from their words.
//!
//! If Redis 7.0 or RedisBloom 2.8 can send the same reply or error, the server sends it byte for
//! byte. `docs/reference/serve.md` lists the differences and the reasons.

use std::fmt::Write;

use super::about;
use super::bloom::{self, Field};
use super::reply::{Reply, ReplyShape, shown, wrong_arity};
use super::table::Spec;
use urlseen_engine::engine::Wanted;

/// Command of a client, with its arguments. `Say` has the reply, which depends only on the words.
#[derive(Debug)]
pub(super) enum Command<'a> {
    Ask { wanted: Wanted, members: Vec<&'a [u8]>, shape: ReplyShape },
    Card,
    Info { field: Option<Field> },
    Delete,
    Say(Reply),
    Hello(Hello<'a>),
    Auth { user: Option<&'a [u8]>, password: &'a [u8] },
    Client { subcommand: &'a [u8], rest: Vec<&'a [u8]> },
    ServerInfo,
    Quit,
    Multi,
    Exec,
    Discard,
}

/// Arguments of the command `HELLO`.
#[derive(Debug, Default)]
pub(super) struct Hello<'a> {
    pub(super) version: Option<&'a [u8]>,
    pub(super) auth: Option<(&'a [u8], &'a [u8])>,
    pub(super) name: Option<&'a [u8]>,
}

impl<'a> Command<'a> {
    /// Parses the words of a command; `spec` belongs to its name. The error is the reply to the
    /// client.
    pub(super) fn parse(spec: Option<&Spec>, words: &[&'a [u8]]) -> Result<Self, Reply> {
        let Some(spec) = spec else { return Err(unknown(words)) };
        let count = i64::try_from(words.len()).unwrap_or(i64::MAX);
        if if spec.arity < 0 { count < -spec.arity } else { count != spec.arity } {
            return Err(wrong_arity(spec.name));
        }
        let first = words.get(1).copied().unwrap_or_default();
        let behind = |at: usize| words.get(at..).unwrap_or_default().to_vec();
        let ask = |wanted, shape| Self::Ask { wanted, members: behind(2), shape };
        Ok(match spec.name {
            "bf.add" => ask(Wanted::Add, ReplyShape::Bool),
            "bf.madd" => ask(Wanted::Add, ReplyShape::Bools),
            "bf.exists" => ask(Wanted::Test, ReplyShape::Bool),
            "bf.mexists" => ask(Wanted::Test, ReplyShape::Bools),
            "bf.insert" => {
                let members = bloom::insert(&words[2..])?;
                Self::Ask { wanted: Wanted::Add, members, shape: ReplyShape::Bools }
            }
            "bf.reserve" => {
                bloom::reserve(&words[2..])?;
                Self::Say(Reply::error("ERR item exists"))
            }
            "bf.info" => Self::Info { field: bloom::field(&words[2..])? },
            "bf.card" | "scard" => Self::Card,
            "sadd" => ask(Wanted::Add, ReplyShape::Added),
            "sismember" => ask(Wanted::Test, ReplyShape::Number),
            "smismember" => ask(Wanted::Test, ReplyShape::Numbers),
            "srem" => ask(Wanted::Forget, ReplyShape::Removed),
            "del" => Self::Delete,
            "ping" if words.len() > 2 => return Err(wrong_arity("ping")),
            "ping" if words.len() == 1 => Self::Say(Reply::Simple("PONG")),
            "ping" | "echo" => Self::Say(Reply::bulk(first)),
            "select" => Self::Say(select(first)),
            "hello" => Self::Hello(hello(&words[1..])?),
            "auth" => match words[1..] {
                [password] => Self::Auth { user: None, password },
                [user, password] => Self::Auth { user: Some(user), password },
                _ => return Err(Reply::error("ERR syntax error")),
            },
            "client" => Self::Client { subcommand: first, rest: behind(2) },
            "command" => Self::Say(about::commands(&words[1..])),
            "info" => Self::ServerInfo,
            "quit" => Self::Quit,
            "multi" => Self::Multi,
            "exec" => Self::Exec,
            "discard" => Self::Discard,
            other => unreachable!("{other} has no meaning"),
        })
    }

    /// Returns true for a command that runs immediately even between `MULTI` and `EXEC`.
    pub(super) fn is_for_transactions(&self) -> bool {
        matches!(self, Self::Multi | Self::Exec | Self::Discard | Self::Quit)
    }

    /// Returns true for a command that a client may send before the password.
    pub(super) fn is_for_strangers(&self) -> bool {
        matches!(self, Self::Auth { .. } | Self::Hello(_) | Self::Quit)
    }
}

fn hello<'a>(words: &[&'a [u8]]) -> Result<Hello<'a>, Reply> {
    let Some((&version, mut rest)) = words.split_first() else { return Ok(Hello::default()) };
    let mut hello = Hello { version: Some(version), ..Hello::default() };
    while let Some(&option) = rest.first() {
        rest = match rest {
            [_, user, password, behind @ ..] if option.eq_ignore_ascii_case(b"auth") => {
                hello.auth = Some((user, password));
                behind
            }
            [_, name, behind @ ..] if option.eq_ignore_ascii_case(b"setname") => {
                hello.name = Some(name);
                behind
            }
            _ => {
                let option = shown(option);
                return Err(Reply::error(format!("ERR Syntax error in HELLO option '{option}'")));
            }
        };
    }
    Ok(hello)
}

/// Builds the error that Redis sends for an unknown command.
fn unknown(words: &[&[u8]]) -> Reply {
    /// Approximate maximum number of bytes of arguments in the error.
    const SHOWN: usize = 128;
    let mut arguments = String::new();
    for word in &words[1..] {
        if arguments.len() >= SHOWN {
            break;
        }
        write!(arguments, "'{}' ", shown(word)).expect("a string takes all");
    }
    let name = shown(words[0]);
    Reply::error(format!("ERR unknown command '{name}', with args beginning with: {arguments}"))
}

/// Runs `SELECT` and returns its reply. Only database 0 exists.
fn select(database: &[u8]) -> Reply {
    /// Number of databases that a Redis server has by default.
    const DATABASES: i64 = 16;
    let number = std::str::from_utf8(database).ok().and_then(|text| text.parse::<i64>().ok());
    match number {
        Some(0) => Reply::OK,
        Some(1..DATABASES) => Reply::error("ERR urlseen serves only database 0"),
        Some(_) => Reply::error("ERR DB index is out of range"),
        None => Reply::error("ERR value is not an integer or out of range"),
    }
}
