//! TCP proxy between the daemon and Redis that behaves like a very bad network.
//!
//! It is part of this project because no maintained proxy has the most important fault: bytes of a
//! client arrive at the server after this client has given up (a late commit of an old connection).
//! The fault proxy of redis-server-wrapper 0.5 and noxious 1.0 drop these bytes, and trixter 0.1
//! has no such fault. None of them reports the number of cut connections, or the position of the
//! cut.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

/// Direction of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer,
    ToClient,
}

/// Action on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Closes both ends at once.
    Cut,
    /// Passes no bytes on for this time, and then all of them.
    Stall(Duration),
    /// Closes the client's end. Sends the bytes of the client to the server after this time.
    Late(Duration),
}

/// Fault that strikes after `bytes` further bytes have passed in `direction`. The bytes of all
/// connections count. The fault strikes the connection that carries the next byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) direction: Direction,
    pub(crate) bytes: u64,
    pub(crate) act: Act,
}

/// Network conditions for all bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weather {
    /// Maximum number of bytes that pass at once.
    pub(crate) piece: Option<usize>,
    /// Delay after each piece.
    pub(crate) delay: Duration,
}

/// Proxy that listens on loopback until the program ends.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    upstream: PathBuf,
    fault: Mutex<Option<Fault>>,
    weather: Mutex<Weather>,
    struck: AtomicU64,
    late: AtomicU64,
    /// True if the proxy connects new clients to the server.
    is_open: AtomicBool,
    ended: AtomicBool,
}

/// Two ends of a connection. One thread reads and another thread writes each end.
struct Ends {
    client: TcpStream,
    server: UnixStream,
    /// True if the client is disconnected, and its bytes are not delivered yet.
    is_late: AtomicBool,
}

impl Proxy {
    /// Starts a proxy for the server at the Unix socket `upstream`. The server may stop and start
    /// again.
    pub(crate) fn start(upstream: PathBuf) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port on loopback")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            upstream,
            fault: Mutex::default(),
            weather: Mutex::default(),
            struck: AtomicU64::new(0),
            late: AtomicU64::new(0),
            is_open: AtomicBool::new(true),
            ended: AtomicBool::new(false),
        });
        let proxy = Self { address, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shared.ended.load(Ordering::Relaxed) {
                    return;
                }
                // If the server is down, the proxy closes the client's connection.
                if shared.is_open.load(Ordering::Acquire) {
                    drop(shared.join(client));
                }
            }
        });
        Ok(proxy)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Prepares a fault. It replaces a prepared fault that had no effect yet.
    pub(crate) fn prepare(&self, fault: Fault) {
        *lock(&self.shared.fault) = Some(fault);
    }

    /// Cancels the prepared fault, if it had no effect yet.
    pub(crate) fn relent(&self) {
        *lock(&self.shared.fault) = None;
    }

    pub(crate) fn set_weather(&self, weather: Weather) {
        *lock(&self.shared.weather) = weather;
    }

    /// Lets the proxy connect new clients to the server, or, if `is_open` is false, close their
    /// connections at once.
    pub(crate) fn open(&self, is_open: bool) {
        self.shared.is_open.store(is_open, Ordering::Release);
    }

    /// Returns the number of faults that had an effect so far.
    pub(crate) fn struck(&self) -> u64 {
        self.shared.struck.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that arrived late so far.
    pub(crate) fn late(&self) -> u64 {
        self.shared.late.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // This connection wakes the listener.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    /// Connects a client to the server.
    fn join(self: &Arc<Self>, client: TcpStream) -> Result<()> {
        client.set_nodelay(true)?;
        let server = UnixStream::connect(&self.upstream)?;
        let ends = Arc::new(Ends { client, server, is_late: AtomicBool::new(false) });
        for direction in [Direction::ToServer, Direction::ToClient] {
            let (shared, ends) = (Arc::clone(self), Arc::clone(&ends));
            thread::spawn(move || {
                shared.pump(&ends, direction);
                if !ends.is_late.load(Ordering::Acquire) {
                    ends.close();
                }
            });
        }
        Ok(())
    }

    /// Passes bytes on until one end is closed.
    fn pump(&self, ends: &Ends, direction: Direction) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count) = ends.read(direction, &mut buffer)
            && count > 0
        {
            let mut rest = &buffer[..count];
            while !rest.is_empty() {
                let weather = *lock(&self.weather);
                let (count, act) = self.next(direction, weather.piece, rest.len());
                let (piece, others) = rest.split_at(count);
                if ends.write(direction, piece).is_err() {
                    return;
                }
                rest = others;
                match act {
                    None if weather.delay.is_zero() => {}
                    None => thread::sleep(weather.delay),
                    Some(Act::Stall(time)) => thread::sleep(time),
                    Some(Act::Cut) => return ends.close(),
                    Some(Act::Late(time)) => return self.deliver_late(ends, rest, time),
                }
            }
        }
    }

    /// Returns the number of the next bytes to pass on, and the action after them.
    fn next(&self, direction: Direction, piece: Option<usize>, len: usize) -> (usize, Option<Act>) {
        let len = piece.map_or(len, |piece| len.min(piece));
        let mut fault = lock(&self.fault);
        match &mut *fault {
            Some(Fault { direction: wanted, bytes, act }) if *wanted == direction => {
                match usize::try_from(*bytes) {
                    Ok(left) if left < len => {
                        let act = *act;
                        *fault = None;
                        self.struck.fetch_add(1, Ordering::Relaxed);
                        (left, Some(act))
                    }
                    _ => {
                        *bytes -= len as u64;
                        (len, None)
                    }
                }
            }
            _ => (len, None),
        }
    }

    /// Closes the client's end, and delivers the client's bytes to the server later.
    fn deliver_late(&self, ends: &Ends, rest: &[u8], time: Duration) {
        ends.is_late.store(true, Ordering::Release);
        let mut held = rest.to_vec();
        // Bytes that have arrived from the client, but were not read yet, must be delivered, too.
        if ends.client.set_nonblocking(true).is_ok() {
            let mut more = vec![0; 64 << 10];
            while let Ok(count) = (&ends.client).read(&mut more)
                && count > 0
            {
                held.extend_from_slice(&more[..count]);
            }
        }
        drop(ends.client.shutdown(Shutdown::Both));
        thread::sleep(time);
        if (&ends.server).write_all(&held).is_ok() {
            self.late.fetch_add(held.len() as u64, Ordering::Relaxed);
            // When the server closes its end, it has read everything.
            drop(ends.server.shutdown(Shutdown::Write));
            drop(ends.server.set_read_timeout(Some(Duration::from_secs(5))));
            let mut answers = vec![0; 64 << 10];
            while (&ends.server).read(&mut answers).is_ok_and(|count| count > 0) {}
        }
        ends.close();
    }
}

impl Ends {
    fn read(&self, direction: Direction, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let read = match direction {
                Direction::ToServer => (&self.client).read(buffer),
                Direction::ToClient => (&self.server).read(buffer),
            };
            match read {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn write(&self, direction: Direction, bytes: &[u8]) -> std::io::Result<()> {
        match direction {
            Direction::ToServer => (&self.server).write_all(bytes),
            Direction::ToClient => (&self.client).write_all(bytes),
        }
    }

    fn close(&self) {
        drop(self.client.shutdown(Shutdown::Both));
        drop(self.server.shutdown(Shutdown::Both));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
