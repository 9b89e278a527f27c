//! Substitute for a server with RedisBloom. It knows `BF.SCANDUMP` and `BF.LOADCHUNK`, and stores
//! chunks unchanged. The module itself is not free software. `scripts/checks/redisbloom` runs the
//! same tests with the module.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

/// Chunks of each key. Each chunk has its iterator, and the chunks are in the order of their
/// iterators.
type Keys = BTreeMap<String, Vec<(i64, Vec<u8>)>>;

/// Substitute for a server. A connection ends when its client disconnects.
pub(super) struct Fake {
    folder: TempDir,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    keys: Keys,
    /// Failure that a client gets when it loads the chunk with this number, counted from 0.
    failure: Option<(usize, RunError)>,
    /// True if the filter changes during a dump.
    is_busy: bool,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum RunError {
    /// The server answers with an error.
    Error,
    /// The server closes the connection.
    Closed,
}

impl Fake {
    pub(super) fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.unwrap(), Arc::clone(&shared));
                thread::spawn(move || serve(&stream, &state));
            }
        });
        Self { folder, state }
    }

    pub(super) fn url(&self) -> String {
        format!("unix://{}", self.folder.path().join("socket").display())
    }

    pub(super) fn put(&self, key: &str, chunks: Vec<(i64, Vec<u8>)>) {
        self.state.lock().unwrap().keys.insert(key.to_owned(), chunks);
    }

    pub(super) fn chunks(&self, key: &str) -> Option<Vec<(i64, Vec<u8>)>> {
        self.state.lock().unwrap().keys.get(key).cloned()
    }

    pub(super) fn fail(&self, chunk: usize, failure: RunError) {
        self.state.lock().unwrap().failure = Some((chunk, failure));
    }

    pub(super) fn be_busy(&self) {
        self.state.lock().unwrap().is_busy = true;
    }
}

/// Answers commands until one side closes the connection.
fn serve(stream: &UnixStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream);
    while let Some(command) = command(&mut reader) {
        let Some(answer) = answer(&command, &mut state.lock().unwrap()) else { return };
        let mut stream = stream;
        if stream.write_all(&answer).is_err() {
            return;
        }
    }
}

fn command(reader: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    let mut line = String::new();
    let mut number = |reader: &mut dyn BufRead| -> Option<usize> {
        line.clear();
        (reader.read_line(&mut line).unwrap() > 0).then(|| line.trim_end()[1..].parse().unwrap())
    };
    let count = number(reader)?;
    let argument = |_| {
        let mut bytes = vec![0; number(reader)? + 2];
        reader.read_exact(&mut bytes).unwrap();
        bytes.truncate(bytes.len() - 2);
        Some(bytes)
    };
    (0..count).map(argument).collect()
}

/// Returns the answer to a command. `None` closes the connection.
fn answer(command: &[Vec<u8>], state: &mut State) -> Option<Vec<u8>> {
    let text = |at: usize| String::from_utf8_lossy(&command[at]).into_owned();
    let iterator = || text(2).parse::<i64>().unwrap();
    Some(match text(0).as_str() {
        "CLIENT" => b"+OK\r\n".to_vec(),
        "TYPE" if text(1) == "list" => b"+list\r\n".to_vec(),
        "TYPE" if state.keys.contains_key(&text(1)) => b"+MBbloom--\r\n".to_vec(),
        "TYPE" => b"+none\r\n".to_vec(),
        "SCAN" => {
            let keys = state.keys.keys().map(|key| format!("${}\r\n{key}\r\n", key.len()));
            let keys: Vec<_> = keys.collect();
            format!("*2\r\n$1\r\n0\r\n*{}\r\n{}", keys.len(), keys.concat()).into_bytes()
        }
        "UNLINK" => {
            state.keys.remove(&text(1));
            b":1\r\n".to_vec()
        }
        "BF.SCANDUMP" => {
            let Some(chunks) = state.keys.get_mut(&text(1)) else {
                return Some(b"-ERR not found\r\n".to_vec());
            };
            let next = chunks.iter().find(|(at, _)| *at > iterator()).cloned();
            let (next, data) = next.unwrap_or_default();
            if state.is_busy && next == 0 {
                // The header now counts one item more, or one item less.
                chunks[0].1[0] ^= 1;
            }
            let mut answer = format!("*2\r\n:{next}\r\n${}\r\n", data.len()).into_bytes();
            answer.extend(data);
            answer.extend(b"\r\n");
            answer
        }
        "BF.LOADCHUNK" => {
            let chunks = state.keys.get(&text(1)).map_or(0, Vec::len);
            match state.failure.take_if(|(at, _)| *at == chunks) {
                Some((_, RunError::Closed)) => return None,
                Some((_, RunError::Error)) => return Some(b"-ERR received bad data\r\n".to_vec()),
                None => {}
            }
            state.keys.entry(text(1)).or_default().push((iterator(), command[3].clone()));
            b"+OK\r\n".to_vec()
        }
        other => format!("-ERR unknown command '{other}'\r\n").into_bytes(),
    })
}
