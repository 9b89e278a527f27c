//! The Redis protocol that the daemon serves to clients (`[serve]`), with real clients.

mod beside;
mod bounds;
mod descriptors;
mod durability;
mod forgetting;
mod rules;
mod strangers;
mod transcript;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use redis::{Client, Connection};
use tempfile::TempDir;

use crate::util::binary::{Daemon, Run, urlseen};
use crate::util::wait::SOON;

/// Daemon that answers clients and has no Redis.
struct Served {
    folder: TempDir,
    settings: Vec<String>,
    password: Option<&'static str>,
}

impl Served {
    /// Makes a daemon for these keys, with a small filter that makes practically no errors.
    fn new(keys: &str) -> Self {
        let settings = [
            "source.kind=none",
            "serve.listen=127.0.0.1:0",
            "filter.capacity=100_000",
            "filter.error_rate=1e-12",
            &format!("serve.keys={keys}"),
        ];
        let folder = TempDir::with_prefix("urlseen-serve-").unwrap();
        Self { folder, settings: settings.map(str::to_owned).to_vec(), password: None }
    }

    fn set(mut self, setting: &str) -> Self {
        self.settings.push(setting.to_owned());
        self
    }

    fn storage_dir(&self) -> std::path::PathBuf {
        self.folder.path().join("storage")
    }

    fn command(&self, command: &str) -> Run {
        configured(command, &self.storage_dir(), &self.settings)
    }

    fn run(&self) -> Run {
        let run = self.command("run");
        self.password.iter().fold(run, |run, password| run.env("URLSEEN_SERVE_PASSWORD", password))
    }

    #[track_caller]
    fn start(&self) -> Running {
        Running::of(self.run().start())
    }
}

fn configured(command: &str, state: &Path, settings: &[String]) -> Run {
    let run = urlseen([command, "--set", &format!("storage.dir={}", state.display())]);
    settings.iter().fold(run, |run, setting| run.arg("--set").arg(setting))
}

/// Running daemon with the address for its clients.
struct Running {
    daemon: Daemon,
    port: u16,
}

impl Running {
    #[track_caller]
    fn of(mut daemon: Daemon) -> Self {
        const SAID: &str = "clients can use the Redis protocol at 127.0.0.1:";
        let said = daemon.wait_for_line(SAID, SOON);
        let port = said.split(SAID).nth(1).unwrap().split(' ').next().unwrap();
        Self { port: port.parse().unwrap(), daemon }
    }

    fn connection(&self) -> Connection {
        let client = Client::open(format!("redis://127.0.0.1:{}", self.port)).unwrap();
        client.get_connection_with_timeout(SOON).unwrap()
    }

    fn socket(&self) -> Socket {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        Socket(stream)
    }
}

/// Returns the peak memory of the daemon in MiB.
fn peak(running: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.daemon.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() >> 10
}

/// Raw connection to a server, without a client library.
struct Socket(TcpStream);

impl Socket {
    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
    }

    /// Reads as many bytes as `expected` has, and returns them as text.
    #[track_caller]
    fn receive(&mut self, expected: &str) -> String {
        let mut bytes = vec![0; expected.len()];
        let mut read = 0;
        while read < bytes.len() {
            match self.0.read(&mut bytes[read..]) {
                Ok(0) | Err(_) => break,
                Ok(more) => read += more,
            }
        }
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    /// Reads until the server closes the connection.
    fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let _ = self.0.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Returns the bytes of a command in the form that clients send.
fn packed<S: AsRef<[u8]>>(words: &[S]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.as_ref().len()).into_bytes());
        bytes.extend_from_slice(word.as_ref());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Makes different URLs with these numbers.
fn urls(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("https://example.com/asked/{number}")).collect()
}
