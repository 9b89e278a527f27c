//! Permissions of the ACL user, found without running any command.
//!
//! Between `MULTI` and `DISCARD` Redis only queues commands, but checks each command on arrival:
//! its existence, and the user's permissions for the command and its keys. It also refuses commands
//! that the crawl could not run because memory is lacking, or because the server is a replica. So
//! the check sends each command in the form that the crawl will use. Redis runs none of these
//! commands.

use redis::{Pipeline, RedisResult, Value};

use super::needs::Needs;
use super::problem::{PreflightError, listed, missing_permissions};
use crate::connection::link::Link;
use crate::error::{Denied, LinkError};

/// Commands that Redis has refused so far, and conclusions about their keys.
#[derive(Default)]
pub(super) struct Refusals<'a> {
    /// Commands that the user may not run.
    commands: Vec<String>,
    /// Commands that were denied for one of their keys. Redis does not name the key.
    on_keys: Vec<(String, Vec<&'a str>)>,
    /// Keys that occur in at least one accepted command.
    proven: Vec<&'a str>,
    /// Keys of commands that were themselves denied. Redis then does not check the keys.
    unproven: Vec<&'a str>,
    unknown: Vec<String>,
    troubles: Vec<LinkError>,
    blind: bool,
}

impl<'a> Refusals<'a> {
    /// Records the reply to a command with these keys.
    pub(super) fn note<T>(
        &mut self,
        name: &str,
        keys: impl Iterator<Item = &'a str>,
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
        let queued = needs.commands.iter().filter(|need| need.name != "EXEC");
        for need in queued.clone() {
            rehearsal.add_command(need.command.clone());
        }
        rehearsal.add_command(redis::cmd("DISCARD"));
        let replies: Vec<RedisResult<Value>> = rehearsal.query_async(connection).await?;
        let mut replies = replies.into_iter();
        for (need, reply) in queued.zip(replies.by_ref()) {
            self.note(&need.name, need.keys.iter().map(String::as_str), reply);
        }
        if let Some(reply) = replies.next() {
            self.note("DISCARD", [].into_iter(), reply);
        }
        // An `EXEC` runs the commands that were queued before it. So `EXEC` is checked in a
        // transaction without commands.
        if needs.commands.iter().any(|need| need.name == "EXEC") {
            let mut nothing = Pipeline::new();
            nothing.ignore_errors().cmd("MULTI").cmd("EXEC");
            let mut replies: Vec<RedisResult<Value>> = nothing.query_async(connection).await?;
            let exec = replies.pop().expect("a reply a command");
            self.note("EXEC", [].into_iter(), exec);
        }
        Ok(())
    }

    /// Lists the keys that the user may not touch, each with the commands denied on it.
    fn denied_keys(&self) -> Vec<(&'a str, Vec<String>)> {
        let mut denied: Vec<(&str, Vec<String>)> = Vec::new();
        let mut surest: Vec<_> = self.on_keys.iter().collect();
        surest.sort_by_key(|(_, keys)| keys.len() > 1);
        for (name, keys) in surest {
            // Redis does not tell which of several keys it denied. First choice: the keys that
            // another reply proves to be denied. Second choice: the keys that occur in no accepted
            // command. Third choice: all keys.
            let known = |key: &&&str| denied.iter().any(|(other, _)| other == *key);
            let mut guilty: Vec<&str> = keys.iter().filter(known).copied().collect();
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

    /// Converts the refusals into problems. An old server lacks commands because it is old.
    pub(super) fn into_problems(self, user: &str, is_old: bool) -> Vec<PreflightError> {
        let keys = self.denied_keys();
        let Self { commands, proven, unproven, unknown, troubles, blind, .. } = self;
        let mut problems = Vec::new();
        if !commands.is_empty() || !keys.is_empty() {
            let is_open =
                |key: &&str| !proven.contains(key) && keys.iter().all(|(denied, _)| denied != key);
            let unproven: Vec<&str> = unproven.into_iter().filter(is_open).collect();
            let blind = blind && commands.iter().any(|name| name == "MULTI");
            let text = missing_permissions(user, &commands, &keys, &unproven, blind);
            problems.push(PreflightError::Unfit(text));
        }
        if !unknown.is_empty() && !is_old {
            problems.push(PreflightError::Unfit(format!(
                "this Redis does not know {}; its configuration (rename-command) or its provider \
                 removed that: restore it, or use another server",
                listed(&unknown)
            )));
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
pub(super) fn key_rule(key: &str) -> String {
    let mut rule = "~".to_owned();
    for byte in key.bytes() {
        match byte {
            b'*' | b'?' | b'[' | b']' | b'\\' => rule.extend(['\\', char::from(byte)]),
            b'"' | b'\'' => rule.push('?'),
            byte if byte.is_ascii_graphic() => rule.push(char::from(byte)),
            _ => rule.push('?'),
        }
    }
    rule
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_for_a_key_matches_it_and_can_be_typed() {
        for (key, rule) in [
            ("urlseen:{demo:discovered}:state", "~urlseen:{demo:discovered}:state"),
            ("a*b?c[d]e\\f", "~a\\*b\\?c\\[d\\]e\\\\f"),
            ("two words", "~two?words"),
            ("it's \"quoted\"", "~it?s??quoted?"),
            ("ö\n", "~???"),
        ] {
            assert_eq!(key_rule(key), rule);
        }
    }

    /// Records a command on these keys as accepted, or as denied for one of its keys.
    fn note<'a>(refusals: &mut Refusals<'a>, name: &str, keys: &[&'a str], through: bool) {
        let denied =
            redis::parse_redis_value(b"-NOPERM No permissions to access a key\r\n").unwrap();
        let reply = if through { Ok(Value::Okay) } else { denied.extract_error() };
        refusals.note(name, keys.iter().copied(), reply);
    }

    fn denied_keys(refusals: &Refusals<'_>) -> Vec<String> {
        refusals.denied_keys().iter().map(|(key, names)| format!("{key} {names:?}")).collect()
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
