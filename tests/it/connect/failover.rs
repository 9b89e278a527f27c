//! A crawl over failovers of a primary with Sentinels.

use std::collections::BTreeSet;
use std::time::Duration;

use redis::{Commands, Connection, RedisResult};
use rustix::process::Signal;

use super::sentinels::{Sentinel, url};
use crate::util::binary::urlseen;
use crate::util::redis::RedisServer;
use crate::util::wait::{SOON, wait_until};

const SOURCE: &str = "demo:discovered";
const PROCESSING: &str = "urlseen:{demo:discovered}:processing";
const SINK: &str = "demo:unseen";

/// Time for a failover, of which most passes until the Sentinels agree.
const FAILOVER: Duration = Duration::from_secs(40);

/// Three servers, of which one is the primary, and three Sentinels.
struct Group {
    servers: Vec<(RedisServer, String)>,
    sentinels: Vec<Sentinel>,
}

impl Group {
    fn start() -> Self {
        let primary = RedisServer::start_at_port(&[]);
        let of = ["--replicaof", "127.0.0.1", &primary.1];
        let replica = || RedisServer::start_at_port(&of);
        let servers = vec![replica(), replica(), primary];
        let primary = &servers[2];
        wait_until(SOON, "two replicas", || {
            let online = "state=online";
            primary.0.cli(&["info", "replication"]).matches(online).count() == 2
        });
        let lines = "sentinel down-after-milliseconds mymaster 1000\n\
                     sentinel failover-timeout mymaster 3000";
        let sentinel = |_| Sentinel::start(&primary.1, 2, lines);
        let sentinels: Vec<_> = (0..3).map(sentinel).collect();
        for sentinel in &sentinels {
            wait_until(SOON, "the Sentinels know each other and the replicas", || {
                let facts: Vec<String> = sentinel.server.run("SENTINEL MASTER mymaster");
                let fact = |name| facts.chunks(2).find(|it| it[0] == name).map(|it| it[1].clone());
                let both = [fact("num-slaves"), fact("num-other-sentinels")];
                both.iter().all(|number| number.as_deref() == Some("2"))
            });
        }
        Self { servers, sentinels }
    }

    fn url(&self) -> String {
        url(&self.sentinels.iter().map(|it| it.port.as_str()).collect::<Vec<_>>())
    }

    /// Returns the number of the primary that the first Sentinel names.
    fn primary(&self) -> usize {
        let question = "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster";
        let (_, port): (String, String) = self.sentinels[0].server.run(question);
        self.servers.iter().position(|(_, it)| *it == port).unwrap()
    }

    fn server(&self) -> &RedisServer {
        &self.servers[self.primary()].0
    }

    /// Asks the primary until the answer is true. If a busy server answers too late, the Sentinels
    /// start a failover, and the demoted primary closes its connections. So each question has its
    /// own connection, and its error counts as no.
    fn ask(&self, what: &str, question: impl Fn(&mut Connection) -> RedisResult<bool>) {
        wait_until(FAILOVER, what, || question(&mut self.server().connection()).unwrap_or(false));
    }

    /// Pushes items to the primary, and waits until `replicas` have them. May push items twice.
    fn push(&self, items: &[String], replicas: usize) {
        self.ask("pushed items", |connection| {
            for items in items.chunks(10_000) {
                connection.rpush::<_, _, ()>(SOURCE, items)?;
            }
            let wait = redis::cmd("WAIT").arg(replicas).arg(20_000).query::<usize>(connection);
            Ok(wait? >= replicas)
        });
    }

    /// Waits until the sink of the primary has this many items.
    fn wait_for_sink(&self, length: usize) {
        self.ask(
            "items in the sink",
            |connection| Ok(connection.llen::<_, usize>(SINK)? >= length),
        );
    }

    fn wait_for_other_primary(&self, old: usize) {
        wait_until(FAILOVER, "another primary", || {
            self.primary() != old && self.server().is("master")
        });
    }
}

fn items(numbers: std::ops::Range<usize>) -> Vec<String> {
    // Every third item is a repetition.
    numbers.map(|number| format!("https://example.com/{}", number - number % 3 / 2)).collect()
}

#[test]
fn a_crawl_goes_on_after_a_failover_and_after_a_kill_of_the_primary() {
    const HALF: usize = 60_000;
    let mut group = Group::start();
    let mut daemon = urlseen(["run", "--set", "source.batch=20", "--set", "log.format=text"])
        .env("URLSEEN_REDIS__URL", group.url())
        .env("URLSEEN_FILTER__CAPACITY", "200_000")
        .env("URLSEEN_FILTER__ERROR_RATE", "1e-12")
        .start();
    daemon.wait_for_line("the lease is taken", SOON);

    group.push(&items(0..HALF), 2);
    group.wait_for_sink(100);
    let first = group.primary();
    group.sentinels[0].server.run::<()>("SENTINEL FAILOVER mymaster");
    group.wait_for_other_primary(first);
    daemon.wait_for_line("Trying again in", SOON);

    group.push(&items(HALF..2 * HALF), 1);
    group.wait_for_sink(HALF * 2 / 3 + 100);
    let second = group.primary();
    group.servers[second].0.kill();
    group.wait_for_other_primary(second);

    let wanted: BTreeSet<String> = items(0..2 * HALF).into_iter().collect();
    group.wait_for_sink(wanted.len());
    group.ask("empty lists", |connection| {
        let lengths: (usize, usize) =
            redis::pipe().llen(SOURCE).llen(PROCESSING).query(connection)?;
        Ok(lengths == (0, 0))
    });
    daemon.signal(Signal::TERM);
    let ended = daemon.output(SOON);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let mut found: Vec<String> = group.server().connection().lrange(SINK, 0, -1).unwrap();
    found.sort();
    assert!(found.iter().eq(&wanted), "{} of {}: {}", found.len(), wanted.len(), ended.stderr);
}
