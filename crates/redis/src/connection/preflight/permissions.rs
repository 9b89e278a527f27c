//! Permissions of the ACL user, found without running any command.
//!
//! Between `MULTI` and `DISCARD` Redis only queues commands, but checks each command on arrival:
//! its existence, and the user's permissions for the command and its keys. It also refuses commands
//! that the crawl could not run because memory is lacking, or because the server is a replica. So
//! the check sends each command in the form that the crawl will use. Redis runs none of these
//! commands.

use redis::{Pipeline, RedisResult, Value};

use super::needs::Needs;
use super::problem::{MissingPermissions, PreflightError};
use crate::connection::link::Link;
use crate::error::{Denied, LinkError};

/// Commands that Redis has refused so far, and conclusions about their keys.
#[derive(Default)]
pub(super) struct Refusals<'a> {
    /// Commands that the user may not run.
    commands: Vec<String>,
    /// Commands that were denied for one of their keys. Redis does not name the key.
    on_keys: Vec<(String, Vec<&'a [u8]>)>,
    /// Keys that occur in at least one accepted command.
    proven: Vec<&'a [u8]>,
    /// Keys of commands that were themselves denied. Redis then does not check the keys.
    unproven: Vec<&'a [u8]>,
    unknown: Vec<String>,
    troubles: Vec<LinkError>,
    blind: bool,
}

impl<'a> Refusals<'a> {
    /// Records the reply to a command with these keys.
    pub(super) fn note<T>(
        &mut self,
        name: &str,
        keys: impl Iterator<Item = &'a [u8]>,
        reply: RedisResult<T>,
    ) -> Option<T> {
        let trouble = match reply {
            Ok(value) => {
                keys.for_each(|key| push_new(&mut self.proven, key));
                return Some(value);
            }
            Err(error) => LinkError::from(error),
        };
        match trouble {
            LinkError::NoPermission { denied: Denied::Key } => {
                self.on_keys.push((name.to_owned(), keys.collect()));
            }
            LinkError::NoPermission { .. } => {
                push_new(&mut self.commands, name.to_owned());
                keys.for_each(|key| push_new(&mut self.unproven, key));
            }
            LinkError::UnknownCommand { .. } => push_new(&mut self.unknown, name.to_owned()),
            other => push_new(&mut self.troubles, other),
        }
        None
    }

    /// Queues every needed command on `connection`. No other code may use the connection during or
    /// after the call.
    pub(super) async fn rehearse(
        &mut self,
        connection: &mut Link,
        needs: &'a Needs,
    ) -> Result<(), LinkError> {
        // Redis must answer `MULTI` before any other command is sent: without `MULTI` the commands
        // would run.
        let multi = redis::cmd("MULTI").query_async::<()>(connection).await;
        if self.note("MULTI", [].into_iter(), multi).is_none() {
            self.blind = true;
            return Ok(());
        }
        let mut rehearsal = Pipeline::new();
        rehearsal.ignore_errors();
        let (ending, queued): (Vec<_>, Vec<_>) =
            needs.commands.iter().partition(|command| command.name() == "EXEC");
        for command in &queued {
            rehearsal.add_command(command.to_cmd());
        }
        rehearsal.add_command(redis::cmd("DISCARD"));
        let replies: Vec<RedisResult<Value>> = rehearsal.query_async(connection).await?;
        let mut replies = replies.into_iter();
        for (command, reply) in queued.into_iter().zip(replies.by_ref()) {
            self.note(command.name(), command.keys.iter().map(Vec::as_slice), reply);
        }
        if let Some(reply) = replies.next() {
            self.note("DISCARD", [].into_iter(), reply);
        }
        // An `EXEC` runs the commands that were queued before it. So `EXEC` is checked in a
        // transaction without commands.
        for command in ending {
            let mut nothing = Pipeline::new();
            nothing.ignore_errors().cmd("MULTI").add_command(command.to_cmd());
            let mut replies: Vec<RedisResult<Value>> = nothing.query_async(connection).await?;
            let exec = replies.pop().expect("a reply a command");
            self.note(command.name(), command.keys.iter().map(Vec::as_slice), exec);
        }
        Ok(())
    }

    /// Lists the keys that the user may not touch, each with the commands denied on it.
    fn denied_keys(&self) -> Vec<(&'a [u8], Vec<String>)> {
        let mut denied: Vec<(&[u8], Vec<String>)> = Vec::new();
        let is_sure = |keys: &[&[u8]]| keys.len() == 1;
        let (sure, guessed): (Vec<_>, Vec<_>) =
            self.on_keys.iter().partition(|(_, keys)| is_sure(keys));
        for (name, keys) in sure.into_iter().chain(guessed) {
            // Redis does not tell which of several keys it denied. First choice: the keys that
            // another reply proves to be denied. Second choice: the keys that occur in no accepted
            // command. Third choice: all keys.
            let known = |key: &&&[u8]| denied.iter().any(|(other, _)| other == *key);
            let mut guilty: Vec<&[u8]> = keys.iter().filter(known).copied().collect();
            if guilty.is_empty() {
                guilty = keys.iter().filter(|key| !self.proven.contains(key)).copied().collect();
            }
            if guilty.is_empty() {
                guilty.clone_from(keys);
            }
            for key in guilty {
                match denied.iter_mut().find(|(other, _)| *other == key) {
                    Some((_, names)) => push_new(names, name.clone()),
                    None => denied.push((key, vec![name.clone()])),
                }
            }
        }
        denied
    }

    /// Converts the refusals into problems.
    pub(super) fn into_problems(self, user: &str) -> Vec<PreflightError> {
        let keys = self.denied_keys();
        let Self { commands, proven, unproven, unknown, troubles, blind, .. } = self;
        let mut problems = Vec::new();
        if !commands.is_empty() || !keys.is_empty() {
            let denied = |key: &[u8]| keys.iter().any(|(other, _)| *other == key);
            let unproven = unproven.into_iter().filter(|key| !proven.contains(key) && !denied(key));
            problems.push(PreflightError::Permissions(MissingPermissions {
                user: user.to_owned(),
                unproven: unproven.map(<[u8]>::to_vec).collect(),
                keys: keys.into_iter().map(|(key, names)| (key.to_vec(), names)).collect(),
                blind: blind && commands.iter().any(|name| name == "MULTI"),
                commands,
            }));
        }
        if !unknown.is_empty() {
            problems.push(PreflightError::UnknownCommands { commands: unknown });
        }
        problems.extend(troubles.into_iter().map(PreflightError::Link));
        problems
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// Returns the ACL rule that grants a command: `+script|load` for `SCRIPT LOAD`.
pub(super) fn command_rule(name: &str) -> String {
    format!("+{}", name.to_lowercase().replace(' ', "|"))
}

/// Returns an ACL pattern that matches a key. An administrator can type it after `ACL SETUSER`.
/// Characters with a meaning in patterns get a backslash. Characters with a meaning on a command
/// line become a `?`.
pub(super) fn key_rule(key: &[u8]) -> String {
    let mut rule = "~".to_owned();
    for &byte in key {
        match byte {
            b'*' | b'?' | b'[' | b']' | b'\\' => rule.extend(['\\', char::from(byte)]),
            b'"' | b'\'' => rule.push('?'),
            byte if byte.is_ascii_graphic() => rule.push(char::from(byte)),
            _ => rule.push('?'),
        }
    }
    rule
}

/// Shows a key in a message.
pub(super) fn shown(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) => text.escape_debug().to_string(),
        Err(_) => key.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_for_a_key_matches_it_and_can_be_typed() {
        for (key, rule) in [
            (&b"urlseen:{demo:discovered}:state"[..], "~urlseen:{demo:discovered}:state"),
            (b"a*b?c[d]e\\f", "~a\\*b\\?c\\[d\\]e\\\\f"),
            (b"two words", "~two?words"),
            (b"it's \"quoted\"", "~it?s??quoted?"),
            (b"\xff\n", "~??"),
        ] {
            assert_eq!(key_rule(key), rule);
        }
    }

    #[test]
    fn a_key_is_shown_on_one_line() {
        assert_eq!(shown("demo:größe".as_bytes()), "demo:größe");
        assert_eq!(shown(b"a\nb"), "a\\nb");
        assert_eq!(shown(b"a\xff"), "a\\xff");
    }

    /// Records a command on these keys as accepted, or as denied for one of its keys.
    fn note<'a>(refusals: &mut Refusals<'a>, name: &str, keys: &[&'a str], through: bool) {
        let denied =
            redis::parse_redis_value(b"-NOPERM No permissions to access a key\r\n").unwrap();
        let reply = if through { Ok(Value::Okay) } else { denied.extract_error() };
        refusals.note(name, keys.iter().map(|key| key.as_bytes()), reply);
    }

    fn denied_keys(refusals: &Refusals<'_>) -> Vec<String> {
        refusals
            .denied_keys()
            .iter()
            .map(|(key, names)| format!("{} {names:?}", shown(key)))
            .collect()
    }

    #[test]
    fn of_several_keys_those_without_an_accepted_command_are_to_blame() {
        let mut refusals = Refusals::default();
        note(&mut refusals, "EVALSHA", &["a", "b", "c"], false);
        note(&mut refusals, "LLEN", &["a"], true);
        assert_eq!(denied_keys(&refusals), ["b [\"EVALSHA\"]", "c [\"EVALSHA\"]"]);
        // `LLEN` alone proves that `c` is denied, which explains the earlier denial.
        note(&mut refusals, "LLEN", &["c"], false);
        assert_eq!(denied_keys(&refusals), ["c [\"LLEN\", \"EVALSHA\"]"]);
    }

    #[test]
    fn if_all_keys_may_be_read_any_of_them_may_lack_the_right_to_write() {
        let mut refusals = Refusals::default();
        note(&mut refusals, "EVALSHA", &["a", "b"], false);
        note(&mut refusals, "TYPE", &["a", "b"], true);
        assert_eq!(denied_keys(&refusals), ["a [\"EVALSHA\"]", "b [\"EVALSHA\"]"]);
    }

    #[test]
    fn the_rule_for_a_subcommand_has_a_bar() {
        assert_eq!(command_rule("SCRIPT LOAD"), "+script|load");
        assert_eq!(command_rule("RPUSH"), "+rpush");
    }
}
