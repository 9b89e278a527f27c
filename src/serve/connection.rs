//! Connection of one client: bytes in both directions, with time limits.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// Time limit for a client to read its replies.
const WRITE: Duration = Duration::from_secs(30);

/// Time limit for the next bytes of a command that has begun.
const REST: Duration = Duration::from_secs(30);

/// Maximum number of bytes in one read. Replies of this many bytes are sent at once.
pub(super) const BUFFER: usize = 64 << 10;

/// Connection, with received bytes that are not yet parsed, and replies that are not yet sent.
pub(super) struct Connection {
    stream: TcpStream,
    /// Address of the client, as the system reports it. The client cannot choose its text.
    pub(super) peer: SocketAddr,
    pub(super) received: BytesMut,
    pub(super) replies: BytesMut,
    /// End of the time for the greeting. The greeting is the first command, and also the password
    /// if one is set. `None` after the greeting: the client may then be silent between commands.
    pub(super) greeting_end: Option<Instant>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr, greeting_timeout: Duration) -> Self {
        Self {
            stream,
            peer,
            received: BytesMut::new(),
            replies: BytesMut::new(),
            greeting_end: Some(Instant::now() + greeting_timeout),
        }
    }

    /// Sends the replies to the client.
    pub(super) async fn send(&mut self) -> io::Result<()> {
        let end = self.end_of(WRITE);
        timeout_at(end, self.stream.write_all(&self.replies)).await??;
        self.replies.clear();
        Ok(())
    }

    /// Receives more bytes. Returns 0 at the end of the stream.
    pub(super) async fn receive(&mut self) -> io::Result<usize> {
        // Without this check, a client that never stops sending bytes could exceed this time limit.
        if self.greeting_end.is_some_and(|end| end <= Instant::now()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // Between commands, only the time for the greeting is limited.
        let end =
            if self.received.is_empty() { self.greeting_end } else { Some(self.end_of(REST)) };
        match end {
            Some(end) => timeout_at(end, self.read()).await?,
            None => self.read().await,
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        // Without this line, a connection that is always readable would block all others.
        tokio::task::coop::consume_budget().await;
        loop {
            if self.received.is_empty() {
                // Frees the buffers, so that a silent client takes little memory.
                self.received = BytesMut::new();
                self.replies = BytesMut::new();
            }
            self.stream.readable().await?;
            self.received.reserve(4096);
            match self.stream.try_read_buf(&mut (&mut self.received).limit(BUFFER)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }

    /// Closes the connection after all replies were sent. Discards the bytes that the client still
    /// sends: otherwise the system would reset the connection, and the client could lose the last
    /// reply.
    pub(super) async fn close(mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        let end = self.end_of(REST);
        loop {
            self.received.clear();
            if timeout_at(end, self.read()).await?? == 0 {
                return Ok(());
            }
        }
    }

    /// Returns the moment at which `time` has passed from now, or the end of the greeting's time
    /// limit if that is earlier.
    fn end_of(&self, time: Duration) -> Instant {
        let end = Instant::now() + time;
        self.greeting_end.map_or(end, |greeting| greeting.min(end))
    }
}
