//! Proxy that shows each command of its clients to the test before the server gets it. The command
//! waits for the test.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use crate::util::redis::RedisServer;

type Hook = Arc<dyn Fn(&[Vec<u8>]) + Send + Sync>;

/// Starts the proxy for a server, and returns its URL. It calls `hook` with the words of each
/// command. It runs until the end of the test.
pub(crate) fn listen(
    server: &RedisServer,
    hook: impl Fn(&[Vec<u8>]) + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}/", listener.local_addr().unwrap());
    let (socket, hook): (_, Hook) = (server.socket(), Arc::new(hook));
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = UnixStream::connect(&socket) else { continue };
            let (mut answers, mut to_client) =
                (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut answers, &mut to_client));
            let hook = Arc::clone(&hook);
            std::thread::spawn(move || pass(client, server, &hook));
        }
    });
    url
}

/// Passes commands on, one by one, until the client ends.
fn pass(client: TcpStream, mut server: UnixStream, hook: &Hook) -> Option<()> {
    let mut client = BufReader::new(client);
    loop {
        let count = number(&mut client, b'*')?;
        let words: Vec<Vec<u8>> = (0..count).map(|_| word(&mut client)).collect::<Option<_>>()?;
        hook(&words);
        let mut packed = format!("*{count}\r\n").into_bytes();
        for word in &words {
            packed.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            packed.extend_from_slice(word);
            packed.extend_from_slice(b"\r\n");
        }
        server.write_all(&packed).ok()?;
    }
}

/// Reads the line of a number that comes after `sign`.
fn number(client: &mut impl BufRead, sign: u8) -> Option<usize> {
    let mut line = String::new();
    client.read_line(&mut line).ok()?;
    line.trim_end().strip_prefix(char::from(sign))?.parse().ok()
}

fn word(client: &mut impl BufRead) -> Option<Vec<u8>> {
    let length = number(client, b'$')?;
    let mut word = vec![0; length + 2];
    client.read_exact(&mut word).ok()?;
    word.truncate(length);
    Some(word)
}
