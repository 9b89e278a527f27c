//! Sentinels that name the primary: logins, errors, and a switch to another primary.

use tempfile::TempDir;
use urlseen_redis::RedisAddress;
use urlseen_redis::connect::connect;
use urlseen_redis::error::LinkError;

use super::trouble;
use crate::preflight::{PASSWORD, Server};
use crate::util::redis::{RedisServer, free_port};

/// Sentinel with its port.
pub(crate) struct Sentinel {
    pub(crate) server: Server,
    pub(crate) port: String,
}

impl Sentinel {
    /// Starts a Sentinel that watches `mymaster` at a port of loopback, with these lines in
    /// addition.
    pub(crate) fn start(primary: &str, quorum: usize, lines: &str) -> Self {
        let (folder, port) = (TempDir::new().unwrap(), free_port());
        let text = format!("sentinel monitor mymaster 127.0.0.1 {primary} {quorum}\n{lines}\n");
        std::fs::write(Server::config(&folder), text).unwrap();
        let arguments = ["--sentinel", "--bind", "127.0.0.1", "--port", &port];
        Self { server: Server::start_in(folder, &arguments), port }
    }
}

/// Returns the URL of a primary that Sentinels at these ports know.
pub(crate) fn url(ports: &[&str]) -> String {
    let nodes: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("redis+sentinel://{}/mymaster", nodes.join(","))
}

#[tokio::test]
async fn the_next_sentinel_is_asked_if_one_does_not_answer() {
    let (_primary, port) = RedisServer::start_at_port(&[]);
    let (sentinel, nowhere) = (Sentinel::start(&port, 1, ""), free_port());
    let address = RedisAddress::new(&url(&[&nowhere, &sentinel.port]), None).unwrap();
    let mut link = connect(&address).await.unwrap();
    let info: String = link.query(redis::cmd("INFO").arg("server")).await.unwrap();
    assert!(info.contains(&format!("tcp_port:{port}")), "{info}");

    let found = trouble(&url(&[&nowhere])).await;
    assert!(matches!(found, LinkError::NoSentinel { .. }), "{found:?}");
    assert!(found.is_passing());
}

#[tokio::test]
async fn an_unknown_name_is_refused() {
    let (_primary, port) = RedisServer::start_at_port(&[]);
    let sentinel = Sentinel::start(&port, 1, "");
    let url = url(&[&sentinel.port]).replace("mymaster", "other");
    let found = trouble(&url).await;
    let expected = "the Sentinels know no primary other; SENTINEL MASTERS shows the names that a \
                    Sentinel knows";
    assert_eq!((found.to_string().as_str(), found.is_passing()), (expected, false));
}

#[tokio::test]
async fn a_replica_that_sentinels_name_is_tried_again() {
    let (_primary, port) = RedisServer::start_at_port(&[]);
    let (_replica, replica_port) = RedisServer::start_at_port(&["--replicaof", "127.0.0.1", &port]);
    let sentinel = Sentinel::start(&replica_port, 1, "");
    let found = trouble(&url(&[&sentinel.port])).await;
    let expected = format!(
        "the Sentinels name 127.0.0.1:{replica_port} as the primary mymaster, but this \
         server is not a primary; wait for the end of the failover"
    );
    assert_eq!((found.to_string(), found.is_passing()), (expected, true));
}

#[tokio::test]
async fn a_sentinel_gets_the_password_of_the_primary_if_it_requires_one() {
    let (_primary, port) = RedisServer::start_at_port(&["--requirepass", PASSWORD]);
    let login = format!("sentinel auth-pass mymaster {PASSWORD}");
    for lines in [format!("{login}\nrequirepass {PASSWORD}"), login] {
        let sentinel = Sentinel::start(&port, 1, &lines);
        let url = format!("{}/3", url(&[&sentinel.port]));
        let address = RedisAddress::new(&url, Some(PASSWORD.to_owned())).unwrap();
        connect(&address).await.unwrap();
        let without = trouble(&url).await;
        assert!(without.to_string().contains("Redis asks for a password"), "{without}");
        let wrong = trouble(&url.replace("//", "//:wrong@")).await;
        assert!(wrong.to_string().contains("Redis refused the password"), "{wrong}");
    }
}

#[tokio::test]
async fn a_switch_to_another_primary_ends_the_connection() {
    let ((_first, from), (_second, to)) =
        (RedisServer::start_at_port(&[]), RedisServer::start_at_port(&[]));
    let sentinel = Sentinel::start(&from, 1, "");
    let address = RedisAddress::new(&url(&[&sentinel.port]), None).unwrap();
    let mut link = connect(&address).await.unwrap();
    sentinel.server.run::<()>("SENTINEL REMOVE mymaster");
    sentinel.server.run::<()>(&format!("SENTINEL MONITOR mymaster 127.0.0.1 {to} 1"));
    let ended = tokio::time::timeout(crate::util::wait::SOON, link.receive()).await;
    let found = ended.expect("the link asks the Sentinels").unwrap_err();
    let cause =
        format!("the Sentinels have switched mymaster from 127.0.0.1:{from} to 127.0.0.1:{to}");
    assert!(found.to_string().contains(&cause), "{found}");
    assert!(found.is_passing());
}
