//! Session of a client: its login, name and protocol version.

use std::sync::Arc;

use bytes::Bytes;

use super::command::Hello;
use super::framing::Words;
use super::reply::{Reply, Version, shown, unknown_subcommand};
use super::{ServerState, about};

/// Login, name and protocol version of a client.
pub(super) struct ClientSession {
    state: Arc<ServerState>,
    id: u64,
    /// Protocol version of the next replies.
    pub(super) version: Version,
    name: Vec<u8>,
    /// True if the client may use the filter: it gave the password, or no password is set.
    pub(super) is_known: bool,
}

impl ClientSession {
    pub(super) fn new(state: Arc<ServerState>, id: u64) -> Self {
        let is_known = state.password.is_none();
        Self { state, id, version: Version::Resp2, name: Vec::new(), is_known }
    }

    /// Runs `HELLO` and returns its reply.
    pub(super) fn hello(&mut self, hello: &Hello<'_>) -> Reply {
        let version = match hello.version {
            None => self.version,
            Some(b"2") => Version::Resp2,
            Some(b"3") => Version::Resp3,
            Some(other) if other.iter().all(u8::is_ascii_digit) => {
                return Reply::error("NOPROTO unsupported protocol version");
            }
            Some(_) => {
                return Reply::error("ERR Protocol version is not an integer or out of range");
            }
        };
        if let Some((user, password)) = hello.auth
            && let refusal @ Reply::Error(_) = self.auth(Some(user), password)
        {
            return refusal;
        }
        if !self.is_known {
            return Reply::error(
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                 HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client \
                 and select the RESP protocol version at the same time",
            );
        }
        if let Some(name) = hello.name
            && let refusal @ Reply::Error(_) = self.set_name(name)
        {
            return refusal;
        }
        self.version = version;
        about::hello(version, self.id)
    }

    /// Runs `AUTH` and returns its reply.
    pub(super) fn auth(&mut self, user: Option<&[u8]>, password: &[u8]) -> Reply {
        let is_default = user.is_none_or(|user| user == b"default");
        match &self.state.password {
            None if user.is_none() => Reply::error(
                "ERR AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?",
            ),
            None if is_default => Reply::OK,
            Some(own) if is_default && own.is(password) => {
                self.is_known = true;
                Reply::OK
            }
            _ => Reply::error("WRONGPASS invalid username-password pair or user is disabled."),
        }
    }

    /// Runs `CLIENT` with its subcommands and returns the reply.
    pub(super) fn client(&mut self, subcommand: &[u8], rest: &[&[u8]]) -> Reply {
        let is = |name: &str| subcommand.eq_ignore_ascii_case(name.as_bytes());
        match rest {
            [name] if is("setname") => self.set_name(name),
            [] if is("getname") && self.name.is_empty() => Reply::Null,
            [] if is("getname") => Reply::bulk(self.name.clone()),
            [] if is("id") => Reply::count(self.id),
            _ => unknown_subcommand("CLIENT", subcommand),
        }
    }

    fn set_name(&mut self, name: &[u8]) -> Reply {
        if !name.iter().all(u8::is_ascii_graphic) {
            return Reply::error(
                "ERR Client names cannot contain spaces, newlines or special characters.",
            );
        }
        self.name = name.to_vec();
        Reply::OK
    }
}

/// Builds the error for a key that is not in `serve.keys`.
pub(super) fn unserved(key: &[u8]) -> Reply {
    Reply::error(format!(
        "NOPERM urlseen answers only for the keys in serve.keys, and '{}' is not one of them: a \
         filter must not take the URLs of one crawl for those of another",
        shown(key)
    ))
}

/// Command as it was received.
pub(super) type Received = (Bytes, Words);

/// Commands that wait for `EXEC`.
#[derive(Debug)]
pub(super) struct Transaction {
    /// Commands that `EXEC` will run; `None` after a command was refused.
    pub(super) commands: Option<Vec<Received>>,
    bytes: usize,
}

impl Transaction {
    pub(super) fn new() -> Self {
        Self { commands: Some(Vec::new()), bytes: 0 }
    }

    /// Appends a command to the transaction. Returns false if all commands together have more than
    /// `most` bytes.
    pub(super) fn push(&mut self, command: Received, most: usize) -> bool {
        self.bytes += command.0.len();
        if self.bytes > most {
            self.commands = None;
        } else if let Some(commands) = &mut self.commands {
            commands.push(command);
        }
        self.bytes <= most
    }
}
