//! Gives a daemon random items and random faults, and compares its output with an exact model.
//!
//! The model checks each run separately, because the summary of a run counts only its own work. A
//! run must have processed exactly the items that left the source, and must know the items of all
//! earlier runs.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use redis::{Commands, Connection};

use super::items::{Identity, Item, Random, item, seeds};
use super::{
    Bytes, Crawl, LEASE, PROCESSING, REJECTED, SINK, SOURCE, Summary, rejected_item, stop,
};
use crate::util::binary::Daemon;
use crate::util::wait::{SOON, poll, wait_until};

/// Time in which the daemon usually notices a fault.
const A_MOMENT: Duration = Duration::from_millis(30);

/// Items by their bytes, each with its number of copies.
type Bag = HashMap<Bytes, usize>;

fn bag(items: impl IntoIterator<Item = Bytes>) -> Bag {
    let mut bag = Bag::new();
    items.into_iter().for_each(|item| *bag.entry(item).or_default() += 1);
    bag
}

/// Returns `all` without `part`.
fn without(mut all: Bag, part: Bag) -> Bag {
    for (item, count) in part {
        let left = all.get_mut(&item).unwrap_or_else(|| panic!("never pushed: {}", shown(&item)));
        *left = left.checked_sub(count).unwrap_or_else(|| panic!("doubled: {}", shown(&item)));
        if *left == 0 {
            all.remove(&item);
        }
    }
    all
}

fn shown(item: &[u8]) -> String {
    item.escape_ascii().take(200).map(char::from).collect()
}

/// Model of the crawl: all pushed items, and the expected outcome of the runs so far.
#[derive(Default)]
struct Model {
    identities: HashMap<Bytes, Identity>,
    /// Keys of the items that were emitted.
    met: HashSet<Identity>,
    /// Pushed items that no earlier run has processed.
    pending: Bag,
    /// Lengths of the sink and of the rejects list after the earlier runs.
    sink: usize,
    rejected: usize,
}

/// Expected counts of a run.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    items: usize,
    fates: [usize; 4],
}

impl Model {
    fn push(&mut self, items: &[Item]) {
        for Item { bytes, identity } in items {
            *self.pending.entry(bytes.clone()).or_default() += 1;
            let known = self.identities.insert(bytes.clone(), identity.clone());
            assert!(known.is_none_or(|known| known == *identity), "{}", shown(bytes));
        }
    }

    /// Compares the lists with the expected output of the run that just ended.
    fn check_run(&mut self, crawl: &Crawl) -> Counts {
        let remaining = bag([crawl.list(PROCESSING), crawl.list(SOURCE)].concat());
        let judged = without(std::mem::take(&mut self.pending), remaining.clone());
        self.pending = remaining;

        let sink = crawl.list(SINK).split_off(self.sink);
        self.sink += sink.len();
        let mut expected: HashSet<&Identity> =
            judged.keys().map(|it| &self.identities[it]).collect();
        expected.retain(|it| matches!(it, Identity::Key(_)) && !self.met.contains(it));
        let keys = expected.len();
        let mut unfiltered = Bag::new();
        for item in sink {
            assert!(judged.contains_key(&item), "not judged by this run: {}", shown(&item));
            match &self.identities[&item] {
                Identity::Unreadable => panic!("unreadable, and yet emitted: {}", shown(&item)),
                Identity::Unfiltered => *unfiltered.entry(item).or_default() += 1,
                key @ Identity::Key(_) => {
                    assert!(expected.remove(key), "emitted twice: {}", shown(&item));
                    self.met.insert(key.clone());
                }
            }
        }
        assert!(expected.is_empty(), "lost: {expected:?}");
        let of = |identity: &Identity| -> Bag {
            let those = judged.iter().filter(|(item, _)| self.identities[*item] == *identity);
            those.map(|(item, count)| (item.clone(), *count)).collect()
        };
        assert!(unfiltered == of(&Identity::Unfiltered), "unfiltered: {unfiltered:?}");

        let rejects = crawl.rejects().split_off(self.rejected);
        self.rejected += rejects.len();
        let rejected = bag(rejects.iter().map(rejected_item));
        assert!(rejected == of(&Identity::Unreadable), "{} rejects", rejects.len());

        let [items, unfiltered, rejected] =
            [&judged, &unfiltered, &rejected].map(|bag| bag.values().sum::<usize>());
        Counts { items, fates: [keys, items - keys - unfiltered - rejected, unfiltered, rejected] }
    }
}

/// Crawl with random faults, and the model of its expected output.
struct Trial {
    crawl: Crawl,
    connection: Connection,
    random: Random,
    model: Model,
    daemon: Option<Daemon>,
    runs_ended: usize,
}

impl Trial {
    fn new(seed: u64) -> Self {
        println!("TEST_SEED={seed}");
        let mut random = Random::new(seed);
        let crawl = Crawl::new()
            .with_user("crawler")
            .set(&format!("source.batch={}", 1 + random.below(20)))
            .set("source.batch_bytes=100_000")
            .set(&format!("filter.threads={}", 1 + random.below(3)));
        let connection = crawl.connection();
        Self { crawl, connection, random, model: Model::default(), daemon: None, runs_ended: 0 }
    }

    fn items(&mut self) -> Vec<Item> {
        let count = self.random.below(400);
        let items: Vec<Item> = (0..count).map(|_| item(&mut self.random, 300)).collect();
        self.model.push(&items);
        items
    }

    /// Pushes each item to a random end of the source. All pushes are one transaction, because
    /// Redis may run out of memory between two of them.
    fn push(&mut self, items: &[Item]) {
        let mut pushes = redis::pipe();
        pushes.atomic();
        for Item { bytes, .. } in items {
            let command = ["LPUSH", "RPUSH"][self.random.below(2)];
            pushes.cmd(command).arg(SOURCE).arg(bytes).ignore();
        }
        let () = pushes.query(&mut self.connection).unwrap();
    }

    fn said(&self, words: &str) -> usize {
        let daemon = self.daemon.as_ref().expect("a daemon runs");
        daemon.stderr().matches(words).count()
    }

    /// Returns the number of times that the daemon had to test batches again.
    fn forgotten(&self) -> usize {
        self.said("are read and tested again") - self.said(" 0 batches are read and tested again")
    }

    /// Gives the daemon some time to meet a fault and to log `words`.
    fn let_it_notice(&self, words: &str) {
        let before = self.said(words);
        poll(A_MOMENT, || (self.said(words) > before).then_some(()));
    }

    fn kill_connections(&self) {
        let _ = self.crawl.server.cli(&["client", "kill", "type", "normal"]);
    }

    /// Returns the number of items that the daemon has not processed.
    fn left(&self) -> usize {
        self.crawl.len(SOURCE) + self.crawl.len(PROCESSING)
    }

    /// Causes a random fault of Redis, the connection or the lease.
    fn trouble(&mut self) {
        let cli = |arguments: &[&str]| self.crawl.server.cli(arguments);
        match self.random.below(8) {
            0 | 1 => {
                self.kill_connections();
                self.connection = self.crawl.connection();
            }
            2 => {
                cli(&["config", "set", "maxmemory", "1"]);
                self.let_it_notice("maxmemory");
                cli(&["config", "set", "maxmemory", "0"]);
            }
            3 => {
                cli(&["del", LEASE]);
            }
            4 => {
                // The daemon seldom sees the foreign lease. If it does, it ends, because the crawl
                // belongs to another process.
                let mut overwrite = redis::pipe();
                overwrite.set(LEASE, "another program").ignore().del(LEASE).ignore();
                let () = overwrite.query(&mut self.connection).unwrap();
            }
            5 => {
                cli(&["script", "flush"]);
            }
            6 => {
                self.crawl.server.pause();
                std::thread::sleep(A_MOMENT);
                self.crawl.server.resume();
            }
            _ => {
                cli(&["acl", "setuser", "crawler", "-rpush"]);
                self.let_it_notice("may not");
                cli(&["acl", "setuser", "crawler", "+rpush"]);
            }
        }
    }

    /// Starts the daemon again if it has ended.
    fn keep_running(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            if daemon.is_running() {
                return;
            }
            let output = self.daemon.take().unwrap().output(SOON);
            assert_eq!(output.code(), Some(3), "{output:?}");
            self.model.check_run(&self.crawl);
            self.runs_ended += 1;
        }
        self.daemon = Some(self.crawl.start());
    }

    /// Waits until all items are processed, ends the daemon, and compares all lists and counts with
    /// the model.
    fn end(mut self) -> Summary {
        self.keep_running();
        // The daemon checks the claimed items at its next claim. This last item causes a claim.
        let last = item(&mut self.random, 300);
        self.model.push(std::slice::from_ref(&last));
        let () = self.connection.rpush(SOURCE, &last.bytes).unwrap();
        let mut connection = self.crawl.connection();
        wait_until(SOON, "empty source", || {
            self.keep_running();
            connection.exists::<_, usize>(&[SOURCE, PROCESSING]).unwrap() == 0
        });
        let summary = stop(self.daemon.take().unwrap());
        let counts = self.model.check_run(&self.crawl);
        let (items, fates) = summary.counts();
        assert_eq!(Counts { items, fates }, counts, "{summary:?}");
        assert!(self.model.pending.is_empty());
        assert_eq!(self.crawl.list(REJECTED).len(), self.model.rejected);
        summary
    }
}

/// Point 10 of ARCHITECTURE.md: every pushed item is emitted or rejected exactly as often as
/// expected.
#[test]
fn no_item_is_lost_repeated_or_invented_with_any_fault_of_redis() {
    for seed in seeds(&[1, 2, 3]) {
        let mut trial = Trial::new(seed);
        for _ in 0..40 {
            let items = trial.items();
            trial.push(&items);
            trial.keep_running();
            trial.trouble();
        }
        trial.end();
    }
}

#[test]
fn items_inserted_among_claimed_ones_are_judged_like_others() {
    for seed in seeds(&[4, 5]) {
        let mut trial = Trial::new(seed);
        trial.keep_running();
        let mut forgotten = 0;
        for _ in 0..100 {
            if forgotten >= 5 {
                break;
            }
            let items = trial.items();
            trial.push(&items);
            let extra = item(&mut trial.random, 300);
            trial.model.push(std::slice::from_ref(&extra));
            let command = ["LPUSH", "RPUSH"][trial.random.below(2)];
            let () = redis::cmd(command)
                .arg(PROCESSING)
                .arg(&extra.bytes)
                .query(&mut trial.connection)
                .unwrap();
            poll(A_MOMENT, || (trial.forgotten() > forgotten).then_some(()));
            forgotten = trial.forgotten();
        }
        let summary = trial.end();
        assert!(summary.count("batches_aborted") >= 5, "{summary:?}");
    }
}

#[test]
fn items_keep_their_order_with_any_fault_of_redis() {
    for seed in seeds(&[6, 7]) {
        let mut trial = Trial::new(seed);
        let items: Vec<Item> = (0..10_000).map(|_| item(&mut trial.random, 3000)).collect();
        trial.crawl.push(&items.iter().map(|item| item.bytes.as_slice()).collect::<Vec<_>>());
        let mut daemon = trial.crawl.run(&["--drain", "--json"]).start();
        while daemon.is_running() {
            trial.kill_connections();
            poll(Duration::from_millis(5), || (!daemon.is_running()).then_some(()));
            // A slow daemon does not even connect between two kills. So the next one comes only
            // after some progress.
            trial.kill_connections();
            let goal = trial.left().saturating_sub(1 + trial.random.below(150));
            let is_over = || trial.left() <= goal && goal > 0 || !daemon.is_running();
            wait_until(SOON, "progress", is_over);
        }
        let summary = Summary::of(daemon.output(SOON));
        let mut met = HashSet::new();
        let goes_on = |item: &&Item| match &item.identity {
            Identity::Key(key) => met.insert(key.clone()),
            Identity::Unfiltered => true,
            Identity::Unreadable => false,
        };
        let expected: Vec<&Bytes> = items.iter().filter(goes_on).map(|it| &it.bytes).collect();
        let sink = trial.crawl.list(SINK);
        let missing = expected.iter().find(|item| !sink.contains(item)).map(|item| shown(item));
        let (missing, rejects) = (missing, trial.crawl.rejects().len());
        assert!(
            sink.iter().eq(expected.iter().copied()),
            "{} {} {missing:?} {rejects} {}",
            sink.len(),
            expected.len(),
            summary.stderr
        );
        assert_eq!(summary.count("items"), items.len());
        assert!(summary.stderr.contains("connected again"), "{}", summary.stderr);
    }
}
