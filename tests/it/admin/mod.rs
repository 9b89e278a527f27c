//! The admin endpoint over HTTP, with a substitute for the daemon.

mod check;
mod commands;
mod hosts;
mod limits;
mod metrics;
mod page;
mod requests;
mod sockets;
mod watch;

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use urlseen_cli::admin::{AdminServer, Checked, Limits, ListeningSocket, SOCKET, Sample, View};
use urlseen_cli::report::{
    Asked, ByReason, ByRule, ClientsStatus, Counts, FilterStatus, GenerationsStatus, GroupCount,
    HeldStatus, Lists, Phase, RouteStatus, RuleCount, Sampled, Status, Statuses, Times,
};
use urlseen_engine::item::RejectReason;
use urlseen_filter::id::RandomId;
use urlseen_storage::{ArchiveSize, Footprint, Head};

use crate::util::wait::SOON;

/// Header of a request with a body.
const JSON: &str = "Content-Type: application/json\r\n";

type Check = dyn Fn(&[Vec<u8>]) -> Result<Vec<Checked>, String> + Send + Sync;

/// Substitute for the daemon. The test sets its answers.
struct Pretender {
    phase: Mutex<Phase>,
    /// Status of a router, if the endpoint belongs to one.
    route: Mutex<Option<RouteStatus>>,
    check: Box<Check>,
    /// Number of requests for the status.
    asked: AtomicUsize,
}

impl View for Pretender {
    fn status(&self) -> Statuses {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match &*self.route.lock().unwrap() {
            Some(route) => Statuses::Route(Box::new(route.clone())),
            None => Statuses::One(Box::new(status(self.phase.lock().unwrap().clone()))),
        }
    }

    fn samples(&self, after: u64) -> Vec<Sample> {
        let sampled = |number| Sampled {
            number,
            time: SystemTime::UNIX_EPOCH,
            fate: "dropped",
            rule: Some("archives".to_owned()),
            reason: None,
            item: b"http://a/\xff.zip".to_vec(),
        };
        (1..=3)
            .filter(|&number| number > after)
            .map(|number| Sample::new(None, sampled(number)))
            .collect()
    }

    fn check(&self, items: &[Vec<u8>]) -> Result<Vec<Checked>, String> {
        (self.check)(items)
    }
}

/// Status with a value in every field.
fn status(phase: Phase) -> Status {
    Status {
        crawl: "a \"crawl\"".to_owned(),
        partition: None,
        version: "1.2.3".to_owned(),
        pid: 4711,
        since: SystemTime::UNIX_EPOCH + Duration::from_secs(1000),
        phase,
        redis: "redis://ann:***@127.0.0.1:6379/0".to_owned(),
        head: Some(Head { seq: 17, commit_id: RandomId::new(0xab) }),
        lease_seconds: Some(12.5),
        counts: Counts {
            unseen: 1,
            seen: 2,
            unfiltered: 3,
            dropped: 18,
            over_limit: 19,
            rejected: 4,
            rejects_dropped: 5,
            own_fingerprints: 26,
            batches: 6,
            batches_aborted: 7,
            recoveries: 8,
            rollbacks: 9,
            snapshots: 10,
            snapshots_failed: 28,
            reconnects: 27,
        },
        rules: ByRule {
            passed: vec![RuleCount { rule: "list pages".to_owned(), items: 12 }],
            dropped: vec![RuleCount { rule: "scheme = '^mailto$'".to_owned(), items: 18 }],
            over_limit: vec![RuleCount { rule: "hosts".to_owned(), items: 19 }],
            over_limit_by_group: vec![GroupCount {
                rule: "hosts".to_owned(),
                group: "shop.example".to_owned(),
                items: 14,
            }],
        },
        rejected_by_reason: ByReason([(RejectReason::Url, 3), (RejectReason::Json, 1)].into()),
        times: times(),
        asked: Asked { seen: 13, unseen: 14, full: 15, forgotten: 17 },
        lists: Lists {
            source: Some(21),
            processing: Some(22),
            sink: Some(23),
            rejected: Some(24),
            age_seconds: Some(26),
        },
        list_limits: Lists { rejected: Some(1000), ..Lists::default() },
        waiting_seconds: Some(7.5),
        held: Some(HeldStatus { consumers: 2, requests: 32 }),
        clients: Some(ClientsStatus { open: 3, accepted: 33, refused: 1 }),
        filter: Some(filter_status()),
        storage: Some(Footprint {
            dir: PathBuf::from("storage/demo"),
            fsync: "interval".to_owned(),
            snapshots: 3,
            last_snapshot: Some("1970-01-01T00:33:20.000Z".to_owned()),
            log_bytes: 41,
            written_bytes: 11,
            archive: Some(ArchiveSize { bytes: 51, is_whole: true }),
        }),
    }
}

/// State of a filter with a value in every field.
fn filter_status() -> FilterStatus {
    FilterStatus {
        keys: 31,
        capacity: 124,
        limit: Some(248),
        fill: 0.25,
        error_rate: 1e-6,
        frozen_error_rate: Some(2.5e-7),
        lost_urls: Some(0.5),
        full_seconds: Some(3600.5),
        generations: Some(GenerationsStatus {
            number: 61,
            next_seconds: Some(89.5),
            keys: [25, 0, 3, 0, 0, 1],
            expired: 2,
            swept: 9,
        }),
        bytes: 4096,
        forgotten: 16,
    }
}

/// Durations with a value in some buckets.
fn times() -> Times {
    let mut times = Times::default();
    times.commit.observe(Duration::from_micros(150));
    times.commit.observe(Duration::from_millis(3));
    times.judge.observe(Duration::from_millis(1));
    times.recovery.observe(Duration::from_mins(1));
    times
}

/// Returns a verdict for each item by its first byte: an item that begins with `s` is seen.
fn by_first_letter(items: &[Vec<u8>]) -> Vec<Checked> {
    let fingerprint = |item: &[u8]| String::from_utf8_lossy(item).into_owned();
    let judge = |item: &Vec<u8>| match item.first() {
        Some(b's') => Checked::Seen { fingerprint: fingerprint(item) },
        Some(b'd') => Checked::Unfiltered,
        Some(0xff) => Checked::Unreadable { reason: format!("{item:?}") },
        _ => Checked::Unseen { fingerprint: fingerprint(item) },
    };
    items.iter().map(judge).collect()
}

/// Admin endpoint with its socket in its own folder.
pub(crate) struct Endpoint {
    /// The server must be dropped before the folder.
    socket_file: ListeningSocket,
    server: AdminServer,
    view: Arc<Pretender>,
    pub(crate) folder: TempDir,
}

impl Endpoint {
    fn new() -> Self {
        Self::with(Limits::default(), |items| Ok(by_first_letter(items)))
    }

    pub(crate) fn with(
        limits: Limits,
        check: impl Fn(&[Vec<u8>]) -> Result<Vec<Checked>, String> + Send + Sync + 'static,
    ) -> Self {
        let folder = TempDir::with_prefix("urlseen-admin-").unwrap();
        let phase = Mutex::new(Phase::Working);
        let (route, check, asked) = (Mutex::default(), Box::new(check), AtomicUsize::default());
        let view = Arc::new(Pretender { phase, route, check, asked });
        let server = AdminServer::start(limits).unwrap();
        let socket = server.listen_in(folder.path(), view.clone()).unwrap();
        Self { socket_file: socket, server, view, folder }
    }

    fn set(&self, phase: Phase) {
        *self.view.phase.lock().unwrap() = phase;
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join(SOCKET)
    }

    fn connect(&self) -> UnixStream {
        connect(&self.socket())
    }

    /// Listens on loopback, at a port that the system chooses.
    fn listen(&mut self) -> SocketAddr {
        self.listen_for(&[])
    }

    /// Listens on loopback, and answers to requests for these host names.
    fn listen_for(&mut self, hosts: &[&str]) -> SocketAddr {
        let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
        self.server.listen_at("127.0.0.1:0", &hosts, None, self.view.clone()).unwrap()
    }

    fn get(&self, path: &str) -> Answer {
        self.request(&format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
    }

    fn post(&self, path: &str, body: &str) -> Answer {
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\n{JSON}");
        self.request(&format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()))
    }

    fn request(&self, request: &str) -> Answer {
        ask(self.connect(), request)
    }
}

fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

fn connect_tcp(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// Sends a request, and reads the answer until the server closes the connection.
fn ask(mut stream: impl Read + Write, request: &str) -> Answer {
    stream.write_all(request.as_bytes()).unwrap();
    answer(&read_to_end(stream))
}

fn read_to_end(mut stream: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // If the server refuses a client before the client has sent everything, a reset follows the
    // answer.
    if let Err(error) = stream.read_to_end(&mut bytes) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    bytes
}

fn answer(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}
