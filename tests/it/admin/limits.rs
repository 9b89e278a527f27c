//! Limits that protect the admin endpoint from slow and greedy clients.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use urlseen_cli::admin::Limits;

use super::{Endpoint, JSON, answer, ask, by_first_letter, connect_tcp, read_to_end};
use crate::util::wait::SOON;

const BRIEF: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_mins(10);

/// Returns limits that no test reaches. A test replaces the limit that it is about.
fn patient() -> Limits {
    Limits { head: LONG, body: LONG, check: LONG, connection: LONG, ..Limits::default() }
}

fn endpoint(limits: Limits) -> Endpoint {
    Endpoint::with(limits, |items| Ok(by_first_letter(items)))
}

/// Reads until the server closes the connection.
fn until_closed(stream: UnixStream) -> Vec<u8> {
    let start = Instant::now();
    let bytes = read_to_end(stream);
    assert!(start.elapsed() >= BRIEF / 2, "closed at once");
    bytes
}

#[test]
fn a_connection_without_a_complete_head_is_closed() {
    let endpoint = endpoint(Limits { head: BRIEF, ..patient() });
    for part in ["", "GET /healthz HTTP/1.1\r\nHost:"] {
        let mut stream = endpoint.connect();
        stream.write_all(part.as_bytes()).unwrap();
        until_closed(stream);
    }
}

#[test]
fn a_connection_without_a_complete_body_is_closed() {
    let endpoint = endpoint(Limits { body: BRIEF, ..patient() });
    let mut stream = endpoint.connect();
    let head = format!("POST /check HTTP/1.1\r\nHost: x\r\n{JSON}Content-Length: 100\r\n\r\n{{");
    stream.write_all(head.as_bytes()).unwrap();
    let answer = answer(&until_closed(stream));
    assert_eq!(answer.status, 408, "{answer:?}");
    assert_eq!(answer.body, "the body did not arrive within 200ms\n");
}

#[test]
fn every_slow_connection_ends() {
    let (let_go, hang) = mpsc::channel::<()>();
    let hang = std::sync::Mutex::new(hang);
    let endpoint = Endpoint::with(Limits { connection: BRIEF, ..patient() }, move |items| {
        let _ = hang.lock().unwrap().recv();
        Ok(by_first_letter(items))
    });
    let head = format!("POST /check HTTP/1.1\r\nHost: x\r\n{JSON}Content-Length: 16\r\n");
    for part in ["", &head, &format!("{head}\r\n{{"), &format!("{head}\r\n{{\"items\": [\"a\"]}}")]
    {
        let mut stream = endpoint.connect();
        stream.write_all(part.as_bytes()).unwrap();
        assert_eq!(until_closed(stream), b"", "{part}");
    }
    drop(let_go);
}

#[test]
fn a_too_large_request_is_refused() {
    let endpoint = endpoint(Limits { body_bytes: 1000, ..patient() });
    let items = |bytes: usize| format!(r#"{{"items": ["{}"]}}"#, "u".repeat(bytes));
    assert_eq!(endpoint.post("/check", &items(900)).status, 200);
    let answer = endpoint.post("/check", &items(1000));
    assert_eq!((answer.status, answer.body.as_str()), (413, "a body has at most 1000 bytes\n"));
    // The head of this request does not give the length of the body.
    let chunked = format!(
        "POST /check HTTP/1.1\r\nHost: x\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n7d0\r\n{}\r\n",
        "u".repeat(2000)
    );
    assert_eq!(endpoint.request(&chunked).status, 413);
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let mut stream = endpoint.connect();
    // The server refuses the request after its first bytes, and does not read the rest.
    let _ = stream.write_all(long.as_bytes());
    assert_eq!(super::answer(&read_to_end(stream)).status, 431);
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: x\r\n".repeat(100));
    assert_eq!(endpoint.request(&many).status, 431);
}

#[test]
fn a_check_with_too_many_items_is_refused() {
    let endpoint = endpoint(Limits { items: 3, ..patient() });
    assert_eq!(endpoint.post("/check", r#"{"items": ["a", "b", "c"]}"#).status, 200);
    let answer = endpoint.post("/check", r#"{"items": ["a", "b", "c", "d"]}"#);
    assert_eq!(answer.status, 413);
    assert_eq!(answer.body, "4 items; a request has at most 3\n");
}

/// Returns incomplete requests.
fn silences() -> [String; 4] {
    let body = format!("POST /check HTTP/1.1\r\nHost: localhost\r\n{JSON}Content-Length: 99\r\n");
    [String::new(), "GET /heal".to_owned(), body.clone(), body + "\r\n{\"items\": ["]
}

const PROBE: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn silent_connections_do_not_delay_a_probe() {
    let mut endpoint = endpoint(Limits { connections: 8, ..patient() });
    let address = endpoint.listen();
    for silence in silences() {
        let connect = || {
            let (mut tcp, mut unix) = (connect_tcp(address), endpoint.connect());
            tcp.write_all(silence.as_bytes()).unwrap();
            unix.write_all(silence.as_bytes()).unwrap();
            (tcp, unix)
        };
        let silent: Vec<_> = (0..40).map(|_| connect()).collect();
        assert_eq!(ask(connect_tcp(address), PROBE).status, 200, "{silence}");
        assert_eq!(endpoint.get("/healthz").status, 200, "{silence}");
        drop(silent);
    }
}

#[test]
fn the_oldest_idle_connection_is_closed_for_a_new_one() {
    let mut endpoint = endpoint(Limits { connections: 3, ..patient() });
    let address = endpoint.listen();
    let [mut oldest, second, third] = [(); 3].map(|()| connect_tcp(address));
    let fourth = connect_tcp(address);
    assert_eq!(oldest.read(&mut [0]).unwrap(), 0, "it is closed");
    for rest in [second, third, fourth] {
        assert_eq!(ask(rest, PROBE).status, 200);
    }
}

#[test]
fn a_connection_with_a_running_check_is_not_closed_for_new_ones() {
    let (tell, begun) = mpsc::channel::<()>();
    let (let_go, hang) = mpsc::channel::<()>();
    let hang = std::sync::Mutex::new(hang);
    let endpoint = Endpoint::with(Limits { connections: 3, ..patient() }, move |items| {
        tell.send(()).unwrap();
        let _ = hang.lock().unwrap().recv();
        Ok(by_first_letter(items))
    });
    let mut check = endpoint.connect();
    let head = format!("POST /check HTTP/1.1\r\nHost: x\r\n{JSON}Content-Length: 16");
    check.write_all(format!("{head}\r\n\r\n{{\"items\": [\"s\"]}}").as_bytes()).unwrap();
    begun.recv().unwrap();
    let silent: Vec<_> = (0..20).map(|_| endpoint.connect()).collect();
    assert_eq!(endpoint.get("/healthz").status, 200);
    let_go.send(()).unwrap();
    assert_eq!(answer(&read_to_end(check)).status, 200);
    drop(silent);
}

#[test]
fn a_hanging_check_delays_only_other_checks() {
    let (let_go, hang) = mpsc::channel::<()>();
    let hang = std::sync::Mutex::new(hang);
    let endpoint = Endpoint::with(Limits { check: BRIEF, ..patient() }, move |items| {
        if items[0] == b"hang" {
            let _ = hang.lock().unwrap().recv();
        }
        Ok(by_first_letter(items))
    });
    let hung = endpoint.post("/check", r#"{"items": ["hang"]}"#);
    assert_eq!(hung.status, 503);
    assert_eq!(hung.body, "the filter did not answer within 200ms\n");
    assert_eq!(endpoint.get("/status").status, 200);
    assert_eq!(endpoint.post("/check", r#"{"items": ["a"]}"#).status, 503);
    let_go.send(()).unwrap();
    let again = || endpoint.post("/check", r#"{"items": ["a"]}"#).status == 200;
    crate::util::wait::wait_until(SOON, "answer to a check", again);
    // The endpoint must end, although this check never ends.
    assert_eq!(endpoint.post("/check", r#"{"items": ["hang"]}"#).status, 503);
    drop(endpoint);
    drop(let_go);
}
