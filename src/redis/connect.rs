//! A connection to Redis, logged in.

use std::io;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult};

use super::classify::io_error;
use super::trouble::Trouble;
use crate::config::RedisAddress;

/// How long to wait for Redis before a connection counts as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For opening a connection, from the name look-up to the answered login.
    pub connect: Duration,
    /// For the answer to a command or a pipeline. Must be longer than any `BLMOVE` waits, and than
    /// the longest script of anybody: Redis answers nothing meanwhile.
    pub response: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), response: Duration::from_secs(30) }
    }
}

/// How long a TCP connection is silent before the system probes it, and between probes.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Opens a connection and logs in: `AUTH`, `SELECT` and a client name.
///
/// Commands are sent in the order in which their futures are first polled. One that runs into the
/// response timeout leaves the connection out of step with its caller: drop it then.
pub async fn connect(
    address: &RedisAddress,
    timeouts: Timeouts,
) -> Result<MultiplexedConnection, Trouble> {
    let opened = async {
        let connection = open(address, timeouts).await.map_err(|error| closed(address, &error))?;
        log_in(address, connection).await
    };
    match tokio::time::timeout(timeouts.connect, opened).await {
        Ok(result) => result,
        Err(_) => Err(Trouble::Unreachable {
            address: address.to_string(),
            cause: format!("no answer within {:?}", timeouts.connect),
        }),
    }
}

/// The bare connection. The crate's own login is not used: it turns whatever reply `AUTH` gets into
/// one and the same error.
async fn open(address: &RedisAddress, timeouts: Timeouts) -> RedisResult<MultiplexedConnection> {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    let info = address.connection_info()?;
    let login = info.redis_settings().clone().set_skip_set_lib_name();
    let info = info
        .set_redis_settings(login)
        .set_tcp_settings(TcpSettings::default().set_nodelay(true).set_keepalive(keepalive));
    // Its defaults (1 s to connect, 0.5 s to answer) would take a slow moment for a lost
    // connection.
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(Some(timeouts.response));
    Client::open(info)?.get_multiplexed_async_connection_with_config(&config).await
}

/// Why no connection could be opened.
fn closed(address: &RedisAddress, error: &RedisError) -> Trouble {
    let system = io_error(error);
    let of_tls = |error: &io::Error| {
        error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_some()
    };
    if address.is_tls() && system.is_none_or(of_tls) {
        return Trouble::Tls { address: address.to_string(), cause: error.to_string() };
    }
    match system.map(io::Error::kind) {
        Some(io::ErrorKind::PermissionDenied) => {
            Trouble::SocketForbidden { address: address.to_string() }
        }
        Some(io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => {
            Trouble::HungUp { address: address.to_string() }
        }
        _ => Trouble::Unreachable { address: address.to_string(), cause: error.to_string() },
    }
}

/// Logs in, chooses the database and names the connection. One command at a time: of a pipeline,
/// the crate reports a reply that makes no sense as a lost connection.
async fn log_in(
    address: &RedisAddress,
    mut connection: MultiplexedConnection,
) -> Result<MultiplexedConnection, Trouble> {
    let hung_up = |trouble: Trouble| match trouble {
        Trouble::LostConnection { .. } => Trouble::HungUp { address: address.to_string() },
        other => other,
    };
    if let Some(password) = address.password() {
        let mut auth = redis::cmd("AUTH");
        auth.arg(address.user()).arg(password);
        let reply = auth.exec_async(&mut connection).await;
        reply.map_err(|error| of_auth(address, hung_up(error.into())))?;
    }
    if address.db() != 0 {
        let mut select = redis::cmd("SELECT");
        let reply = select.arg(address.db()).exec_async(&mut connection).await;
        reply.map_err(|error| of_select(address, hung_up(error.into())))?;
    }
    let mut name = redis::cmd("CLIENT");
    let reply = name.arg("SETNAME").arg("urlseen").exec_async(&mut connection).await;
    match reply.map_err(|error| hung_up(error.into())) {
        // A connection without a name works as well.
        Ok(())
        | Err(
            Trouble::NoPermission { .. } | Trouble::UnknownCommand { .. } | Trouble::Refused { .. },
        ) => Ok(connection),
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
