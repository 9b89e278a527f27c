//! Connections of other programs than Redis clients: browsers, other protocols, and silent
//! connections.

use std::io::{Read, Write};

use super::{Served, Socket, packed};
use crate::util::wait::{SOON, wait_until};

const MEMBER: &str = "https://victim.example/";
const NOAUTH: &str = "-NOAUTH Authentication required.\r\n";

/// Returns requests of browsers, curl and other programs, each with commands as its body.
fn requests() -> Vec<String> {
    let body = format!("\r\nSADD demo {MEMBER}\r\nSREM demo kept\r\nDEL demo\r\n");
    let host = "Host: 127.0.0.1:6390\r\nContent-Type: text/plain\r\n";
    let methods =
        ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "sAdD"];
    let mut all: Vec<String> =
        methods.iter().map(|method| format!("{method} / HTTP/1.1\r\n{host}{body}")).collect();
    all.push(format!("post /it's?\"a HTTP/1.0\r\n{body}"));
    all.push(format!("GET /\r\n{body}"));
    all.push(format!("{host}{body}"));
    all.push(format!("PRI * HTTP/2.0\r\n\r\nSM\r\n{body}"));
    all.push(format!(
        "POST / HTTP/1.1\r\n{host}\r\n--b\r\nContent-Disposition: form-data; name=\"a\"\r\n{body}"
    ));
    all
}

/// Returns the answer about two members to a client with the password.
fn members(socket: &mut Socket) -> String {
    socket.send(format!("SMISMEMBER demo {MEMBER} kept\r\n"));
    socket.receive("*2\r\n:0\r\n:1\r\n")
}

#[test]
fn http_executes_no_command_and_ends_the_connection() {
    for password in [None, Some("a-secret-word")] {
        let mut served = Served::new("demo").set("serve.allow_delete=true");
        served.password = password;
        let running = served.start();
        let mut known = running.socket();
        if password.is_some() {
            known.send("AUTH a-secret-word\r\n");
            assert_eq!(known.receive("+OK\r\n"), "+OK\r\n");
        }
        known.send("SADD demo kept\r\n");
        assert_eq!(known.receive(":1\r\n"), ":1\r\n");
        for request in requests() {
            let mut socket = running.socket();
            socket.send(&request);
            assert_eq!(socket.rest(), "", "{request}");
            assert_eq!(members(&mut known), "*2\r\n:0\r\n:1\r\n", "{request}");
        }
        let said = running.daemon.stderr();
        let warnings: Vec<&str> = said.lines().filter(|it| it.contains("attack")).collect();
        assert_eq!(warnings.len(), 1, "{said}");
        assert!(warnings[0].contains("127.0.0.1:"), "{said}");
        assert!(!said.contains("victim"), "{said}");
    }
}

#[test]
fn http_ends_a_pipeline_and_a_transaction() {
    let served = Served::new("demo");
    let running = served.start();
    let mut socket = running.socket();
    socket.send(format!("PING\r\nSADD demo kept\r\nGET / HTTP/1.1\r\nSADD demo {MEMBER}\r\n"));
    assert_eq!(socket.rest(), "+PONG\r\n:1\r\n");
    let mut socket = running.socket();
    socket.send(format!("MULTI\r\nSADD demo {MEMBER}\r\nHost: a\r\nEXEC\r\n"));
    assert_eq!(socket.rest(), "+OK\r\n+QUEUED\r\n");
    // No browser sends an array, so the daemon treats it as an unknown command.
    let mut socket = running.socket();
    socket.send(packed(&["POST", "/"]));
    let unknown = "-ERR unknown command 'POST', with args beginning with: '/' \r\n";
    assert_eq!(socket.receive(unknown), unknown);
    assert_eq!(members(&mut socket), "*2\r\n:0\r\n:1\r\n");
}

#[test]
fn a_connection_with_another_protocol_ends_at_its_first_line() {
    let served = Served::new("demo");
    let running = served.start();
    let mut known = running.socket();
    known.send("SADD demo kept\r\n");
    assert_eq!(known.receive(":1\r\n"), ":1\r\n");
    // This is the start of a TLS handshake. A hostile server can choose its session ticket, so the
    // ticket can contain line ends and a command.
    let tls: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03ticket";
    for greeting in [tls, b"EHLO a", b"USER anonymous", b"--b", b"X-A: b", b"{a:", b"\0"] {
        let mut socket = running.socket();
        socket.send([greeting, format!("\r\nSADD demo {MEMBER}\r\n").as_bytes()].concat());
        let said = socket.rest();
        assert!(said.starts_with("-ERR unknown command '"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(members(&mut known), "*2\r\n:0\r\n:1\r\n");
    }
}

/// Waits until the server closes the connection.
#[track_caller]
fn closed(mut socket: Socket) {
    let mut bytes = Vec::new();
    match socket.0.read_to_end(&mut bytes) {
        Ok(_) => {}
        // The server closed the connection with unread bytes.
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("not closed: {error}"),
    }
}

#[test]
fn a_client_that_sends_no_whole_command_is_disconnected() {
    let served = Served::new("demo").set("serve.greeting_timeout=200ms").set("serve.max_clients=3");
    let running = served.start();
    let mut known = running.socket();
    known.send("PING\r\n");
    assert_eq!(known.receive("+PONG\r\n"), "+PONG\r\n");
    let (silent, mut halting) = (running.socket(), running.socket());
    halting.send("\r\n\r\n*2\r\n$4\r\nEC");
    closed(silent);
    closed(halting);
    // A client that has sent a command is permitted to be silent for a longer time.
    known.send("PING\r\n");
    assert_eq!(known.receive("+PONG\r\n"), "+PONG\r\n");
    wait_until(SOON, "place", || {
        let mut next = running.socket();
        next.send("QUIT\r\n");
        next.rest() == "+OK\r\n"
    });
}

#[test]
fn a_client_without_the_password_is_disconnected() {
    let mut served = Served::new("demo").set("serve.greeting_timeout=500ms");
    served.password = Some("a-secret-word");
    let running = served.start();
    let mut known = running.socket();
    known.send("AUTH a-secret-word\r\n");
    assert_eq!(known.receive("+OK\r\n"), "+OK\r\n");
    let (silent, mut guessing, mut flooding) =
        (running.socket(), running.socket(), running.socket());
    guessing.send("AUTH wrong\r\nPING\r\n");
    assert!(guessing.receive("-WRONGPASS ").starts_with("-WRONGPASS "));
    // Sends commands until the daemon closes the connection.
    let mut reader = Socket(flooding.0.try_clone().unwrap());
    let reading = std::thread::spawn(move || reader.rest());
    let pings = b"PING\r\n".repeat(100);
    wait_until(SOON, "end of a flood", || flooding.0.write_all(&pings).is_err());
    assert!(reading.join().unwrap().starts_with(NOAUTH));
    closed(silent);
    closed(guessing);
    known.send("PING\r\n");
    assert_eq!(known.receive("+PONG\r\n"), "+PONG\r\n");
}

#[test]
fn silent_clients_take_little_memory() {
    let served = Served::new("demo").set("serve.max_clients=500");
    let running = served.start();
    let command = packed(&["ECHO", &"x".repeat(40_000)]);
    let expected = format!("$40000\r\n{}\r\n", "x".repeat(40_000));
    let ask = || {
        let mut socket = running.socket();
        socket.send(&command);
        assert!(socket.receive(&expected) == expected);
        socket
    };
    let first = ask();
    let before = super::peak(&running);
    let all: Vec<Socket> = (0..400).map(|_| ask()).collect();
    let after = super::peak(&running);
    assert!(after - before < 8, "{before} MiB with one, {after} MiB with 401");
    drop((first, all));
}

#[test]
fn a_client_that_closes_its_side_gets_all_answers() {
    let served = Served::new("demo");
    let running = served.start();
    let mut socket = running.socket();
    let members: Vec<String> = (0..5000).map(|number| format!("half-{number}")).collect();
    for member in &members {
        socket.send(packed(&["SADD", "demo", member]));
    }
    socket.send("SCARD demo\r\nSADD demo cut");
    socket.0.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(socket.rest() == ":1\r\n".repeat(5000) + ":5000\r\n");
}
