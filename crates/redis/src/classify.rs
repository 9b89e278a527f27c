//! Conversion of errors of the `redis` crate to [`LinkError`].
//!
//! Redis begins an error reply with a code, and usually the code alone determines the error. The
//! text after the code matters in two cases. In the first case, the code is the general `ERR`. In
//! the second case, the error was raised inside a script, and Redis puts other text around it.
//! Redis 7 keeps the code and adds text at the end:
//!
//! ```text
//! OOM command not allowed when used memory > 'maxmemory'. script: SHA, on @user_script:1.
//! ```
//!
//! Redis 6.2 puts the code after the position in the script. If the script used `redis.call`, not
//! `redis.pcall`, an `ERR` comes before that position. The code may keep its `-`:
//!
//! ```text
//! @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.
//! ERR Error running script (call to f_SHA): @user_script:1: @user_script: 1: -OOM command not …
//! ERR Error running script (call to f_SHA): @user_script:1: WRONGTYPE Operation against …
//! ```
//!
//! If an error makes Redis refuse a whole transaction at `EXEC`, the reply also has other text
//! around the error:
//!
//! ```text
//! EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxme…
//! ```

use std::error::Error;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind, RedisError, ServerError};

use super::error::{Denied, LinkError};

impl From<RedisError> for LinkError {
    /// Converts an error. For a pipeline with several errors, converts the first one.
    fn from(error: RedisError) -> Self {
        match error.clone().into_server_errors() {
            Some(errors) => match errors.first() {
                Some((_, error)) => error.into(),
                None => Self::Garbled { cause: "a pipeline failed without an error".to_owned() },
            },
            None => of_client(&error),
        }
    }
}

impl From<&ServerError> for LinkError {
    fn from(error: &ServerError) -> Self {
        of_reply(error.code(), error.details().unwrap_or_default())
    }
}

/// Converts an error that the `redis` crate raised itself.
fn of_client(error: &RedisError) -> LinkError {
    if error.is_timeout() {
        return LinkError::LostConnection { cause: "no answer in the time allowed".to_owned() };
    }
    match error.kind() {
        #[cfg(feature = "link")]
        ErrorKind::Io
            if let Some(refused) =
                io_error(error).and_then(super::connection::certificate_error) =>
        {
            refused
        }
        ErrorKind::Io => {
            let cause = match io_error(error).map(io::Error::kind) {
                // The crate reports these kinds when the server closed the connection.
                Some(io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof) => {
                    "the server closed it".to_owned()
                }
                _ => error.to_string(),
            };
            LinkError::LostConnection { cause }
        }
        // Some checks of the crate raise errors of this kind, without a code.
        ErrorKind::Server(_) => LinkError::Refused {
            code: error.code().unwrap_or("ERR").to_owned(),
            reply: error.detail().unwrap_or_default().to_owned(),
        },
        // The crate cannot read the reply.
        _ => LinkError::Garbled { cause: error.to_string() },
    }
}

/// Returns the error of the operating system that caused an error of the crate, if there is one.
fn io_error(error: &RedisError) -> Option<&io::Error> {
    // The crate wraps the cause in an `Arc` that it shares.
    let source = error.source()?;
    match source.downcast_ref::<Arc<dyn Error + Send + Sync>>() {
        Some(shared) => shared.downcast_ref(),
        None => source.downcast_ref(),
    }
}

/// Classifies an error reply by its code, the part before the first blank.
fn of_reply(code: &str, reply: &str) -> LinkError {
    match code {
        "LOADING" => LinkError::Loading,
        "MISCONF" => LinkError::Misconf,
        "BUSY" => LinkError::Busy,
        "READONLY" => LinkError::ReadOnly,
        "OOM" => LinkError::OutOfMemory,
        "NOSCRIPT" => LinkError::NoScript,
        "MASTERDOWN" => LinkError::MasterDown,
        "NOREPLICAS" => LinkError::NoReplicas,
        "CLUSTERDOWN" => LinkError::ClusterDown { reply: format!("{code} {reply}") },
        "TRYAGAIN" => LinkError::SlotDivided,
        "UNBLOCKED" => LinkError::Unblocked,
        "MOVED" if let Some((slot, to)) = redirection(reply) => LinkError::Moved { slot, to },
        "ASK" if let Some((slot, to)) = redirection(reply) => LinkError::SlotMoving { slot, to },
        "CROSSSLOT" => LinkError::CrossSlot,
        "WRONGPASS" => LinkError::WrongPassword { user: "default".to_owned() },
        "NOAUTH" => LinkError::AuthNeeded,
        "DENIED" => LinkError::Protected,
        "NOPERM" => LinkError::NoPermission { denied: denied(reply) },
        "WRONGTYPE" => LinkError::WrongType,
        "ERR" => in_script(reply).map_or_else(|| of_words(reply), of_wrapped),
        "EXECABORT" if let Some((_, cause)) = reply.split_once("because of: ") => of_wrapped(cause),
        "@user_script:" => of_wrapped(behind_line(reply).unwrap_or(reply)),
        _ => LinkError::Refused { code: code.to_owned(), reply: reply.to_owned() },
    }
}

/// Reads slot and address of `3999 10.0.0.2:6379`.
fn redirection(reply: &str) -> Option<(u16, String)> {
    let mut words = reply.split(' ');
    Some((words.next()?.parse().ok()?, words.next()?.to_owned()))
}

/// Extracts the error of a script from a reply of Redis 6.2 that contains it.
fn in_script(reply: &str) -> Option<&str> {
    let call = reply.strip_prefix("Error running script (call to f_")?;
    let (_, line) = call.split_once("): @user_script:")?;
    let (_, inner) = line.split_once(": ")?;
    match inner.strip_prefix("@user_script: ") {
        Some(at) => behind_line(at),
        None => Some(inner),
    }
}

/// Cuts the line number off `1: -OOM …`.
fn behind_line(at: &str) -> Option<&str> {
    at.split_once(": ").map(|(_, error)| error)
}

/// Classifies an error after the text around it was removed. The error consists of a code and text,
/// or only of text.
fn of_wrapped(error: &str) -> LinkError {
    let error = error.strip_prefix('-').unwrap_or(error);
    let (code, rest) = error.split_once(' ').unwrap_or((error, ""));
    let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_uppercase());
    if is_code { of_reply(code, rest) } else { of_words(error) }
}

/// Classifies an error by its text, because the error has no code of its own.
fn of_words(reply: &str) -> LinkError {
    let script_user = "The user executing the script can't ";
    if let Some(what) = reply.strip_prefix(script_user) {
        let denied = if what.starts_with("run ") { Denied::CommandInScript } else { Denied::Key };
        LinkError::NoPermission { denied }
    } else if let Some(rest) = reply.strip_prefix("unknown command ") {
        // Redis repeats the arguments after the name, and they may hold a password.
        LinkError::UnknownCommand { command: quoted(rest).unwrap_or_default().to_uppercase() }
    } else if reply.starts_with("Unknown Redis command called from") {
        LinkError::UnknownCommand { command: "called by the script".to_owned() }
    } else if reply.starts_with("Script attempted to access a non local key") {
        // While a slot is being moved, a key that a script has emptied counts as moved.
        LinkError::SlotDivided
    } else if reply.starts_with("Protocol error") {
        // Redis then closes the connection. The usual cause is an argument that is too long.
        LinkError::LostConnection { cause: format!("the server closed it with {reply:?}") }
    } else if reply.starts_with("max number of clients") {
        LinkError::TooManyClients
    } else if reply.starts_with("WAIT cannot be used with replica") {
        LinkError::ReadOnly
    } else if reply.contains("Script killed by user") {
        LinkError::ScriptKilled
    } else if reply.contains("without any password configured")
        || reply.contains("no password is set")
    {
        LinkError::NoPasswordSet
    } else {
        LinkError::Refused { code: "ERR".to_owned(), reply: reply.to_owned() }
    }
}

/// Reads a `NOPERM` reply. `… run the 'lpush' command …` names a command; every other reply is
/// about keys.
fn denied(reply: &str) -> Denied {
    match reply.split_once("run the ").and_then(|(_, rest)| quoted(rest)) {
        Some(command) => Denied::Command(command.to_uppercase()),
        None if reply.contains("command") && !reply.contains("key") => Denied::CommandInScript,
        None => Denied::Key,
    }
}

/// Extracts the quoted or backquoted word at the start of `text`.
fn quoted(text: &str) -> Option<&str> {
    let mark = text.chars().next().filter(|mark| matches!(mark, '\'' | '`'))?;
    text[1..].split(mark).next()
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
