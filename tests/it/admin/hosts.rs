//! Host names of requests to the admin endpoint.

use urlseen_cli::report::{Phase, Status};

use super::{Endpoint, ask, connect_tcp, status};

#[test]
fn a_request_for_an_unknown_host_name_is_refused() {
    // An answer would let a web page read the endpoint: the page's own host name can resolve to the
    // address of the endpoint (DNS rebinding).
    let mut endpoint = Endpoint::new();
    let address = endpoint.listen_for(&["metrics.example"]);
    let get = |host: &str, path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        ask(connect_tcp(address), &request)
    };
    for path in ["/", "/healthz", "/readyz", "/status", "/metrics", "/check", "/nowhere"] {
        let answer = get("evil.example:9090", path);
        assert_eq!(answer.status, 421, "{path}: {answer:?}");
        assert_eq!(
            answer.body,
            "this endpoint does not answer requests for the host \"evil.example\": use an IP \
             address or localhost, or add the name to admin.hosts\n"
        );
    }
    for host in [
        "localhost",
        "LocalHost.:80",
        "any.localhost:9090",
        "127.0.0.1",
        "10.1.2.3:9090",
        "[::1]:9090",
        "METRICS.example.:9090",
    ] {
        assert_eq!(get(host, "/healthz").status, 200, "{host}");
    }
    for host in ["", "localhost.evil.example", "127.0.0.1.evil.example", "x.metrics.example"] {
        assert_eq!(get(host, "/status").status, 421, "{host}");
    }
    for host in ["::1", "[::1", "localhost:http", "evil@localhost", "a, localhost", "\u{fc}"] {
        assert_eq!(get(host, "/status").status, 400, "{host}");
    }
}

#[test]
fn an_absolute_target_takes_precedence_over_the_host_header() {
    let mut endpoint = Endpoint::new();
    let address = endpoint.listen();
    let code = |request: &str| ask(connect_tcp(address), request).status;
    for (target, host, expected) in [
        ("http://evil.example/status", "localhost", 421),
        ("http://evil.example:9090/status", "127.0.0.1", 421),
        ("http://localhost/status", "evil.example", 200),
        ("http://[::1]:9090/status", "evil.example", 200),
        ("http://localhost@evil.example/status", "localhost", 400),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(code(&request), expected, "{target} {host}");
    }
    assert_eq!(code("GET http://evil.example/status HTTP/1.0\r\n\r\n"), 421);
}

#[test]
fn a_request_with_no_host_or_two_hosts_is_refused() {
    let mut endpoint = Endpoint::new();
    let address = endpoint.listen();
    let code = |request: &str| ask(connect_tcp(address), request).status;
    assert_eq!(code("GET /status HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(code("GET http://localhost/status HTTP/1.1\r\n\r\n"), 400);
    let twice = "GET /status HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n";
    assert_eq!(code(twice), 400);
    assert_eq!(code("GET /status HTTP/1.0\r\nHost: evil.example\r\n\r\n"), 421);
    // Some load balancers send a probe without a `Host` header. No browser sends one.
    assert_eq!(code("GET /healthz HTTP/1.0\r\n\r\n"), 200);
}

#[test]
fn the_socket_in_the_folder_answers_to_any_host() {
    let endpoint = Endpoint::new();
    for host in ["evil.example", "", "daemon"] {
        let answer = endpoint.request(&format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(answer.status, 200, "{host}");
    }
}

#[test]
fn answers_contain_no_terminal_control_characters() {
    let endpoint = Endpoint::new();
    let trouble = "a\u{1b}]0;b\u{7}\rc\u{9b}31m\u{202e}".to_owned();
    endpoint.set(Phase::RedisAway { trouble: trouble.clone() });
    let unknown = format!(r#"{{"\u001b{}": []}}"#, "\u{9b}\u{202e}");
    for answer in
        [endpoint.get("/readyz"), endpoint.get("/status"), endpoint.post("/check", &unknown)]
    {
        let odd = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!answer.body.contains(odd), "{answer:?}");
    }
    let back: Status = serde_json::from_str(&endpoint.get("/status").body).unwrap();
    assert_eq!(back, status(Phase::RedisAway { trouble }));
}
