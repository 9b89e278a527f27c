//! What the endpoint grants to whoever asks.

use std::time::Duration;

/// Bounds on connections, requests and time. A connection has one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections served at once at each address. One more takes the place of the oldest that
    /// waits for its client.
    pub connections: usize,
    /// Bytes that the head of a request has at most; under 8 KiB counts as 8 KiB.
    pub head_bytes: usize,
    /// How long the head may take to arrive.
    pub head: Duration,
    /// Bytes that the body of a request has at most.
    pub body_bytes: usize,
    /// How long the body may take to arrive.
    pub body: Duration,
    /// Items that one request may ask about.
    pub items: usize,
    /// How long a check may take, with its wait for the one before.
    pub check: Duration,
    /// How long a connection may last, whatever happens on it.
    pub connection: Duration,
}

impl Limits {
    /// Items that [`Limits::default`] lets one request ask about.
    pub(crate) const ITEMS: usize = 1000;
    /// Bytes that [`Limits::default`] lets the body of a request have.
    pub const BODY_BYTES: usize = 1 << 20;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 32,
            head_bytes: 16 << 10,
            head: Duration::from_secs(5),
            body_bytes: Self::BODY_BYTES,
            body: Duration::from_secs(5),
            items: Self::ITEMS,
            check: Duration::from_secs(5),
            connection: Duration::from_secs(20),
        }
    }
}
