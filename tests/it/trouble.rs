//! Errors of real servers, outside and inside scripts. Each must be recognised.

use std::thread;

use redis::Value;
use urlseen_redis::connect::connect;
use urlseen_redis::error::{Denied, LinkError};
use urlseen_redis::link::Link;
use urlseen_redis::preflight::{Needs, PreflightError, preflight};

use crate::preflight::{Server, wait_until};

async fn connected(server: &Server, login: &str) -> Link {
    connect(&server.address(login)).await.unwrap()
}

/// Sends a command and returns its error.
async fn trouble_of(connection: &mut Link, words: &[&str]) -> LinkError {
    let mut command = redis::Cmd::new();
    command.arg(words);
    match command.query_async::<Value>(connection).await {
        Ok(value) => panic!("{words:?} went well: {value:?}"),
        Err(error) => error.into(),
    }
}

/// Checks that a write has the error `expected`: outside a script, with `redis.call` in a script,
/// and with `redis.pcall`.
async fn writes_run_into(connection: &mut Link, expected: &LinkError) {
    for words in [
        &["RPUSH", "list", "x"][..],
        &["EVAL", "return redis.call('RPUSH', KEYS[1], 'x')", "1", "list"],
        &["EVAL", "return redis.pcall('RPUSH', KEYS[1], 'x')", "1", "list"],
    ] {
        assert_eq!(&trouble_of(connection, words).await, expected, "{words:?}");
    }
}

/// Checks that the preflight finds this error, and no other one.
async fn preflight_finds(server: &Server, expected: LinkError) {
    let mut needs = Needs::default();
    needs.commands(&["list"], &["RPUSH $ x"]);
    let found = preflight(&server.address(""), &needs).await.unwrap_err();
    assert_eq!(found, [PreflightError::Link(expected)]);
    assert!(found[0].is_passing());
}

#[tokio::test]
async fn a_server_without_free_memory_is_recognised() {
    let server = Server::start(&["--maxmemory", "1"]);
    writes_run_into(&mut connected(&server, "").await, &LinkError::OutOfMemory).await;
    preflight_finds(&server, LinkError::OutOfMemory).await;
}

#[tokio::test]
async fn a_read_only_replica_and_a_lost_primary_are_recognised() {
    let server = Server::start(&["--replicaof", "127.0.0.1", "1"]);
    let mut connection = connected(&server, "").await;
    writes_run_into(&mut connection, &LinkError::ReadOnly).await;
    server.run::<()>("CONFIG SET replica-serve-stale-data no");
    for words in
        [&["LLEN", "list"][..], &["EVAL", "return redis.call('LLEN', KEYS[1])", "1", "list"]]
    {
        assert_eq!(trouble_of(&mut connection, words).await, LinkError::MasterDown, "{words:?}");
    }
}

#[tokio::test]
async fn a_failed_save_that_stops_writes_is_recognised() {
    let server = Server::start(&["--save", "3600", "1"]);
    let mut connection = connected(&server, "").await;
    std::fs::remove_dir_all(server.folder.path().join("data")).unwrap();
    server.run::<()>("SET a b");
    server.run::<()>("BGSAVE");
    wait_until("the save has failed", || {
        server.run::<String>("INFO persistence").contains("rdb_last_bgsave_status:err")
    });
    writes_run_into(&mut connection, &LinkError::Misconf).await;
    preflight_finds(&server, LinkError::Misconf).await;
}

#[tokio::test]
async fn too_few_replicas_that_stop_writes_are_recognised() {
    let server = Server::start(&["--min-replicas-to-write", "1"]);
    writes_run_into(&mut connected(&server, "").await, &LinkError::NoReplicas).await;
    preflight_finds(&server, LinkError::NoReplicas).await;
}

#[tokio::test]
async fn a_server_that_loads_its_data_is_recognised() {
    let mut server = Server::start(&[]);
    let big = "x".repeat(10_000);
    for number in 0..300 {
        server.run::<()>(&format!("SET {number} {big}"));
    }
    server.run::<()>("SAVE");
    // The load takes 30 ms for each of 300 keys, which is longer than the test needs.
    server.restart(&[
        "--rdbcompression",
        "no",
        "--key-load-delay",
        "30000",
        "--loading-process-events-interval-bytes",
        "1024",
    ]);
    let mut connection = connected(&server, "").await;
    writes_run_into(&mut connection, &LinkError::Loading).await;
    preflight_finds(&server, LinkError::Loading).await;
}

#[tokio::test]
async fn a_server_busy_with_a_script_and_a_killed_script_are_recognised() {
    let server = Server::start(&["--lua-time-limit", "10"]);
    let mut connection = connected(&server, "").await;
    let url = format!("unix://{}", server.socket().display());
    let endless = thread::spawn(move || {
        let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
        redis::cmd("EVAL").arg("while true do end").arg(0).exec(&mut connection).unwrap_err()
    });
    wait_until("the script counts as too long", || {
        server.ask(&["PING"]).is_some_and(|reply| reply.is_err())
    });
    writes_run_into(&mut connection, &LinkError::Busy).await;
    preflight_finds(&server, LinkError::Busy).await;
    server.run::<()>("SCRIPT KILL");
    let killed = endless.join().unwrap();
    assert_eq!(LinkError::from(killed), LinkError::ScriptKilled);
}

#[tokio::test]
async fn an_unknown_script_is_recognised() {
    let server = Server::start(&[]);
    let sha = "0".repeat(40);
    let trouble = trouble_of(&mut connected(&server, "").await, &["EVALSHA", &sha, "0"]).await;
    assert_eq!(trouble, LinkError::NoScript);
}

#[tokio::test]
async fn a_key_of_another_type_is_recognised() {
    let server = Server::start(&[]);
    server.run::<()>("SET list x");
    writes_run_into(&mut connected(&server, "").await, &LinkError::WrongType).await;
}

#[tokio::test]
async fn denied_commands_and_keys_are_recognised() {
    let server = Server::start(&[]);
    server.run::<()>("ACL SETUSER ann on nopass ~list +@all -rpush");
    server.run::<()>("ACL SETUSER bob on nopass ~other +@all");
    let denied = |denied: Denied| LinkError::NoPermission { denied };

    let mut ann = connected(&server, "user=ann&pass=any").await;
    let trouble = trouble_of(&mut ann, &["RPUSH", "list", "x"]).await;
    assert_eq!(trouble, denied(Denied::Command("RPUSH".to_owned())));
    let script = ["EVAL", "return redis.call('RPUSH', 'list', 'x')", "0"];
    let trouble = trouble_of(&mut ann, &script).await;
    // Redis 7.2 and later also name the command here.
    let named = denied(Denied::Command("RPUSH".to_owned()));
    assert!(trouble == denied(Denied::CommandInScript) || trouble == named, "{trouble:?}");

    let mut bob = connected(&server, "user=bob&pass=any").await;
    for words in [&["RPUSH", "list", "x"][..], &script] {
        assert_eq!(trouble_of(&mut bob, words).await, denied(Denied::Key), "{words:?}");
    }
}

#[tokio::test]
async fn an_unknown_command_is_recognised() {
    let server = Server::start(&[]);
    let mut connection = connected(&server, "").await;
    let trouble = trouble_of(&mut connection, &["frobnicate", "x"]).await;
    assert_eq!(trouble, LinkError::UnknownCommand { command: "FROBNICATE".to_owned() });
    let script = ["EVAL", "return redis.call('FROBNICATE')", "0"];
    let trouble = trouble_of(&mut connection, &script).await;
    assert!(matches!(trouble, LinkError::UnknownCommand { .. }), "{trouble:?}");
}

#[tokio::test]
async fn missing_slots_and_keys_in_different_slots_of_a_cluster_are_recognised() {
    let server = Server::cluster_node();
    let mut connection = connected(&server, "").await;
    let trouble = trouble_of(&mut connection, &["RPUSH", "list", "x"]).await;
    assert!(matches!(trouble, LinkError::ClusterDown { .. }), "{trouble:?}");
    let slots: Vec<String> = (0..16384).map(|slot| slot.to_string()).collect();
    server.run::<()>(&format!("CLUSTER ADDSLOTS {}", slots.join(" ")));
    let trouble = trouble_of(&mut connection, &["RENAME", "one", "two"]).await;
    assert_eq!(trouble, LinkError::CrossSlot);
}

#[tokio::test]
async fn the_forced_end_of_a_waiting_command_is_recognised() {
    let server = Server::start(&[]);
    let mut connection = connected(&server, "").await;
    let waiting = tokio::spawn(async move {
        trouble_of(&mut connection, &["BLMOVE", "a", "b", "LEFT", "RIGHT", "0"]).await
    });
    // The task sends its command, while this thread waits until Redis reports it.
    let server = tokio::task::spawn_blocking(move || {
        let blocked = || server.run::<String>("INFO clients").contains("blocked_clients:1");
        wait_until("the client waits", blocked);
        let clients = server.run::<String>("CLIENT LIST");
        let client = clients.lines().find(|line| line.contains("name=urlseen")).unwrap();
        let id = client.strip_prefix("id=").unwrap().split(' ').next().unwrap();
        server.run::<()>(&format!("CLIENT UNBLOCK {id} ERROR"));
        server
    })
    .await
    .unwrap();
    assert_eq!(waiting.await.unwrap(), LinkError::Unblocked);
    drop(server);
}
