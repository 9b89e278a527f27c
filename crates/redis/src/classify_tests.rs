//! Tests with error replies of real servers. Each reply has the [`LinkError`] that it becomes.

use super::*;

/// Parses a reply line with the `redis` crate, and converts the result to a [`LinkError`].
fn trouble(line: &str) -> LinkError {
    let value = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
    value.extract_error().unwrap_err().into()
}

/// Returns the forms in which servers send an error to the caller of a script. Redis 7 sends two:
/// one outside scripts and from `redis.pcall`, one from `redis.call`. Redis 6.2 sends another form
/// for each of the two calls. The last form replaces the reply of a whole transaction.
fn wrapped(line: &str) -> [String; 6] {
    let call = "ERR Error running script (call to f_a94ea23bc16b)";
    [
        line.to_owned(),
        format!("{line} script: a94ea23bc16b, on @user_script:1."),
        format!("{call}: @user_script:1: @user_script: 1: -{line}"),
        format!("{call}: @user_script:1: {line}"),
        format!("@user_script: 1: -{line}"),
        format!("EXECABORT Transaction discarded because of: {line}"),
    ]
}

#[test]
fn a_code_determines_the_error_inside_scripts_too() {
    for (line, expected, is_passing) in [
        ("LOADING Redis is loading the dataset in memory", LinkError::Loading, true),
        ("MISCONF Redis is configured to save RDB snapshots, but", LinkError::Misconf, true),
        ("MISCONF Errors writing to the AOF file: No space", LinkError::Misconf, true),
        ("BUSY Redis is busy running a script. You can only", LinkError::Busy, true),
        ("READONLY You can't write against a replica.", LinkError::ReadOnly, true),
        ("ERR WAIT cannot be used with replica instances.", LinkError::ReadOnly, true),
        ("OOM command not allowed when used memory >", LinkError::OutOfMemory, true),
        ("NOSCRIPT No matching script. Please use EVAL.", LinkError::NoScript, true),
        ("MASTERDOWN Link with MASTER is down", LinkError::MasterDown, true),
        ("NOREPLICAS Not enough good replicas to write.", LinkError::NoReplicas, true),
        ("UNBLOCKED force unblock from blocking", LinkError::Unblocked, true),
        (
            "MOVED 3999 127.0.0.1:6381",
            LinkError::Moved { slot: 3999, to: "127.0.0.1:6381".to_owned() },
            true,
        ),
        (
            "ASK 903 127.0.0.1:6381",
            LinkError::SlotMoving { slot: 903, to: "127.0.0.1:6381".to_owned() },
            true,
        ),
        ("TRYAGAIN Multiple keys request during", LinkError::SlotDivided, true),
        ("CROSSSLOT Keys in request don't hash", LinkError::CrossSlot, false),
        ("NOAUTH Authentication required.", LinkError::AuthNeeded, false),
        ("DENIED Redis is running in protected mode", LinkError::Protected, false),
        ("WRONGTYPE Operation against a key", LinkError::WrongType, false),
    ] {
        for line in wrapped(line) {
            assert_eq!(trouble(&line), expected, "{line}");
        }
        assert_eq!(expected.is_passing(), is_passing, "{line}");
    }
}

#[test]
fn the_state_of_a_cluster_keeps_its_text() {
    let line = "CLUSTERDOWN Hash slot not served";
    let expected = LinkError::ClusterDown { reply: line.to_owned() };
    assert_eq!(trouble(line), expected);
    assert!(expected.is_passing());
}

#[test]
fn a_denial_names_the_command_if_redis_does() {
    let command = |name: &str| Denied::Command(name.to_owned());
    for (line, denied) in [
        // Redis 6.2
        (
            "NOPERM this user has no permissions to run the 'lpush' command or its subcommand",
            command("LPUSH"),
        ),
        // Redis 7.0
        ("NOPERM this user has no permissions to run the 'lpush' command", command("LPUSH")),
        (
            "NOPERM this user has no permissions to run the 'script|load' command",
            command("SCRIPT|LOAD"),
        ),
        (
            "NOPERM this user has no permissions to access one of the keys used as arguments",
            Denied::Key,
        ),
        (
            "ERR The user executing the script can't run this command or subcommand \
             script: a94e, on @user_script:1.",
            Denied::CommandInScript,
        ),
        (
            "ERR The user executing the script can't access at least one of the keys mentioned in \
             the command arguments script: f2e0, on @user_script:1.",
            Denied::Key,
        ),
        // Redis 6.2
        (
            "ERR Error running script (call to f_a9): @user_script:1: @user_script: 1: The user \
             executing the script can't run this command or subcommand",
            Denied::CommandInScript,
        ),
        (
            "ERR Error running script (call to f_f2): @user_script:1: @user_script: 1: The user \
             executing the script can't access at least one of the keys mentioned in the command",
            Denied::Key,
        ),
        // Redis 7.2
        ("NOPERM User ann has no permissions to run the 'lpush' command", command("LPUSH")),
        ("NOPERM No permissions to access a key", Denied::Key),
        (
            "NOPERM ACL failure in script: User ann has no permissions to run the 'lpush' command \
             script: a94e, on @user_script:1.",
            command("LPUSH"),
        ),
        (
            "NOPERM ACL failure in script: No permissions to access a key script: a94e, on @user_s",
            Denied::Key,
        ),
    ] {
        assert_eq!(trouble(line), LinkError::NoPermission { denied }, "{line}");
    }
}

#[test]
fn an_unknown_command_is_named_without_its_arguments() {
    let unknown = |command: &str| LinkError::UnknownCommand { command: command.to_owned() };
    for (line, expected) in [
        ("ERR unknown command 'AUTH', with args beginning with: 'hunter2' ", unknown("AUTH")),
        ("ERR unknown command `blmove`, with args beginning with: `a`, ", unknown("BLMOVE")),
        (
            "ERR Unknown Redis command called from script script: 1996, on @user_script:1.",
            unknown("called by the script"),
        ),
    ] {
        assert_eq!(trouble(line), expected, "{line}");
    }
}

#[test]
fn replies_with_the_code_err_are_classified_by_their_text() {
    for (line, expected) in [
        ("ERR max number of clients reached", LinkError::TooManyClients),
        (
            "ERR Script attempted to access a non local key in a cluster node script: 0b, on @user",
            LinkError::SlotDivided,
        ),
        (
            "ERR Error running script (call to f_a9): @user_script:1: Script killed by user with \
             SCRIPT KILL...",
            LinkError::ScriptKilled,
        ),
        (
            "ERR AUTH <password> called without any password configured for the default user. Are \
             you sure your configuration is correct?",
            LinkError::NoPasswordSet,
        ),
        ("ERR Client sent AUTH, but no password is set", LinkError::NoPasswordSet),
    ] {
        assert_eq!(trouble(line), expected, "{line}");
    }
}

#[test]
fn any_other_reply_keeps_its_code_and_text() {
    let refused = |code: &str, reply: &str| LinkError::Refused {
        code: code.to_owned(),
        reply: reply.to_owned(),
    };
    for (line, expected) in [
        ("ERR syntax error", refused("ERR", "syntax error")),
        ("URLSEEN stale", refused("URLSEEN", "stale")),
        ("BANANA", refused("BANANA", "")),
        (
            "ERR Error running script (call to f_98): @user_script:1: user_script:1: boo",
            refused("ERR", "user_script:1: boo"),
        ),
    ] {
        assert_eq!(trouble(line), expected, "{line}");
        assert!(!expected.is_passing());
    }
}

#[test]
fn errors_of_the_client_are_classified() {
    let lost = |kind: io::ErrorKind| LinkError::from(RedisError::from(io::Error::from(kind)));
    let cause = |cause: &str| LinkError::LostConnection { cause: cause.to_owned() };
    assert_eq!(lost(io::ErrorKind::TimedOut), cause("no answer in the time allowed"));
    assert_eq!(lost(io::ErrorKind::BrokenPipe), cause("the server closed it"));
    assert_eq!(lost(io::ErrorKind::ConnectionReset), cause("connection reset"));
    assert!(cause("x").is_passing());

    let garbled = redis::parse_redis_value(b"HTTP/1.1 400 Bad Request\r\n").unwrap_err();
    assert!(matches!(LinkError::from(garbled), LinkError::Garbled { .. }));
    let whole = b"*2\r\n$5\r\nhello\r\n$-1\r\n";
    for length in 1..whole.len() {
        let cut = redis::parse_redis_value(&whole[..length]).unwrap_err();
        assert!(matches!(LinkError::from(cut), LinkError::LostConnection { .. }), "{length}");
    }
}

/// Redis states the reason before it closes a connection.
#[test]
fn a_connection_that_the_server_closes_over_a_bad_request_is_lost() {
    let found = trouble("ERR Protocol error: invalid bulk length");
    let cause = "the server closed it with \"Protocol error: invalid bulk length\"".to_owned();
    assert_eq!(found, LinkError::LostConnection { cause });
    assert!(found.is_passing());
}
