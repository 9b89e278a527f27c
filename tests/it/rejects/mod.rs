//! `urlseen rejects` with real servers.

mod sorting;
mod trouble;

use std::time::{Duration, SystemTime};

use redis::{Commands, Connection};
use urlseen_engine::item::Unreadable;
use urlseen_redis::reject::write;

use crate::util::binary::{Run, urlseen};
use crate::util::redis::RedisServer;

const SOURCE: &str = "demo:discovered";
const REJECTED: &str = "demo:rejected";
const ASIDE: &str = "urlseen:{demo:discovered}:rejects";

/// Words by which the tests select rejects. Each of them is in one of the two reasons that the
/// tests use.
const NO_TAB: &str = "no tab";

type Bytes = Vec<u8>;

/// Redis server with the lists of a crawl.
struct Lists {
    server: RedisServer,
    connection: Connection,
}

impl Lists {
    fn new() -> Self {
        Self::on(RedisServer::start())
    }

    fn on(server: RedisServer) -> Self {
        Self { connection: server.connection(), server }
    }

    /// Prepares `urlseen rejects` with these arguments.
    fn run(&self, arguments: &[&str]) -> Run {
        urlseen(["rejects"].iter().chain(arguments)).env("URLSEEN_REDIS__URL", self.server.url())
    }

    fn push<'a>(&mut self, key: &str, values: impl IntoIterator<Item = &'a [u8]>) {
        let values = values.into_iter().collect::<Vec<_>>();
        for values in values.chunks(1000) {
            let () = self.connection.rpush(key, values).unwrap();
        }
    }

    /// Adds rejects in the form that the daemon writes, with times a second apart.
    fn reject(&mut self, items: &[(&[u8], Unreadable)]) {
        let first = self.len(REJECTED);
        let json = |(number, (item, reason)): (usize, &(&[u8], Unreadable))| {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs((first + number) as u64);
            write(item, reason, time)
        };
        let rejects = items.iter().enumerate().map(json).collect::<Vec<_>>();
        self.push(REJECTED, rejects.iter().map(Vec::as_slice));
    }

    /// Adds a reject for each number, with two alternating reasons.
    fn reject_numbers(&mut self, numbers: impl IntoIterator<Item = usize>) {
        let items = numbers.into_iter().map(|number| number.to_string()).collect::<Vec<_>>();
        let reason = |number: usize| match number % 2 {
            0 => Unreadable::NoTab,
            _ => Unreadable::Empty,
        };
        let items = items.iter().enumerate();
        let items = items.map(|(number, item)| (item.as_bytes(), reason(number)));
        self.reject(&items.collect::<Vec<_>>());
    }

    /// Returns a list from left to right.
    fn list(&mut self, key: &str) -> Vec<Bytes> {
        self.connection.lrange(key, 0, -1).unwrap()
    }

    fn len(&mut self, key: &str) -> usize {
        self.connection.llen(key).unwrap()
    }

    /// Returns the items of all rejects as text, including those of an interrupted command.
    fn rejected_items(&mut self) -> Vec<String> {
        let rejects = [self.list(ASIDE), self.list(REJECTED)].concat();
        rejects
            .iter()
            .map(|json| {
                let reject: serde_json::Value = serde_json::from_slice(json).unwrap();
                reject["item"].as_str().unwrap().to_owned()
            })
            .collect()
    }

    /// Returns the items of the source as text.
    fn source_items(&mut self) -> Vec<String> {
        let items = self.list(SOURCE).into_iter();
        items.map(|item| String::from_utf8(item).unwrap()).collect()
    }
}

/// Returns the numbers as text, in ascending order.
fn numbers(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|number| number.to_string()).collect()
}
