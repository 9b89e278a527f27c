//! Preflight: the daemon's checks of a Redis server at its start. No check writes to Redis.
//! `transcripts/preflight.txt` has the refusals.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{FromRedisValue, Value};
use tempfile::TempDir;
use urlseen_redis::RedisAddress;
use urlseen_redis::preflight::{
    KeyOwner, Needs, PreflightError, ServerFacts, ServerVersion, preflight,
};

use crate::util::redis::free_port;

/// Password in all these tests. Messages must not contain it.
pub(crate) const PASSWORD: &str = "hunter2";

/// Redis server of one test, on a Unix socket. It ends with the test.
pub(crate) struct Server {
    process: Child,
    pub(crate) folder: TempDir,
}

impl Server {
    /// Starts a server with these arguments, and waits until it answers.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_in(TempDir::new().unwrap(), arguments)
    }

    /// Starts a node of a cluster, without slots. By default, all nodes on Unix sockets would use
    /// the same port for the cluster's bus.
    pub(crate) fn cluster_node() -> Self {
        Self::start(&["--cluster-enabled", "yes", "--cluster-port", &free_port()])
    }

    pub(crate) fn start_in(folder: TempDir, arguments: &[&str]) -> Self {
        let process = Self::spawn(&folder, arguments);
        let server = Self { process, folder };
        wait_until("redis-server answers", || server.ask(&["PING"]).is_some());
        server
    }

    /// Kills the server, and starts it again with the same data.
    pub(crate) fn restart(&mut self, arguments: &[&str]) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.process = Self::spawn(&self.folder, arguments);
        wait_until("redis-server answers again", || self.ask(&["PING"]).is_some());
    }

    /// Returns the path of the server's configuration file.
    pub(crate) fn config(folder: &TempDir) -> PathBuf {
        folder.path().join("server.conf")
    }

    fn spawn(folder: &TempDir, arguments: &[&str]) -> Child {
        let data = folder.path().join("data");
        std::fs::create_dir_all(&data).unwrap();
        let program = std::env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
        Command::new("setpriv")
            .args(["--pdeathsig", "KILL", &program])
            .args(Some(Self::config(folder)).filter(|config| config.exists()))
            .args(["--port", "0", "--save", "", "--unixsocket"])
            .arg(folder.path().join("socket"))
            .arg("--dir")
            .arg(data)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Returns the address of the server with a login, for example `user=ann&pass=hunter2`.
    pub(crate) fn address(&self, login: &str) -> RedisAddress {
        let url = format!("unix://{}?{login}", self.socket().display());
        RedisAddress::new(&url, None).unwrap()
    }

    /// Sends a command as the default user on a new connection. Returns the reply or the error, or
    /// `None` without a reply.
    pub(crate) fn ask(&self, words: &[&str]) -> Option<redis::RedisResult<Value>> {
        let url = format!("unix://{}", self.socket().display());
        let mut connection = redis::Client::open(url).unwrap().get_connection().ok()?;
        let mut command = redis::Cmd::new();
        command.arg(words);
        let reply = command.query(&mut connection);
        if reply.as_ref().is_err_and(redis::RedisError::is_io_error) { None } else { Some(reply) }
    }

    /// Sends a command that is written as one line, and returns the reply.
    pub(crate) fn run<T: FromRedisValue>(&self, line: &str) -> T {
        let words: Vec<&str> = line.split_whitespace().collect();
        T::from_redis_value(self.ask(&words).expect(line).expect(line)).expect(line)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Waits for a condition, up to 20 seconds.
pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "still waiting until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

const STATE: &str = "urlseen:{demo:in}:state";

/// Returns the needs of a crawl that uses all features.
fn needs() -> Needs {
    let mut needs = Needs::default();
    needs.key(KeyOwner::Setting("source.key"), "demo:in", "list");
    needs.key(KeyOwner::Setting("sink.key"), "demo:out", "list");
    needs.key(KeyOwner::Own("state"), STATE, "hash");
    needs.key(KeyOwner::Own("lease"), "urlseen:{demo:in}:lease", "string");
    needs.commands(&["demo:in"], &["LRANGE $ 0 9", "LTRIM $ 1 0"]);
    needs.commands(&["demo:out"], &["RPUSH $ x"]);
    needs.commands(&[STATE], &["HSET $ seq 1"]);
    let evalsha = format!("EVALSHA {} 2 $ $", "0".repeat(40));
    needs.commands(&["demo:in", "demo:out"], &["SCRIPT LOAD return", &evalsha]);
    needs
}

async fn check(server: &Server, login: &str) -> Result<ServerFacts, Vec<PreflightError>> {
    let result = preflight(&server.address(login), &needs()).await;
    let shown = match &result {
        Ok(facts) => format!("{facts} {facts:?}"),
        Err(problems) => {
            let sentences: Vec<String> = problems.iter().map(ToString::to_string).collect();
            format!("{sentences:?} {problems:?}")
        }
    };
    assert!(!shown.contains(PASSWORD), "{shown}");
    result
}

/// Returns the error messages of a refusal. The refusal must be permanent.
async fn sentences(server: &Server, login: &str) -> Vec<String> {
    let problems = check(server, login).await.unwrap_err();
    assert!(problems.iter().all(|problem| !problem.is_passing()), "{problems:?}");
    problems.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_good_server_passes_and_nothing_is_written() {
    let server = Server::start(&[]);
    server.run::<()>("RPUSH demo:in a b c");
    server.run::<()>(&format!("HSET {STATE} seq 7"));
    let dumps = || {
        ["demo:in", "demo:out", STATE]
            .map(|key| server.run::<Option<Vec<u8>>>(&format!("DUMP {key}")))
    };
    let (before, size) = (dumps(), server.run::<u64>("DBSIZE"));
    server.run::<()>("CONFIG RESETSTAT");

    let facts = check(&server, "").await.unwrap();

    let stats = server.run::<String>("INFO commandstats");
    let ran: Vec<&str> = stats
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="))
        .filter(|(_, rest)| !rest.starts_with("0,"))
        .map(|(name, _)| name.split('|').next().unwrap())
        .collect();
    for name in &ran {
        let harmless = ["acl", "info", "type", "multi", "discard", "client", "config"];
        assert!(harmless.contains(name), "{name} was run: {stats}");
    }
    assert!(ran.contains(&"discard"), "{stats}");
    assert_eq!((dumps(), server.run::<u64>("DBSIZE")), (before, size));

    assert!(facts.version >= ServerVersion::NEEDED, "{facts:?}");
}

#[tokio::test]
async fn a_node_of_a_cluster_is_refused_with_the_right_scheme() {
    let server = Server::cluster_node();
    let expected =
        ["this Redis is a node of a Redis Cluster, where other nodes may serve the keys of the \
         crawl; write redis+cluster:// (with TLS: rediss+cluster://) in redis.url"];
    assert_eq!(sentences(&server, "").await, expected);
}
