//! Connection to Redis with pipelined commands. Replies arrive in the order of the commands.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use redis::aio::ConnectionLike;
use redis::{
    Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisFuture, RedisResult, Value,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep};
use tokio_util::io::poll_read_buf;

use super::packed::Packed;
use super::page;
use super::reply::{Frame, ReplyError, ReplyPlaces, ReplyScan};
use super::stream::Stream;
use crate::error::LinkError;

/// Maximum number of commands that wait for replies.
pub const WAITING_MAX: usize = 32;

/// Maximum number of bytes of one read, unless replies are larger.
const READ: usize = 256 << 10;

/// Minimum free space in the buffer for the next read.
const ROOM: usize = 16 << 10;

/// Maximum number of bytes of memory that stay allocated for later commands.
const KEPT: usize = 1 << 20;

/// Connection with pipelined commands. The link sends the queued commands when its user waits for
/// the next reply, and returns the replies in order. The content of a reply stays in the receive
/// buffer.
pub struct Link {
    stream: Box<dyn Stream>,
    /// Queued commands, of which the first `written` bytes are already sent.
    out: Vec<u8>,
    written: usize,
    /// Received bytes, from the start of the oldest reply that the user has not received yet.
    buffer: BytesMut,
    /// Progress of reading the oldest reply in `buffer`.
    scan: ReplyScan,
    /// Length of the longest recent reply.
    longest: usize,
    /// For each waiting command, the number of replies that are still missing. A transaction has
    /// several replies.
    waiting: VecDeque<usize>,
    /// First error among the replies to the oldest waiting command, except its last reply.
    error: Option<Reply>,
    /// Maximum time for which the server may send nothing while commands wait.
    silence: Duration,
    heard: Instant,
    /// Time of the next check for silence.
    alarm: Pin<Box<Sleep>>,
    /// Future that ends the connection when the server is not the primary any more.
    watch: Option<Watch>,
}

/// Future that returns the reason why a connection must end.
pub(super) type Watch = Pin<Box<dyn Future<Output = io::Error> + Send>>;

/// Reply as it was received.
#[derive(Debug)]
pub struct Reply {
    bytes: Bytes,
    /// Positions of the parts, if the reply is an array of strings and arrays.
    places: Option<ReplyPlaces>,
}

impl Link {
    /// Wraps an open stream, such as a stream to a simulated server. The connection counts as lost
    /// if commands wait and the server sends nothing for the time `silence`.
    pub fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        silence: Duration,
    ) -> Self {
        Self {
            stream: Box::new(stream),
            out: Vec::new(),
            written: 0,
            buffer: BytesMut::new(),
            scan: ReplyScan::default(),
            longest: 0,
            waiting: VecDeque::new(),
            error: None,
            silence,
            heard: Instant::now(),
            alarm: Box::pin(tokio::time::sleep(silence)),
            watch: None,
        }
    }

    /// Ends the connection with the error of `watch`, once that is ready.
    pub(super) fn watch(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    /// Returns true if another command may be sent now.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < WAITING_MAX
    }

    /// Returns true if no command waits for its reply.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Queues a command after all other commands. The link sends it when its user waits for the
    /// next reply.
    ///
    /// # Panics
    /// If there is no room ([`Link::has_room`]).
    pub fn send(&mut self, command: &Cmd) {
        assert!(self.has_room(), "at most {WAITING_MAX} commands wait for a reply");
        self.wait_for(1);
        command.write_packed_command(&mut self.out);
    }

    /// Queues a transaction. Redis runs all of its commands without other commands in between, or
    /// none if it refuses one of them. The transaction has one reply: the reply to `EXEC`, or the
    /// first error.
    ///
    /// # Panics
    /// If there is no room ([`Link::has_room`]).
    pub fn send_transaction(&mut self, first: &[Packed], last: &Cmd) {
        assert!(self.has_room(), "at most {WAITING_MAX} commands wait for a reply");
        self.wait_for(first.len() + 3);
        redis::cmd("MULTI").write_packed_command(&mut self.out);
        for command in first {
            self.out.extend_from_slice(command.bytes());
        }
        last.write_packed_command(&mut self.out);
        redis::cmd("EXEC").write_packed_command(&mut self.out);
    }

    /// Waits for the reply to the oldest command, or for ever if no command waits. If the future is
    /// dropped, no reply is lost. After [`LinkError::LostConnection`] and [`LinkError::Garbled`]
    /// the link is unusable.
    pub async fn receive(&mut self) -> Result<Reply, LinkError> {
        self.next_reply().await?.checked()
    }

    /// Waits like [`Link::receive`], and returns also a reply with which the server refuses a
    /// command.
    pub async fn next_reply(&mut self) -> Result<Reply, LinkError> {
        Ok(self.next().await?)
    }

    /// Sends a command and waits for its reply. No other command may wait.
    pub async fn call(&mut self, command: &Cmd) -> Result<Value, LinkError> {
        debug_assert!(self.is_idle());
        self.send(command);
        self.receive().await?.into_value()
    }

    /// Sends a command, waits for its reply, and reads the reply as a `T`. No other command may
    /// wait.
    pub async fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, LinkError> {
        let value = redis::from_redis_value(self.call(command).await?);
        value.map_err(|error| LinkError::Garbled { cause: error.to_string() })
    }

    /// Reads about `count` members of the set `key`, from a cursor on. No other command may wait.
    pub async fn scan(&mut self, key: &str, cursor: u64, count: u64) -> Result<Page, LinkError> {
        self.send(redis::cmd("SSCAN").arg(key).arg(cursor).arg("COUNT").arg(count));
        let Reply { bytes, places } = self.receive().await?;
        let strange = || LinkError::Garbled { cause: "the answer to SSCAN is invalid".to_owned() };
        let page = places.and_then(|places| page::page(&bytes, places));
        let (cursor, members) = page.ok_or_else(strange)?;
        Ok(Page { cursor, bytes, members })
    }

    fn wait_for(&mut self, replies: usize) {
        if self.is_idle() {
            self.heard = Instant::now();
        }
        self.waiting.push_back(replies);
    }

    async fn next(&mut self) -> RedisResult<Reply> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<RedisResult<Reply>> {
        if let Some(watch) = &mut self.watch
            && let Poll::Ready(error) = watch.as_mut().poll(context)
        {
            self.watch = None;
            return Poll::Ready(Err(error.into()));
        }
        loop {
            // Until its replies are read, a server with much to send may stop reading. So write and
            // read together.
            let _ = self.poll_write(context)?;
            let Some(replies) = self.waiting.front_mut() else {
                // No reply is due, so only the end of the connection can arrive.
                match self.poll_read(context)? {
                    Poll::Ready(()) => continue,
                    Poll::Pending => return Poll::Pending,
                }
            };
            if let Some(frame) = self.scan.advance(&self.buffer).map_err(unreadable)? {
                *replies -= 1;
                let is_last = *replies == 0;
                let reply = self.take(frame);
                if is_last {
                    self.waiting.pop_front();
                    return Poll::Ready(Ok(self.error.take().unwrap_or(reply)));
                }
                if reply.is_error() {
                    self.error.get_or_insert(reply);
                }
                continue;
            }
            match self.poll_read(context)? {
                Poll::Ready(()) => self.heard = Instant::now(),
                Poll::Pending => return self.poll_silence(context).map(Err),
            }
        }
    }

    /// Writes as many of the pending bytes as the server accepts.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let stream = Pin::new(&mut *self.stream);
            match ready!(stream.poll_write(context, &self.out[self.written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                some => self.written += some,
            }
            // Remove the written half now. While commands arrive faster than the server reads,
            // there is always a part that is not written.
            if self.written >= self.out.len() / 2 {
                self.out.drain(..self.written);
                self.written = 0;
            }
        }
        if self.out.is_empty() {
            self.out.shrink_to(KEPT);
        }
        // Written bytes may wait inside the TLS layer.
        Pin::new(&mut *self.stream).poll_flush(context)
    }

    /// Reads some bytes into the buffer.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.buffer.capacity() - self.buffer.len() < ROOM {
            // Reserving more memory copies a partial reply, so do it rarely.
            self.buffer.reserve(READ.max(self.longest.saturating_sub(self.buffer.len())));
        }
        match ready!(poll_read_buf(Pin::new(&mut *self.stream), context, &mut self.buffer))? {
            0 => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Becomes ready once the server has sent nothing for the time `silence`.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<RedisError> {
        loop {
            ready!(self.alarm.as_mut().poll(context));
            let end = self.heard + self.silence;
            if end <= Instant::now() {
                return Poll::Ready(io::Error::from(io::ErrorKind::TimedOut).into());
            }
            self.alarm.as_mut().reset(end);
        }
    }

    /// Cuts a reply out of the buffer.
    fn take(&mut self, frame: Frame) -> Reply {
        self.longest = frame.len.max(self.longest - self.longest / 8);
        let bytes = self.buffer.split_to(frame.len).freeze();
        Reply { bytes, places: frame.places }
    }
}

impl Reply {
    fn is_error(&self) -> bool {
        self.bytes.starts_with(b"-")
    }

    /// Returns the reply unless the server refuses the command with it.
    pub fn checked(self) -> Result<Self, LinkError> {
        if self.is_error() { Err(self.into_value().expect_err("it is one")) } else { Ok(self) }
    }

    /// Converts the reply to a value. Returns an error if the reply is an error or contains one.
    pub fn into_value(self) -> Result<Value, LinkError> {
        Ok(redis::parse_redis_value(&self.bytes)?.extract_error()?)
    }

    /// Converts an array of strings to its bytes and the positions of the strings. Returns `None`
    /// for any other reply.
    pub fn into_strings(self) -> Option<(Bytes, Vec<Range<usize>>)> {
        let ReplyPlaces { strings, arrays } = self.places?;
        (arrays.len() == 1).then_some((self.bytes, strings))
    }
}

/// Page of a reply to `SSCAN`.
#[derive(Debug)]
pub struct Page {
    /// Cursor of the next page; 0 after the last one.
    pub cursor: u64,
    /// Bytes that contain the members.
    pub bytes: Bytes,
    /// Positions of the members in `bytes`.
    pub members: Vec<Range<usize>>,
}

fn unreadable(malformed: ReplyError) -> RedisError {
    (ErrorKind::Parse, "unreadable", malformed.to_string()).into()
}

/// Lets pipelines and scripts of the `redis` crate use the link. They require that no other command
/// waits for its reply.
impl ConnectionLike for Link {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            debug_assert!(self.is_idle());
            self.send(command);
            redis::parse_redis_value(&self.next().await?.bytes)?.extract_error()
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            debug_assert!(self.is_idle());
            (0..offset + count).for_each(|_| self.wait_for(1));
            self.out.extend(pipeline.get_packed_pipeline());
            let (mut values, mut refusal) = (Vec::with_capacity(count), None);
            for number in 0..offset + count {
                match redis::parse_redis_value(&self.next().await?.bytes)? {
                    // Only a transaction has an offset. Redis refused the transaction, or one of
                    // its commands.
                    Value::ServerError(error) if offset > 0 => refusal = refusal.or(Some(error)),
                    value if number >= offset => values.push(value),
                    _ => {}
                }
            }
            refusal.map_or(Ok(values), |error| Err(error.into()))
        })
    }

    /// Returns a fixed number: no code of urlseen asks for the number of the database.
    fn get_db(&self) -> i64 {
        0
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}
