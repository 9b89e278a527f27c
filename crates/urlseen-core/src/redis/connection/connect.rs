//! A connection to Redis, logged in.

use std::io;
use std::time::Duration;

use tokio_rustls::rustls;

use super::link::Link;
use super::stream;
use super::trouble::Trouble;
use crate::redis::RedisAddress;
use crate::storage::descriptors;

/// How long to wait for Redis before a connection counts as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For opening a connection, from the name look-up to the answered login.
    pub connect: Duration,
    /// How long Redis may say nothing while commands wait for an answer. Must be longer than any
    /// `BLMOVE` waits, and than the longest script of anybody: Redis answers nothing meanwhile.
    pub response: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), response: Duration::from_secs(30) }
    }
}

/// Opens a connection and logs in: `AUTH`, `SELECT` and a client name.
pub async fn connect(address: &RedisAddress, timeouts: Timeouts) -> Result<Link, Trouble> {
    let opened = async {
        let stream = stream::open(address.place()).await;
        let stream = stream.map_err(|error| closed(address, &error))?;
        log_in(address, Link::new(stream, timeouts.response)).await
    };
    tokio::time::timeout(timeouts.connect, opened).await.unwrap_or_else(|_| {
        // A server waits for the end of a command that the handshake does not have.
        let plain = if address.is_tls() { " (a port without TLS never gives one)" } else { "" };
        Err(Trouble::Unreachable {
            address: address.to_string(),
            cause: format!("no answer within {:?}{plain}", timeouts.connect),
        })
    })
}

/// Why no connection could be opened.
fn closed(address: &RedisAddress, error: &io::Error) -> Trouble {
    let address_of = || address.to_string();
    if let Some(remedy) = descriptors::remedy(error) {
        return Trouble::NoDescriptor {
            address: address_of(),
            cause: format!("{error}; {remedy}"),
        };
    }
    if stream::wants_certificate(error) {
        return Trouble::CertificateWanted;
    }
    let inner = error.get_ref();
    if inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_some() {
        return Trouble::Tls { address: address_of(), cause: error.to_string() };
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied => Trouble::SocketForbidden { address: address_of() },
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => hung_up(address),
        _ => Trouble::Unreachable { address: address_of(), cause: error.to_string() },
    }
}

/// The server closed the connection before it answered anything.
fn hung_up(address: &RedisAddress) -> Trouble {
    let address_of = || address.to_string();
    if address.is_tls() {
        Trouble::TlsHungUp { address: address_of() }
    } else {
        Trouble::HungUp { address: address_of() }
    }
}

/// Logs in, chooses the database and names the connection.
async fn log_in(address: &RedisAddress, mut link: Link) -> Result<Link, Trouble> {
    let hung_up = |trouble: Trouble| match trouble {
        Trouble::LostConnection { .. } => hung_up(address),
        other => other,
    };
    if let Some(password) = address.password() {
        let mut auth = redis::cmd("AUTH");
        auth.arg(address.user()).arg(password);
        let reply = link.call(&auth).await;
        reply.map_err(|trouble| of_auth(address, hung_up(trouble)))?;
    }
    if address.db() != 0 {
        let mut select = redis::cmd("SELECT");
        let reply = link.call(select.arg(address.db())).await;
        reply.map_err(|trouble| of_select(address, hung_up(trouble)))?;
    }
    let mut name = redis::cmd("CLIENT");
    let reply = link.call(name.arg("SETNAME").arg("urlseen")).await;
    match reply.map_err(hung_up) {
        // A connection without a name works as well.
        Ok(_)
        | Err(
            Trouble::NoPermission { .. } | Trouble::UnknownCommand { .. } | Trouble::Refused { .. },
        ) => Ok(link),
        Err(trouble) => Err(trouble),
    }
}

/// What an error reply to `AUTH` means. Never repeats the reply: the command held the password.
fn of_auth(address: &RedisAddress, trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::WrongPassword { .. } => {
            Trouble::WrongPassword { user: address.user().unwrap_or("default").to_owned() }
        }
        Trouble::Refused { code, .. } => {
            Trouble::Refused { code, reply: "in answer to AUTH".to_owned() }
        }
        other => other,
    }
}

/// What an error reply to `SELECT` means: refused as such only for a number out of range.
fn of_select(address: &RedisAddress, trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Refused { .. } => Trouble::NoSuchDatabase { db: address.db() },
        other => other,
    }
}
