//! Preflight: the daemon's checks of a Redis server at its start. The tests use real servers and
//! compare the text of each refusal. No check writes to Redis.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{FromRedisValue, Value};
use tempfile::TempDir;
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::connect::Timeouts;
use urlseen_core::redis::error::{LinkError, Retry};
use urlseen_core::redis::preflight::{
    CommandNeed, KeyKind, KeyOwner, Needs, PreflightError, ServerFacts, ServerVersion, preflight,
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

    /// Starts a Sentinel that watches these primaries, each with name and address.
    fn sentinel(primaries: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let watched = primaries.iter().map(|primary| format!("sentinel monitor {primary} 1\n"));
        std::fs::write(Self::config(&folder), watched.collect::<String>()).unwrap();
        Self::start_in(folder, &["--sentinel"])
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
    let mut needs = Needs::new();
    needs
        .key(KeyOwner::Setting("source.key"), "demo:in", KeyKind::List)
        .key(KeyOwner::Setting("sink.key"), "demo:out", KeyKind::List)
        .key(KeyOwner::Own("state"), STATE, KeyKind::Hash)
        .key(KeyOwner::Own("lease"), "urlseen:{demo:in}:lease", KeyKind::String)
        .command(CommandNeed::new("LRANGE").key("demo:in").arg("0").arg("9"))
        .command(CommandNeed::new("LTRIM").key("demo:in").arg("1").arg("0"))
        .command(CommandNeed::new("RPUSH").key("demo:out").arg("x"))
        .command(CommandNeed::new("HSET").key(STATE).arg("seq").arg("1"))
        .command(CommandNeed::new("SCRIPT LOAD").arg("return 1"))
        .command(
            CommandNeed::new("EVALSHA").arg("0".repeat(40)).arg("2").key("demo:in").key("demo:out"),
        );
    needs
}

async fn check(server: &Server, login: &str) -> Result<ServerFacts, Vec<PreflightError>> {
    let result = preflight(&server.address(login), Timeouts::default(), &needs()).await;
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
    assert!(problems.iter().all(|problem| problem.retry() == Retry::Never), "{problems:?}");
    problems.iter().map(ToString::to_string).collect()
}

/// Runs the `ACL SETUSER` command that an error message gives. In the message, `end` comes after
/// the command.
fn obey(server: &Server, sentence: &str, end: &str) {
    let (_, command) = sentence.split_once("grants that with: ").expect(sentence);
    let command = command.split(end).next().unwrap();
    server.run::<()>(command);
}

const ANN: &str = "user=ann&pass=hunter2";

/// Adds the user ann with these rules.
fn add_ann(server: &Server, rules: &str) {
    server.run::<()>(&format!("ACL SETUSER ann on >{PASSWORD} {rules}"));
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
    assert_eq!(facts.user.as_deref(), Some("default"));
    assert_eq!(facts.eviction.as_deref(), Some("noeviction"));
    assert_eq!(facts.appends, Some(false));
}

#[tokio::test]
async fn keys_of_another_type_are_named_all_at_once() {
    let server = Server::start(&[]);
    server.run::<()>("SADD demo:in a");
    server.run::<()>("RPUSH demo:out a");
    server.run::<()>(&format!("SET {STATE} a"));
    server.run::<()>("ZADD urlseen:{demo:in}:lease 1 a");
    let expected = [
        "source.key is demo:in, and Redis holds a set there where a list is needed; choose another \
         source.key, or rename the set with RENAME",
        "urlseen:{demo:in}:state is urlseen's own key (its state), and Redis holds a string there \
         where a hash is needed; find the program that wrote it, and rename the string with RENAME",
        "urlseen:{demo:in}:lease is urlseen's own key (its lease), and Redis holds a zset there \
         where a string is needed; find the program that wrote it, and rename the zset with RENAME",
    ];
    assert_eq!(sentences(&server, "").await, expected);
}

#[tokio::test]
async fn missing_commands_are_reported_with_the_acl_rule_that_permits_them() {
    let server = Server::start(&[]);
    add_ann(&server, "~* +@all -rpush -script -hset");
    let expected = [
        "the Redis user ann may not run RPUSH, HSET and SCRIPT LOAD; an administrator grants that \
         with: ACL SETUSER ann +rpush +hset +script|load",
    ];
    let found = sentences(&server, ANN).await;
    assert_eq!(found, expected);
    obey(&server, &found[0], "\n");
    assert_eq!(check(&server, ANN).await.unwrap().user.as_deref(), Some("ann"));
}

#[tokio::test]
async fn missing_keys_are_reported_with_the_acl_rule_that_permits_them() {
    let server = Server::start(&[]);
    add_ann(&server, "~demo:in +@all");
    let expected = [
        "the Redis user ann may not touch the key demo:out (denied: TYPE, RPUSH, EVALSHA), the key \
         urlseen:{demo:in}:state (denied: TYPE, HSET) and the key urlseen:{demo:in}:lease (denied: \
         TYPE); an administrator grants that with: ACL SETUSER ann ~demo:out \
         ~urlseen:{demo:in}:state ~urlseen:{demo:in}:lease",
    ];
    let found = sentences(&server, ANN).await;
    assert_eq!(found, expected);
    obey(&server, &found[0], "\n");
    check(&server, ANN).await.unwrap();
}

#[tokio::test]
async fn all_problems_are_found_even_if_commands_of_the_checks_are_denied() {
    let server = Server::start(&[]);
    add_ann(&server, "~demo:in +multi +discard +lrange");
    let expected = [
        "the Redis user ann may not run INFO, TYPE, LTRIM, RPUSH, HSET, SCRIPT LOAD and EVALSHA; \
         an administrator grants that with: ACL SETUSER ann +info +type +ltrim +rpush +hset \
         +script|load +evalsha (whether the user may touch demo:out, urlseen:{demo:in}:state and \
         urlseen:{demo:in}:lease cannot be checked before that; if not, ~demo:out \
         ~urlseen:{demo:in}:state ~urlseen:{demo:in}:lease is needed, too)",
    ];
    let found = sentences(&server, ANN).await;
    assert_eq!(found, expected);
    obey(&server, &found[0], " (whether");
    let found = sentences(&server, ANN).await;
    assert!(found[0].contains("may not touch the key demo:out"), "{found:?}");
    obey(&server, &found[0], "\n");
    check(&server, ANN).await.unwrap();
}

#[tokio::test]
async fn without_multi_no_command_is_tried() {
    let server = Server::start(&[]);
    add_ann(&server, "~* +@all -multi");
    server.run::<()>("RPUSH demo:in a b c");
    let expected = [
        "the Redis user ann may not run MULTI; an administrator grants that with: ACL SETUSER ann \
         +multi; without MULTI the other commands could not be checked",
    ];
    assert_eq!(sentences(&server, ANN).await, expected);
    assert_eq!(server.run::<u64>("LLEN demo:in"), 3, "LTRIM was run");
    assert_eq!(server.run::<u64>("DBSIZE"), 1, "RPUSH or HSET was run");
}

#[tokio::test]
async fn a_missing_discard_is_reported_and_nothing_runs() {
    let server = Server::start(&[]);
    add_ann(&server, "~* +@all -discard -exec");
    let expected =
        ["the Redis user ann may not run DISCARD; an administrator grants that with: ACL SETUSER \
         ann +discard"];
    assert_eq!(sentences(&server, ANN).await, expected);
    assert_eq!(server.run::<u64>("DBSIZE"), 0);
}

#[tokio::test]
async fn renamed_commands_are_reported() {
    let server =
        Server::start(&["--rename-command", "RPUSH", "", "--rename-command", "LTRIM", "X"]);
    let expected =
        ["this Redis does not know LTRIM and RPUSH; its configuration (rename-command) or its \
         provider removed that: restore it, or use another server"];
    assert_eq!(sentences(&server, "").await, expected);
}

#[tokio::test]
async fn eviction_of_any_key_is_refused() {
    let server = Server::start(&["--maxmemory-policy", "allkeys-lru"]);
    let expected = [
        "this Redis may evict any key when its memory is full (maxmemory-policy is allkeys-lru), \
         and so lose a list of the crawl or its state; set maxmemory-policy to noeviction, or to a \
         volatile- one, with CONFIG SET and in redis.conf",
    ];
    assert_eq!(sentences(&server, "").await, expected);
    server.run::<()>("CONFIG SET maxmemory-policy volatile-lru");
    check(&server, "").await.unwrap();
}

#[tokio::test]
async fn a_replica_is_refused_with_the_address_of_its_primary() {
    let server = Server::start(&["--replicaof", "127.0.0.1", "1"]);
    let expected = [
        "this Redis is a replica of 127.0.0.1:1, where writes are refused or lost; set redis.url \
         to the primary, 127.0.0.1:1",
    ];
    assert_eq!(sentences(&server, "").await, expected);
    // Both kinds of replicas are refused: one that answers nothing without its primary, and a
    // writable one.
    server.run::<()>("CONFIG SET replica-serve-stale-data no");
    assert_eq!(sentences(&server, "").await, expected);
    server.run::<()>("CONFIG SET replica-serve-stale-data yes");
    server.run::<()>("CONFIG SET replica-read-only no");
    assert_eq!(sentences(&server, "").await, expected);
}

#[tokio::test]
async fn a_sentinel_is_refused_with_the_address_of_its_primary() {
    let said = "this is a Redis Sentinel, not a Redis server, and has no data; write \
                redis+sentinel:// and the name of a primary in redis.url, or set it to ";
    let one = Server::sentinel(&["mymaster 127.0.0.1 1"]);
    let primary = "the primary that it watches: mymaster at 127.0.0.1:1";
    assert_eq!(sentences(&one, "").await, [format!("{said}{primary}")]);
    let none = Server::sentinel(&[]);
    let unnamed = "the primary that it watches, which SENTINEL MASTERS names";
    assert_eq!(sentences(&none, "").await, [format!("{said}{unnamed}")]);
}

#[tokio::test]
async fn a_node_of_a_cluster_is_refused_with_the_right_scheme() {
    let server = Server::cluster_node();
    let expected =
        ["this Redis is a node of a Redis Cluster, where other nodes may serve the keys of the \
         crawl; write redis+cluster:// (with TLS: rediss+cluster://) in redis.url"];
    assert_eq!(sentences(&server, "").await, expected);
}

#[tokio::test]
async fn problems_of_all_kinds_are_reported_together() {
    let server = Server::start(&["--maxmemory-policy", "allkeys-random"]);
    server.run::<()>("SADD demo:out a");
    add_ann(&server, "~* +@all -ltrim");
    let found = sentences(&server, ANN).await;
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("this Redis may evict any key"), "{found:?}");
    assert!(found[1].starts_with("sink.key is demo:out"), "{found:?}");
    assert!(found[2].starts_with("the Redis user ann may not run LTRIM;"), "{found:?}");
}

#[tokio::test]
async fn a_full_server_is_a_temporary_error_and_not_a_missing_permission() {
    let server = Server::start(&["--maxmemory", "1"]);
    let problems = check(&server, "").await.unwrap_err();
    assert_eq!(problems, [PreflightError::Link(LinkError::OutOfMemory)]);
    assert_eq!(problems[0].retry(), Retry::Later);
}

#[tokio::test]
async fn failed_logins_are_refused() {
    let server = Server::start(&["--requirepass", "correct-horse"]);
    let wrong = |user: &str| {
        format!(
            "Redis refused the password of the user {user}, or that user is off; check \
             URLSEEN_REDIS_PASSWORD and redis.url (ACL LIST on the server shows its users)"
        )
    };
    assert_eq!(sentences(&server, "pass=hunter2").await, [wrong("default")]);
    assert_eq!(sentences(&server, ANN).await, [wrong("ann")]);
    let needed = "Redis asks for a password and none was given; set URLSEEN_REDIS_PASSWORD, and a \
                  user other than default in redis.url like redis://user@host:6379/0";
    assert_eq!(sentences(&server, "").await, [needed]);
    check(&server, "pass=correct-horse").await.unwrap();
}
