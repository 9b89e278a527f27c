//! Connection to Redis that all async tasks share.

use std::future::Future;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue, RedisResult, Value};
use tokio::sync::Mutex;

use super::RedisOptions;
use super::address::Address;
use super::link::is_unknown_script;
use super::patience::Patience;
use super::sentinels::PrimaryWatch;
use crate::Error;
use urlseen_core::redis::script::Call;

/// Address of Redis, and the connection that all tasks share.
pub(super) struct AsyncLink {
    address: Address,
    options: RedisOptions,
    /// Number of connections that were opened so far, and the open connection, if one is open.
    connection: Mutex<(u64, Option<Watched>)>,
}

/// Connection, with its watch if it is to a primary that Sentinels have named.
type Watched = (MultiplexedConnection, Option<PrimaryWatch>);

impl AsyncLink {
    /// Stores the address. Opens no connection yet.
    pub(super) fn new(address: Address, options: RedisOptions) -> Self {
        Self { address, options, connection: Mutex::new((0, None)) }
    }

    /// Sends a command that is safe to repeat.
    pub(super) async fn query<T: FromRedisValue + Send>(&self, command: &Cmd) -> Result<T, Error> {
        self.ask(|mut connection| async move { command.query_async(&mut connection).await }).await
    }

    /// Calls a script that is safe to repeat.
    pub(super) async fn call(&self, call: &Call) -> Result<Value, Error> {
        let ask = |mut connection| async move {
            match call.by_hash().query_async(&mut connection).await {
                Err(error) if is_unknown_script(&error) => {
                    call.by_text().query_async(&mut connection).await
                }
                reply => reply,
            }
        };
        self.ask(ask).await
    }

    /// Makes a call. If the call fails, repeats the call on a new connection.
    pub(super) async fn ask<T, Asked>(
        &self,
        ask: impl Fn(MultiplexedConnection) -> Asked + Send,
    ) -> Result<T, Error>
    where
        T: Send,
        Asked: Future<Output = RedisResult<T>> + Send,
    {
        let mut patience = Patience::new(self.options.retries, self.address.is_cluster());
        loop {
            let asked = match self.connected().await {
                Ok((which, connection)) => {
                    let answer = ask(connection).await;
                    if answer.is_err() {
                        self.disconnected(which).await;
                    }
                    answer
                }
                Err(error) => Err(error),
            };
            match asked {
                Ok(answer) => return Ok(answer),
                Err(error) => tokio::time::sleep(patience.after(&error)?).await,
            }
        }
    }

    /// Returns the open connection and its number. If no connection is open, opens one, while other
    /// tasks wait for it.
    async fn connected(&self) -> RedisResult<(u64, MultiplexedConnection)> {
        let mut shared = self.connection.lock().await;
        let (which, connection) = &mut *shared;
        if let Some((_, watch)) = connection
            && let Some(mut old) = watch.take_if(|watch| watch.is_due())
        {
            let options = self.options;
            let asked = blocking(move || (old.is_over(&options), old)).await?;
            let (is_over, old) = asked;
            *watch = Some(old);
            if is_over {
                *connection = None;
            }
        }
        let (connection, _) = match connection {
            Some(connection) => connection,
            none => {
                *which += 1;
                none.insert(self.connect().await?)
            }
        };
        Ok((*which, connection.clone()))
    }

    /// Drops a failed connection, unless another task has already replaced it.
    async fn disconnected(&self, which: u64) {
        let mut shared = self.connection.lock().await;
        if shared.0 == which {
            shared.1 = None;
        }
    }

    async fn connect(&self) -> RedisResult<Watched> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.options.connect_timeout))
            .set_response_timeout(Some(self.options.response_timeout));
        let (address, options) = (self.address.clone(), self.options);
        let (client, watch) = blocking(move || address.find(&options)).await??;
        Ok((client.get_multiplexed_async_connection_with_config(&config).await?, watch))
    }
}

/// Runs a search for a server on a thread for blocking calls.
async fn blocking<T: Send + 'static>(
    search: impl FnOnce() -> T + Send + 'static,
) -> RedisResult<T> {
    Ok(tokio::task::spawn_blocking(search).await.map_err(std::io::Error::other)?)
}
