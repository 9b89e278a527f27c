//! A pipe that stays open, and writers and readers that stop.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc;
use std::thread;

use super::urls;
use crate::util::dies_with_us;
use crate::util::wait::{SOON, poll, wait_until};

/// Running command. The test writes its input and reads its output.
pub(super) struct Live {
    process: Child,
}

impl Live {
    pub(super) fn start(arguments: &[&str], stdin: impl Into<Stdio>) -> Self {
        let process = dies_with_us(env!("CARGO_BIN_EXE_urlseen"))
            .args(arguments)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("setpriv of util-linux is on every Debian");
        Self { process }
    }

    pub(super) fn stdin(&mut self) -> ChildStdin {
        self.process.stdin.take().expect("piped, and taken once")
    }

    fn stdout(&mut self) -> ChildStdout {
        self.process.stdout.take().expect("piped, and taken once")
    }

    /// Waits for the end of the command, which must succeed and print nothing on standard error.
    #[track_caller]
    pub(super) fn ends_well(mut self) {
        let status = poll(SOON, || self.process.try_wait().unwrap()).expect("an end");
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((status.code(), said.as_str()), (Some(0), ""));
    }

    /// Reads a file about the process from the kernel.
    fn proc(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.process.id())).unwrap()
    }

    /// Returns true if all threads wait. In proc(5), the state follows the name.
    fn is_waiting(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap();
        threads
            .map(|thread| thread.unwrap().path().join("stat"))
            .all(|stat| fs::read_to_string(stat).is_ok_and(|stat| stat.contains(") S ")))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // This can fail only if the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns a function that waits for the next line of a pipe, up to a time limit.
fn lines(pipe: ChildStdout) -> impl FnMut() -> Option<String> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            if tell.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    move || match told.recv_timeout(SOON) {
        Ok(line) => Some(line),
        Err(mpsc::RecvTimeoutError::Disconnected) => None,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("no line in {SOON:?}"),
    }
}

#[test]
fn a_line_is_answered_while_the_pipe_stays_open() {
    for arguments in [&["filter"][..], &["fingerprint", "--canonical"]] {
        let mut live = Live::start(arguments, Stdio::piped());
        let (mut stdin, mut next) = (live.stdin(), lines(live.stdout()));
        for number in 0..20 {
            let url = format!("http://example.com/{number}");
            stdin.write_all(format!("{url}\n").as_bytes()).unwrap();
            assert!(next().unwrap().ends_with(&url));
        }
        // A seen line prints nothing, and an incomplete line prints nothing yet.
        if arguments == ["filter"] {
            stdin.write_all(b"http://example.com/0\nhttp://exam").unwrap();
            stdin.write_all(b"ple.com/end\n").unwrap();
            assert_eq!(next().unwrap(), "http://example.com/end");
        }
        drop(stdin);
        assert_eq!(next(), None);
        live.ends_well();
    }
}

/// Runs `urlseen filter | head -1`. Its input is endless and repeats one line, so only one line is
/// unseen.
#[test]
fn a_pipe_without_a_reader_ends_even_if_no_line_is_left_to_print() {
    let mut live = Live::start(&["filter"], Stdio::piped());
    let mut stdin = live.stdin();
    let endless = thread::spawn(move || {
        let same = "http://example.com/\n".repeat(1000);
        while stdin.write_all(same.as_bytes()).is_ok() {}
    });
    let mut reader = BufReader::new(live.stdout());
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    assert_eq!(first, "http://example.com/\n");
    drop(reader);
    live.ends_well();
    endless.join().unwrap();
}

/// The reader closes its end at once. The writer keeps the input open, and writes nothing.
#[test]
fn a_pipe_without_a_reader_ends_even_without_input() {
    let mut live = Live::start(&["filter"], Stdio::piped());
    let stdin = live.stdin();
    drop(live.stdout());
    live.ends_well();
    drop(stdin);
}

#[test]
fn a_pipe_waits_for_a_slow_reader_with_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("links");
    let links = urls(1_000_000);
    fs::write(&file, &links).unwrap();
    let mut live = Live::start(&["filter"], File::open(&file).unwrap());
    let mut looks = 0;
    wait_until(SOON, "rest", || {
        looks = if live.is_waiting() { looks + 1 } else { 0 };
        looks == 20
    });
    let position = live.proc("fdinfo/0");
    let position = position.lines().find_map(|line| line.strip_prefix("pos:")).unwrap();
    let position = position.trim().parse::<usize>().unwrap();
    assert!((1..links.len() / 2).contains(&position), "{position} of {} bytes", links.len());
    let mut stdout = live.stdout();
    let (mut read, mut piece) = (Vec::new(), [0; 3000]);
    loop {
        let length = stdout.read(&mut piece).unwrap();
        if length == 0 {
            break;
        }
        read.extend_from_slice(&piece[..length]);
    }
    assert!(read == links.as_bytes(), "{} of {} bytes", read.len(), links.len());
    live.ends_well();
}
