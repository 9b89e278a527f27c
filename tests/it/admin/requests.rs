//! All requests of the admin endpoint, and their answers.

use urlseen_cli::report::{Backpressure, Phase, Status};

use super::{Endpoint, ask, connect_tcp, status};

#[test]
fn only_a_failed_daemon_is_unhealthy_and_a_daemon_that_cannot_work_is_not_ready() {
    let text = || "because".to_owned();
    let endpoint = Endpoint::new();
    for (phase, health, readiness) in [
        (Phase::Starting, 200, 503),
        (Phase::WaitingForFolder { holder: text() }, 200, 503),
        (Phase::WaitingForLease { holder: text() }, 200, 503),
        (Phase::Recovering, 200, 503),
        (Phase::Working, 200, 200),
        (Phase::Backpressure { by: Backpressure::Sink }, 200, 200),
        (Phase::RedisAway { trouble: text() }, 200, 503),
        (Phase::ReplicasAway { trouble: text() }, 200, 503),
        (Phase::DiskAway { trouble: text() }, 200, 503),
        (Phase::Stopping, 200, 503),
        (Phase::Failed { reason: text() }, 503, 503),
    ] {
        endpoint.set(phase.clone());
        for (path, expected) in [("/healthz", health), ("/readyz", readiness)] {
            let answer = endpoint.get(path);
            assert_eq!(answer.status, expected, "{path} {phase:?}: {answer:?}");
            let body = if expected == 200 { "ok\n".to_owned() } else { format!("{phase}\n") };
            assert_eq!(answer.body, body, "{path}");
        }
    }
}

#[test]
fn the_status_in_json_has_every_field_of_the_status() {
    let endpoint = Endpoint::new();
    for phase in [Phase::Working, Phase::RedisAway { trouble: "gone".to_owned() }] {
        endpoint.set(phase.clone());
        let answer = endpoint.get("/status");
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains("content-type: application/json"), "{answer:?}");
        let back: Status = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(back, status(phase));
    }
    let json: serde_json::Value = serde_json::from_str(&endpoint.get("/status").body).unwrap();
    assert_eq!(json["phase"]["name"], "redis-away");
    assert_eq!(json["since"], "1970-01-01T00:16:40.000Z");
}

#[test]
fn other_paths_and_methods_get_different_errors() {
    let endpoint = Endpoint::new();
    assert_eq!(endpoint.get("/statuses").status, 404);
    assert_eq!(endpoint.get("/check").status, 405);
    assert_eq!(endpoint.post("/status", "").status, 405);
    let head = endpoint.request("HEAD /status HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(endpoint.request("nonsense\r\n\r\n").status, 400);
}

#[test]
fn a_configured_tcp_port_gives_the_same_answers_as_the_socket() {
    let mut endpoint = Endpoint::new();
    let address = endpoint.listen();
    assert!(address.ip().is_loopback());
    let answer = ask(connect_tcp(address), "GET /healthz HTTP/1.0\r\n\r\n");
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"));
}
