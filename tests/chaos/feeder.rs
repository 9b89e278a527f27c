//! Feeder: pushes items to the source, and records their number in the same Redis. If Redis loses
//! data, this record shows exactly the items that Redis kept.

use anyhow::{Context, Result};
use redis::{Commands, Connection};

use crate::items::{Generation, Items};
use crate::server::Server;

/// Redis key of the number of fed items.
pub(crate) const FED: &str = "chaos:fed";
/// Redis key of the list of generations (see [`Generation`]). Each element is `FIRST NUMBER`: the
/// position of the generation's first item, and the number of the generation.
const GENERATIONS: &str = "chaos:generations";

/// Number of items in one transaction.
const CHUNK: u64 = 2_000;

/// The only producer of a round.
pub(crate) struct Feeder {
    items: Items,
    fed: u64,
    /// Last generation that ever existed.
    generation: u64,
    /// True if Redis has no entry of the last generation yet.
    is_generation_new: bool,
    push: &'static str,
}

impl Feeder {
    /// Makes a feeder for the items of `seed`. The Redis command `push` must push to one end of the
    /// source, and the daemon must take items from the other end.
    pub(crate) fn new(seed: u64, new_percent: u8, push: &'static str) -> Self {
        let history = vec![Generation { first: 0, number: 0 }];
        let items = Items { seed, new_percent, history };
        Self { items, fed: 0, generation: 0, is_generation_new: true, push }
    }

    /// Returns the number of items that were fed, without those that Redis lost.
    pub(crate) fn fed(&self) -> u64 {
        self.fed
    }

    /// Returns the items that were fed, without those that Redis lost.
    pub(crate) fn items(&self) -> &Items {
        &self.items
    }

    /// Pushes the next `count` items to `key`.
    pub(crate) fn feed(&mut self, server: &Server, key: &str, mut count: u64) -> Result<()> {
        let mut connection = server.connection()?;
        while count > 0 {
            let chunk = count.min(CHUNK);
            self.feed_chunk(&mut connection, key, chunk)?;
            count -= chunk;
        }
        Ok(())
    }

    fn feed_chunk(&mut self, connection: &mut Connection, key: &str, count: u64) -> Result<()> {
        let mut pipe = redis::pipe();
        pipe.atomic();
        let items = (self.fed..self.fed + count).map(|place| self.items.item(place).bytes);
        let push = pipe.cmd(self.push).arg(key);
        for item in items {
            push.arg(item);
        }
        push.ignore();
        pipe.set(FED, self.fed + count).ignore();
        if self.is_generation_new {
            let generation = self.items.history.last().context("there is a generation")?;
            let entry = format!("{} {}", generation.first, generation.number);
            pipe.rpush(GENERATIONS, entry).ignore();
        }
        let () = pipe.query(connection).context("the feeder's push")?;
        self.fed += count;
        self.is_generation_new = false;
        Ok(())
    }

    /// Reads the feeder's record that Redis kept after a crash. Returns true if Redis lost items.
    /// Later items then have a new generation.
    pub(crate) fn resume(&mut self, server: &Server) -> Result<bool> {
        let mut connection = server.connection()?;
        let fed: u64 = connection.get::<_, Option<u64>>(FED)?.unwrap_or_default();
        let entries: Vec<String> = connection.lrange(GENERATIONS, 0, -1)?;
        let mut history = Vec::new();
        for entry in entries {
            let (first, number) = entry.split_once(' ').context("two numbers")?;
            history.push(Generation { first: first.parse()?, number: number.parse()? });
        }
        let known = self.items.history.len() - usize::from(self.is_generation_new);
        if fed == self.fed && history == self.items.history[..known] {
            return Ok(false);
        }
        self.generation += 1;
        history.push(Generation { first: fed, number: self.generation });
        self.items.history = history;
        self.fed = fed;
        self.is_generation_new = true;
        Ok(true)
    }
}
