//! Single servers, between which an address with several nodes chooses.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use redis::{Client, Connection, ConnectionAddr, RedisError, RedisResult};

use super::RedisOptions;
use urlseen_core::redis::error::{LinkError, Retry};

/// Host and port of a server.
pub(super) type Node = (String, u16);

/// Nodes of an address. They are asked in turn, beginning with the one that gave the last answer.
#[derive(Debug, Clone)]
pub(super) struct Nodes {
    pub(super) all: Vec<Client>,
    first: Arc<AtomicUsize>,
}

/// Connects to a server, to ask it for another one.
pub(super) fn open(client: &Client, options: &RedisOptions) -> RedisResult<Connection> {
    let connection = client.get_connection_with_timeout(options.connect_timeout)?;
    connection.set_read_timeout(Some(options.connect_timeout))?;
    connection.set_write_timeout(Some(options.connect_timeout))?;
    Ok(connection)
}

/// Returns a client for another server with the same login. A node that does not know its own
/// address leaves out the host, which then is the same.
pub(super) fn at(client: &Client, host: &str, port: u16) -> RedisResult<Client> {
    let info = client.get_connection_info().clone();
    let mut addr = info.addr().clone();
    match &mut addr {
        ConnectionAddr::Tcp(old_host, old_port)
        | ConnectionAddr::TcpTls { host: old_host, port: old_port, .. } => {
            if !host.is_empty() {
                host.clone_into(old_host);
            }
            *old_port = port;
        }
        _ => {}
    }
    Client::open(info.set_addr(addr))
}

impl Nodes {
    pub(super) fn new(all: Vec<Client>) -> Self {
        Self { all, first: Arc::default() }
    }

    /// Asks the nodes in turn, and returns the first answer. If no node can answer before an
    /// operator changes something, returns the first error.
    pub(super) fn first_answer<T>(
        &self,
        failure: &str,
        ask: impl Fn(&Client) -> RedisResult<T>,
    ) -> RedisResult<T> {
        let (mut errors, first) = (Vec::<RedisError>::new(), self.first.load(Relaxed));
        let nodes = self.all.iter().enumerate();
        for (place, node) in nodes.cycle().skip(first).take(self.all.len()) {
            match ask(node) {
                Ok(answer) => {
                    self.first.store(place, Relaxed);
                    return Ok(answer);
                }
                Err(error) => errors.push(error),
            }
        }
        let is_lasting =
            |error: &RedisError| LinkError::from(error.clone()).retry() == Retry::Never;
        match errors.first() {
            Some(first) if errors.iter().all(is_lasting) => Err(first.clone()),
            _ => {
                let causes: Vec<_> = errors.iter().map(ToString::to_string).collect();
                Err(unreachable(format!("{failure}: {}", causes.join("; "))))
            }
        }
    }
}

/// Error for a server that cannot be found now.
pub(super) fn unreachable(text: String) -> RedisError {
    io::Error::new(io::ErrorKind::NotConnected, text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirection_names_host_and_port_or_only_the_port() {
        let client = Client::open("redis://:geheim@a:1/").unwrap();
        for (host, expected) in [("", "a:2"), ("b", "b:2")] {
            let found = at(&client, host, 2).unwrap();
            assert_eq!(found.get_connection_info().addr().to_string(), expected);
            assert_eq!(found.get_connection_info().redis_settings().password(), Some("geheim"));
        }
    }
}
