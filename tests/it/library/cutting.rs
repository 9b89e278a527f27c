//! Proxy that loses answers, or closes the connections of its clients.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::util::redis::RedisServer;

/// Proxy between clients and a Redis server.
pub(super) struct Cutting {
    port: u16,
    lose: Arc<AtomicUsize>,
    clients: Arc<Mutex<Clients>>,
}

/// Connected clients, or `None` while the proxy refuses clients.
struct Clients(Option<Vec<TcpStream>>);

impl Cutting {
    /// Starts the proxy for a server. It runs until the end of the test.
    pub(super) fn before(server: &RedisServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let lose = Arc::new(AtomicUsize::new(0));
        let (socket, losing) = (server.socket(), Arc::clone(&lose));
        let clients = Arc::new(Mutex::new(Clients(Some(Vec::new()))));
        let letting_in = Arc::clone(&clients);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (server, losing) = (UnixStream::connect(&socket), Arc::clone(&losing));
                let Ok(server) = server else { continue };
                let Some(clients) = &mut letting_in.lock().unwrap().0 else { continue };
                clients.push(client.try_clone().unwrap());
                std::thread::spawn(move || pass(client, server, &losing));
            }
        });
        Self { port, lose, clients }
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Loses the next answers, each together with its connection.
    pub(super) fn lose_next(&self, answers: usize) {
        self.lose.store(answers, Ordering::SeqCst);
    }

    /// Closes all connections, and refuses new ones until [`Cutting::mend`].
    pub(super) fn cut(&self) {
        for client in self.clients.lock().unwrap().0.take().into_iter().flatten() {
            let _ = client.shutdown(Shutdown::Both);
        }
    }

    /// Accepts clients again.
    pub(super) fn mend(&self) {
        self.clients.lock().unwrap().0 = Some(Vec::new());
    }

    /// Returns the number of answers that will be lost.
    pub(super) fn to_lose(&self) -> usize {
        self.lose.load(Ordering::SeqCst)
    }
}

/// Passes bytes on in both directions until an answer is lost or one end closes.
fn pass(client: TcpStream, server: UnixStream, lose: &AtomicUsize) {
    let (mut from_client, mut to_server) =
        (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    let (mut client, mut server, mut part) = (client, server, vec![0; 1 << 16]);
    while let Ok(length @ 1..) = server.read(&mut part) {
        let less = |left: usize| left.checked_sub(1);
        let is_lost = lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok();
        if is_lost || client.write_all(&part[..length]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}
