//! One connection on which commands are answered in the order in which they were sent.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisResult, Value};

use super::trouble::Trouble;

/// A reply on its way.
type Reply = Pin<Box<dyn Future<Output = RedisResult<Value>> + Send>>;

/// How many commands may wait for their reply. The crate's own queue has room for more, so a
/// command is in it, and so in order, as soon as it is sent here.
pub const WAITING_MAX: usize = 32;

/// A pipelined connection: commands go out at once, replies come back one by one, in order.
pub struct Link {
    connection: MultiplexedConnection,
    replies: VecDeque<Reply>,
}

impl Link {
    /// Uses `connection` alone.
    pub fn new(connection: MultiplexedConnection) -> Self {
        Self { connection, replies: VecDeque::new() }
    }

    /// Whether another command may be sent now.
    pub fn has_room(&self) -> bool {
        self.replies.len() < WAITING_MAX
    }

    /// Whether no command waits for its reply.
    pub fn is_idle(&self) -> bool {
        self.replies.is_empty()
    }

    /// Sends a command behind all others.
    ///
    /// # Panics
    /// If there is no room ([`Link::has_room`]).
    pub fn send(&mut self, command: Cmd) {
        assert!(self.has_room(), "at most {WAITING_MAX} commands wait for a reply");
        let mut connection = self.connection.clone();
        // A command is handed to the connection when its reply is first asked for: ask now, so
        // that it goes out now and in order. Unconstrained, because a task that has used up its
        // share of time would otherwise be told to come back later.
        let mut reply: Reply = Box::pin(tokio::task::unconstrained(async move {
            connection.send_packed_command(&command).await
        }));
        let polled = reply.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.replies.push_back(match polled {
            Poll::Pending => reply,
            Poll::Ready(reply) => Box::pin(std::future::ready(reply)),
        });
    }

    /// The reply to the oldest command that waits for one. Waits for ever if none does. Nothing
    /// is lost when the future is dropped.
    pub async fn receive(&mut self) -> Result<Value, Trouble> {
        let reply = std::future::poll_fn(|context| match self.replies.front_mut() {
            Some(reply) => reply.as_mut().poll(context),
            None => Poll::Pending,
        })
        .await;
        self.replies.pop_front();
        // An error that a command returned inside a successful reply counts as one as well.
        reply.and_then(Value::extract_error).map_err(Trouble::from)
    }

    /// Sends a command and waits for its reply, where no other waits.
    pub async fn call(&mut self, command: Cmd) -> Result<Value, Trouble> {
        debug_assert!(self.replies.is_empty());
        self.send(command);
        self.receive().await
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("waiting", &self.replies.len()).finish_non_exhaustive()
    }
}
