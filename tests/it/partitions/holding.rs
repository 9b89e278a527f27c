//! Proxy that holds one command until the test lets it go.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};

use crate::util::redis::RedisServer;

/// Proxy between clients and a Redis server.
pub(super) struct Holding {
    port: u16,
    gate: Arc<Gate>,
}

struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(PartialEq)]
enum State {
    Open,
    /// The proxy will hold the next bytes that contain these.
    Waiting(&'static str),
    Holds,
}

impl Holding {
    /// Starts the proxy for a server. It runs until the end of the test.
    pub(super) fn before(server: &RedisServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let gate = Arc::new(Gate { state: Mutex::new(State::Open), changed: Condvar::new() });
        let (socket, of_clients) = (server.socket(), Arc::clone(&gate));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                let gate = Arc::clone(&of_clients);
                std::thread::spawn(move || gate.pass(client, server));
            }
        });
        Self { port, gate }
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Holds the next command that contains `bytes`, and everything that follows on its connection.
    pub(super) fn hold(&self, bytes: &'static str) {
        self.gate.set(State::Waiting(bytes));
    }

    /// Waits until the proxy holds the command.
    pub(super) fn wait_until_held(&self) {
        self.gate.wait_while(|state| *state != State::Holds);
    }

    /// Passes the held command on to the server.
    pub(super) fn release(&self) {
        self.gate.set(State::Open);
    }
}

impl Gate {
    fn set(&self, state: State) {
        *self.state.lock().unwrap() = state;
        self.changed.notify_all();
    }

    fn wait_while(&self, condition: impl Fn(&State) -> bool) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| condition(state)).unwrap());
    }

    /// Passes bytes on in both directions until one end closes.
    fn pass(&self, client: TcpStream, server: UnixStream) {
        let (mut to_client, mut from_server) =
            (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from_server, &mut to_client);
            let _ = to_client.shutdown(Shutdown::Both);
        });
        let (mut client, mut server, mut part) = (client, server, vec![0; 1 << 16]);
        while let Ok(length @ 1..) = client.read(&mut part) {
            if self.begins_to_hold(&part[..length]) {
                self.wait_while(|state| *state == State::Holds);
            }
            if server.write_all(&part[..length]).is_err() {
                break;
            }
        }
        let _ = server.shutdown(Shutdown::Both);
    }

    fn begins_to_hold(&self, bytes: &[u8]) -> bool {
        let state = self.state.lock().unwrap();
        let State::Waiting(wanted) = *state else { return false };
        let is_it = bytes.windows(wanted.len()).any(|part| part == wanted.as_bytes());
        drop(state);
        if is_it {
            self.set(State::Holds);
        }
        is_it
    }
}
