//! One connection on which commands are answered in the order in which they were sent.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use redis::aio::ConnectionLike;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, Value};
use tokio::time::{Instant, Sleep};
use tokio_util::io::poll_read_buf;

use super::packed::Packed;
use super::page;
use super::reply::{Frame, ReplyError, ReplyScan};
use super::stream::Stream;
use crate::redis::error::LinkError;

/// How many commands may wait for their reply.
pub(crate) const WAITING_MAX: usize = 32;

/// How much is read at once at most, while replies are no larger.
const READ: usize = 256 << 10;

/// How little room there may be for the next read.
const ROOM: usize = 16 << 10;

/// Memory for commands that is kept from one to the next.
const KEPT: usize = 1 << 20;

/// A pipelined connection: commands go out as soon as a reply is waited for, replies come back one
/// by one, in order. What a reply holds stays where it was received.
pub struct Link {
    stream: Box<dyn Stream>,
    /// Commands to be written, and how much of them was.
    out: Vec<u8>,
    written: usize,
    /// What was read, from the first byte of the oldest reply on.
    buffer: BytesMut,
    /// How far that reply is read.
    scan: ReplyScan,
    /// How long the longest reply of late was.
    longest: usize,
    /// What waits for its reply: how many replies of the server make one.
    waiting: VecDeque<usize>,
    /// The first error among those, the last one aside.
    error: Option<Reply>,
    /// How long the server may be silent while commands wait, and when it last was not.
    silence: Duration,
    heard: Instant,
    /// Not before this is it looked whether the server is silent for too long.
    alarm: Pin<Box<Sleep>>,
}

/// A reply as received.
#[derive(Debug)]
pub struct Reply {
    bytes: Bytes,
    /// Of an array of strings, where they are.
    strings: Option<Vec<Range<usize>>>,
}

impl Link {
    /// Uses `stream`, and counts it as lost if the server lets commands wait and says nothing for
    /// `silence`.
    pub(super) fn new(stream: Box<dyn Stream>, silence: Duration) -> Self {
        Self {
            stream,
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
        }
    }

    /// Whether another command may be sent now.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < WAITING_MAX
    }

    /// Whether no command waits for its reply.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends a command behind all others. It goes out when a reply is next waited for.
    ///
    /// # Panics
    /// If there is no room ([`Link::has_room`]).
    pub fn send(&mut self, command: &Cmd) {
        assert!(self.has_room(), "at most {WAITING_MAX} commands wait for a reply");
        self.wait_for(1);
        command.write_packed_command(&mut self.out);
    }

    /// Sends commands to be carried out without anything between them, or not at all where the
    /// server does not take one of them. They are answered together: with the reply to `EXEC`, or
    /// with the reason for which there was none.
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

    /// The reply to the oldest command that waits for one. Waits for ever if none does. Nothing
    /// is lost when the future is dropped. After [`LinkError::LostConnection`] and
    /// [`LinkError::Garbled`] the link is of no more use.
    pub async fn receive(&mut self) -> Result<Reply, LinkError> {
        let reply = self.next().await?;
        if reply.is_error() { Err(reply.into_value().expect_err("it is one")) } else { Ok(reply) }
    }

    /// Sends a command and waits for its reply, where no other waits.
    pub async fn call(&mut self, command: &Cmd) -> Result<Value, LinkError> {
        debug_assert!(self.is_idle());
        self.send(command);
        self.receive().await?.into_value()
    }

    fn wait_for(&mut self, replies: usize) {
        if self.is_idle() {
            self.heard = Instant::now();
        }
        self.waiting.push_back(replies);
    }

    /// The next reply, be it an error.
    async fn next(&mut self) -> RedisResult<Reply> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<RedisResult<Reply>> {
        loop {
            // A server that has much to say may read nothing before it was heard: both at once.
            let _ = self.poll_write(context)?;
            let Some(replies) = self.waiting.front_mut() else {
                // Nothing is to come but the end of the connection.
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

    /// Writes what is to be written, as far as the server takes it.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let stream = Pin::new(&mut *self.stream);
            match ready!(stream.poll_write(context, &self.out[self.written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                some => self.written += some,
            }
            // Not only once all is written: while more is sent than the server takes at once, that
            // never is.
            if self.written >= self.out.len() / 2 {
                self.out.drain(..self.written);
                self.written = 0;
            }
        }
        if self.out.is_empty() {
            self.out.shrink_to(KEPT);
        }
        // Over TLS, what was written may wait inside.
        Pin::new(&mut *self.stream).poll_flush(context)
    }

    /// Reads something.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.buffer.capacity() - self.buffer.len() < ROOM {
            // What is there of a reply is copied into the larger memory: as seldom as can be.
            self.buffer.reserve(READ.max(self.longest.saturating_sub(self.buffer.len())));
        }
        match ready!(poll_read_buf(Pin::new(&mut *self.stream), context, &mut self.buffer))? {
            0 => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Ready once the server has been silent for too long.
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

    /// Takes a reply out of what was read.
    fn take(&mut self, frame: Frame) -> Reply {
        self.longest = frame.len.max(self.longest - self.longest / 8);
        let bytes = self.buffer.split_to(frame.len).freeze();
        Reply { bytes, strings: frame.strings }
    }
}

impl Reply {
    fn is_error(&self) -> bool {
        self.bytes.starts_with(b"-")
    }

    /// What it says; an error in it is an error.
    pub fn into_value(self) -> Result<Value, LinkError> {
        Ok(redis::parse_redis_value(&self.bytes)?.extract_error()?)
    }

    /// What a reply to `SSCAN` says; `None` if it is the reply to something else.
    pub fn into_page(self) -> Option<Page> {
        let (cursor, members) = page::page(&self.bytes)?;
        Some(Page { cursor, bytes: self.bytes, members })
    }

    /// The strings of an array that has nothing else in it: the bytes that they stand in, and
    /// where. `None` if the reply is anything else.
    pub fn into_strings(self) -> Option<(Bytes, Vec<Range<usize>>)> {
        self.strings.map(|strings| (self.bytes, strings))
    }
}

/// Of a reply to `SSCAN`.
#[derive(Debug)]
pub struct Page {
    /// Where the next page begins; 0 after the last one.
    pub cursor: u64,
    /// What the members stand in.
    pub bytes: Bytes,
    /// Where they are.
    pub members: Vec<Range<usize>>,
}

fn unreadable(malformed: ReplyError) -> RedisError {
    (ErrorKind::Parse, "unreadable", malformed.to_string()).into()
}

/// For what the crate makes of several commands and replies: pipelines and scripts. No command may
/// wait for its reply.
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
            let mut values = Vec::with_capacity(count);
            for number in 0..offset + count {
                let value = redis::parse_redis_value(&self.next().await?.bytes)?;
                if number >= offset {
                    values.push(value);
                }
            }
            Ok(values)
        })
    }

    /// As asked by none of what is used here.
    fn get_db(&self) -> i64 {
        0
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}
