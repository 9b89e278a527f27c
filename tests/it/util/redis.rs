//! Real Redis server of one test.

use std::fs::{self, File};
use std::mem;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use redis::{Client, Connection, Value};
use rustix::process::{Pid, Signal, kill_process};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

use super::dies_with_us;
use super::sources::root;
use super::wait::{SOON, poll, wait_until};

/// Redis server on a Unix socket in its own folder. It is killed when dropped.
///
/// By default, it keeps nothing on disk and opens no TCP port.
pub(crate) struct RedisServer {
    /// The folder is dropped and removed after the server.
    folder: TempDir,
    program: PathBuf,
    arguments: Vec<String>,
    process: Option<Child>,
}

impl RedisServer {
    /// Starts a server that keeps nothing on disk.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with these arguments, for example `&["--appendonly", "yes"]`. They override
    /// the arguments of the harness.
    ///
    /// # Panics
    /// If the server does not answer in time. The message has its log.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        Self::start_program(redis_server(), arguments)
    }

    /// Starts a server that also listens at a port of loopback. Returns the port.
    pub(crate) fn start_at_port(arguments: &[&str]) -> (Self, String) {
        let port = free_port();
        (Self::start_with(&[&at_port(&port), arguments].concat()), port)
    }

    /// Starts a Valkey that also listens at a port of loopback. Returns the port.
    pub(crate) fn start_valkey_at_port() -> (Self, String) {
        let port = free_port();
        (Self::start_program(root().join(".venv/bin/valkey-server"), &at_port(&port)), port)
    }

    /// Starts a replica, of the same program, of this server, which listens at this port. Waits
    /// until it has all data. Returns its port, too.
    pub(crate) fn start_replica(&self, port: &str) -> (Self, String) {
        let own = free_port();
        let arguments = [&at_port(&own)[..], &["--replicaof", "127.0.0.1", port]].concat();
        let replica = Self::start_program(self.program.clone(), &arguments);
        wait_until(SOON, "replica", || self.cli(&["info", "replication"]).contains("state=online"));
        (replica, own)
    }

    fn start_program(program: PathBuf, arguments: &[&str]) -> Self {
        let folder = TempDir::with_prefix("urlseen-redis-").expect("a temporary folder");
        let arguments = arguments.iter().map(ToString::to_string).collect();
        let mut server = Self { folder, program, arguments, process: None };
        server.spawn();
        server
    }

    /// Kills the server, as in a crash. It saves no data.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("a process of ours can be killed");
            process.wait().expect("a child can be waited for");
        }
    }

    /// Kills the server if it runs, and starts it again on the same folder, socket and arguments.
    pub(crate) fn restart(&mut self) {
        self.kill();
        // The log of the earlier run would be mistaken for the new one.
        let _ = fs::remove_file(self.log_file());
        self.spawn();
    }

    /// Stops the process (SIGSTOP). Its connections stay open, and get no answers.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Continues a paused server.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Returns the folder with the socket, the log and the saved files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the URL for the configuration and for `redis::Client`, without user and password.
    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Returns the URL with a user and a password.
    pub(crate) fn url_as(&self, user: &str, password: &str) -> String {
        format!("{}?user={user}&pass={password}", self.url())
    }

    /// Makes a new connection.
    ///
    /// # Panics
    /// If the server does not accept it.
    pub(crate) fn connection(&self) -> Connection {
        connect(&self.url()).expect("a running server accepts connections")
    }

    /// Sends a command on a new connection, and returns the answer as `redis-cli` prints it,
    /// without the end of the last line.
    ///
    /// # Panics
    /// If the server answers with an error.
    pub(crate) fn cli(&self, arguments: &[&str]) -> String {
        let mut command = redis::cmd(arguments[0]);
        let answer = command.arg(&arguments[1..]).query(&mut self.connection());
        text(&answer.unwrap_or_else(|error| panic!("{arguments:?}: {error}")))
    }

    fn spawn(&mut self) {
        let folder = self.folder.path();
        let log = File::create(self.log_file()).expect("a file in a folder of ours");
        let errors = log.try_clone().expect("a file handle can be cloned");
        let process = dies_with_us(&self.program)
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no"])
            .arg("--dir")
            .arg(folder)
            .arg("--unixsocket")
            .arg(self.socket())
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .expect("setpriv of util-linux is on every Debian");
        let process = self.process.insert(process);

        let url = format!("unix://{}", folder.join("socket").display());
        let ready = poll(SOON, || match process.try_wait() {
            Ok(None) => answers(&url).then_some(true),
            _ => Some(false),
        });
        if ready != Some(true) {
            let log = fs::read_to_string(self.log_file()).unwrap_or_default();
            let program = self.program.display();
            panic!("{program} {:?} does not answer, its log:\n{log}", self.arguments);
        }
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("the server runs");
        kill_process(Pid::from_child(process), signal).expect("a process of ours takes signals");
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reserves a TCP port on loopback for a server of the tests. Returns it as text. The port is bound
/// by this process, so the kernel gives it to no other program.
pub(crate) fn free_port() -> String {
    let claim = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    claim.set_reuse_address(true).expect("a server may listen on a bound port");
    claim.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port on loopback");
    let address = claim.local_addr().expect("a bound address");
    mem::forget(claim);
    address.as_socket().expect("an address of loopback").port().to_string()
}

/// Returns an answer as text, with a line for each element.
fn text(answer: &Value) -> String {
    match answer {
        Value::Nil => String::new(),
        Value::Okay => "OK".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::SimpleString(text) => text.clone(),
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Array(answers) => answers.iter().map(text).collect::<Vec<_>>().join("\n"),
        other => panic!("{other:?} has no text"),
    }
}

/// Makes a new connection to any server.
pub(crate) fn connect(url: &str) -> redis::RedisResult<Connection> {
    Client::open(url)?.get_connection_with_timeout(SOON)
}

/// Returns true if the server accepts commands or requires a password.
fn answers(url: &str) -> bool {
    match connect(url).and_then(|mut connection| redis::cmd("PING").exec(&mut connection)) {
        Ok(()) => true,
        Err(error) => matches!(error.code(), Some("NOAUTH" | "NOPERM" | "MASTERDOWN")),
    }
}

/// Returns the arguments for a server at a port of loopback, to which replicas connect without a
/// delay.
fn at_port(port: &str) -> [&str; 6] {
    ["--bind", "127.0.0.1", "--port", port, "--repl-diskless-sync-delay", "0"]
}

fn redis_server() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join("redis-server"))
        .find(|program| program.is_file())
        .expect("the tests need redis-server, which is not on the PATH: run scripts/setup")
}
