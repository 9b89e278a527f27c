//! Limits that the admin endpoint sets for its clients.

use std::time::Duration;

/// Bounds on connections, requests and time. Each connection serves one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of connections at each address at the same time. If one more client connects,
    /// the endpoint closes the oldest idle connection.
    pub connections: usize,
    /// Maximum size of a request's head in bytes. Values under 8 KiB count as 8 KiB.
    pub head_bytes: usize,
    /// Time limit for the arrival of the head.
    pub head: Duration,
    /// Maximum size of a request's body in bytes.
    pub body_bytes: usize,
    /// Time limit for the arrival of the body.
    pub body: Duration,
    /// Maximum number of items in one request.
    pub items: usize,
    /// Time limit for a check. This includes the wait until an earlier check has ended.
    pub check: Duration,
    /// Time limit for a whole connection, from its start to its end.
    pub connection: Duration,
}

impl Limits {
    /// Maximum number of items in one request under [`Limits::default`].
    pub(crate) const ITEMS: usize = 1000;
    /// Maximum size of a request's body in bytes under [`Limits::default`].
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
