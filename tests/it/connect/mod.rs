//! Connections to Redis, and the errors of failed connections.

mod client_certificates;
pub(crate) mod cluster;
pub(crate) mod sentinels;
pub(crate) mod slot_moves;
mod tls;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use urlseen_redis::RedisAddress;
use urlseen_redis::connect::{Timeouts, connect};
use urlseen_redis::error::LinkError;

use crate::preflight::{PASSWORD, Server};
use crate::util::redis::free_port;

/// Tries to connect, and returns the error. Checks that the error does not show the password.
async fn trouble(url: &str) -> LinkError {
    trouble_at(&RedisAddress::new(url, None).unwrap()).await
}

async fn trouble_at(address: &RedisAddress) -> LinkError {
    let trouble = connect(address).await.map(|_| ()).unwrap_err();
    let shown = format!("{trouble} {trouble:?}");
    assert!(!shown.contains(PASSWORD), "{shown}");
    trouble
}

/// Starts a server that calls `serve` with its first client. Returns its address.
fn impostor(serve: impl FnOnce(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || serve(listener.accept().unwrap().0));
    format!("redis://ann:{PASSWORD}@127.0.0.1:{port}/1")
}

#[tokio::test]
async fn a_connection_logs_in_selects_the_database_and_sets_its_name() {
    let server = Server::start(&[]);
    server.run::<()>(&format!("ACL SETUSER ann on >{PASSWORD} ~* +@all"));
    let address = server.address(&format!("user=ann&pass={PASSWORD}&db=3"));
    let mut connection = connect(&address).await.unwrap();
    let info: String = redis::cmd("CLIENT").arg("INFO").query_async(&mut connection).await.unwrap();
    for part in ["name=urlseen ", "user=ann ", "db=3 "] {
        assert!(info.contains(part), "{part}: {info}");
    }
}

#[tokio::test]
async fn a_missing_server_is_reported() {
    let port = free_port();
    let found = trouble(&format!("redis://:{PASSWORD}@127.0.0.1:{port}")).await;
    let expected = format!(
        "cannot reach Redis at redis://:***@127.0.0.1:{port}/0: Connection refused (os error 111); \
         check that the server runs and that redis.url is correct"
    );
    assert_eq!(found.to_string(), expected);
    assert!(found.is_passing());
    let address = RedisAddress::local().to_string();
    let default = LinkError::Unreachable { address, cause: String::new() }.to_string();
    let words = "cannot reach Redis at redis://127.0.0.1:6379/0 (the default of redis.url): ";
    assert!(default.starts_with(words), "{default}");
    let found = trouble("unix:///nowhere/redis.sock").await;
    assert!(matches!(found, LinkError::Unreachable { .. }), "{found:?}");
}

#[tokio::test]
async fn a_server_that_closes_the_connection_is_reported() {
    let url = impostor(drop);
    let found = trouble(&url).await;
    assert!(matches!(found, LinkError::HungUp { .. }), "{found:?}");
    assert!(found.is_passing());
}

#[tokio::test]
async fn a_silent_server_is_reported() {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let url = impostor(move |_client| held.recv().unwrap_or_default());
    let timeouts = Timeouts { connect: Duration::from_millis(50), ..Timeouts::default() };
    let mut address = RedisAddress::new(&url, None).unwrap();
    address.timeouts = timeouts;
    let found = trouble_at(&address).await;
    assert!(found.to_string().contains("no answer within 50ms"), "{found}");
    assert!(found.is_passing());
    drop(release);
}

#[tokio::test]
async fn a_server_with_another_protocol_is_reported() {
    let url = impostor(|mut client| {
        client.read_exact(&mut [0; 8]).unwrap();
        client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let found = trouble(&url).await;
    assert!(matches!(found, LinkError::Garbled { .. }), "{found:?}");
    assert!(!found.is_passing());
}

#[tokio::test]
async fn a_database_out_of_range_is_refused() {
    let server = Server::start(&[]);
    let found = trouble(&server.address("db=99").to_string()).await;
    assert_eq!(found, LinkError::NoSuchDatabase { db: 99 });
}

#[tokio::test]
async fn a_password_for_a_server_without_one_is_refused() {
    let server = Server::start(&[]);
    let url = format!("unix://{}?pass={PASSWORD}", server.socket().display());
    assert_eq!(trouble(&url).await, LinkError::NoPasswordSet);
}

#[tokio::test]
async fn the_error_of_a_renamed_auth_does_not_show_the_password() {
    let server = Server::start(&["--rename-command", "AUTH", ""]);
    let url = format!("unix://{}?pass={PASSWORD}", server.socket().display());
    let expected = LinkError::UnknownCommand { command: "AUTH".to_owned() };
    assert_eq!(trouble(&url).await, expected);
}

#[tokio::test]
async fn lost_connections_and_missing_answers_are_reported() {
    let mut server = Server::start(&[]);
    let timeouts = Timeouts { response: Duration::from_millis(100), ..Timeouts::default() };
    let mut address = server.address("");
    address.timeouts = timeouts;
    let mut connection = connect(&address).await.unwrap();
    let mut wait = redis::cmd("BLPOP");
    let wait = wait.arg("list").arg(0).exec_async(&mut connection);
    let ended = tokio::time::timeout(Duration::from_secs(20), wait).await;
    let found = LinkError::from(ended.expect("it has a response timeout").unwrap_err());
    let cause = "no answer in the time allowed".to_owned();
    assert_eq!(found, LinkError::LostConnection { cause });

    let mut connection = connect(&server.address("")).await.unwrap();
    server.restart(&[]);
    let ping = redis::cmd("PING").exec_async(&mut connection).await;
    let found = LinkError::from(ping.unwrap_err());
    assert!(matches!(found, LinkError::LostConnection { .. }), "{found:?}");
    assert!(found.is_passing());
}
