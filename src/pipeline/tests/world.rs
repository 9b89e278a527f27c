//! World of the simulated daemon: the data and answers of the server, and the disk.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::crawl::{Crawl, Scripts};
use super::duties::Trial;
use super::events::{KINDS, Kind};
use super::expiry;
use super::history::History;
use super::items::{self, ITEMS};
use super::oracle::Tally;
use super::replicas::Replicas;
use super::server::Fate;
use super::state::{Head, State};
use super::wire::{Words, array, integer};
use crate::report::Live;
use urlseen_engine::engine::query::Asker;
use urlseen_engine::item::Options;
use urlseen_filter::choice::Fsync;
use urlseen_filter::expire_after::ExpireAfter;
use urlseen_storage::testing::SimDisk;

/// The world of one run. Clones are the same world.
#[derive(Debug, Clone)]
pub(super) struct World(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    data: Mutex<Data>,
    cuts: watch::Sender<()>,
    stop: watch::Sender<bool>,
    fed: Notify,
    killed: Notify,
}

#[derive(Debug)]
pub(super) struct Data {
    pub(super) state: State,
    /// Data that the server may return with.
    pub(super) saves: Vec<State>,
    /// Number of times that the server returned with other data.
    pub(super) loads: usize,
    pub(super) history: History,
    pub(super) replicas: Replicas,
    /// Status of the last daemon.
    pub(super) live: Option<watch::Receiver<Live>>,
    /// Number of times that each item was read from the list of items to forget.
    pub(super) forgets: Vec<usize>,
    /// Handle with which clients ask the last daemon.
    pub(super) asker: Option<Asker>,
    /// Options for reading items.
    pub(super) reading: Option<Options>,
    /// Number of times that a daemon asked for the lease, at the beginning of a session.
    pub(super) sessions: usize,
    /// Number of checks of items that were forgotten while they could be in flight.
    pub(super) forgotten_in_flight: u64,
    pub(super) disk: Disk,
    pub(super) random: Rng,
    pub(super) kinds: Vec<Kind>,
    /// Time until which the server answers nothing.
    pub(super) silent_until: Option<Instant>,
    /// Duty that the server treats in another way than the rest.
    pub(super) trial: Option<Trial>,
    /// Says if daemons end when the source is empty. If it says nothing, the seed decides.
    pub(super) drains: Option<bool>,
    /// True once no more events occur.
    pub(super) is_calm: bool,
    /// True once all items are processed, and no more are fed.
    pub(super) is_over: bool,
    /// True if Redis has the filter.
    pub(super) is_shared: bool,
    /// Time after which fingerprints pass again, if they expire.
    pub(super) expire_after: Option<ExpireAfter>,
    /// Maximum number of unseen items that pass, if there is a limit.
    pub(super) limit: Option<usize>,
    pub(super) scripts: Arc<Scripts>,
    interleavings: u64,
    log: Vec<String>,
}

/// Disk of the storage folder.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) disk: SimDisk,
    /// True if the disk was told to fail.
    pub(super) is_faulty: bool,
    /// True if the machine loses its power with the next kill.
    pub(super) loses_power: bool,
    /// Time until which the disk answers nothing.
    pub(super) hangs_until: Option<Instant>,
}

impl Data {
    pub(super) fn may(&mut self, kind: Kind, of: u32) -> bool {
        !self.is_calm && self.kinds.contains(&kind) && self.random.u32(..of) == 0
    }

    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        self.log.push(what());
    }

    /// Returns true if it is certain that a daemon can continue from a state.
    pub(super) fn is_certain(&self, state: &State) -> bool {
        self.is_shared || state.head.as_ref().is_some_and(|head| self.history.has(head))
    }

    /// Puts other data into the server.
    pub(super) fn load(&mut self, state: State) {
        self.note(|| format!("the server comes back at {:?}", state.head));
        self.state = state;
        self.replicas.state = None;
        self.loads += 1;
    }

    /// Notes the effect of a script on the head.
    fn follow(&mut self, script: &str, before: Option<&Head>) {
        let Some(head) = self.state.head.clone() else { return };
        let is_first = match script {
            _ if self.is_shared => script == "begin" && before.is_none(),
            "own" => {
                self.history.owned(&head);
                false
            }
            "begin" => self.history.begun(head),
            _ => {
                if before != Some(&head) {
                    self.history.committed(before, head);
                }
                false
            }
        };
        if is_first {
            self.saves.push(self.state.clone());
        }
    }

    /// Notes the items that the daemon was told to forget.
    fn note_forgets(&mut self, most: usize) {
        let read = self.state.forgetting.iter().take(most);
        for item in read {
            let number = (0..ITEMS).find(|&number| items::item(number) == *item);
            self.forgets[number.expect("a known item") as usize] += 1;
        }
    }
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let kinds = KINDS.into_iter().filter(|_| random.u8(..3) == 0).collect();
        let data = Data {
            state: State::default(),
            saves: Vec::new(),
            loads: 0,
            history: History::default(),
            replicas: Replicas::default(),
            live: None,
            forgets: vec![0; ITEMS as usize],
            asker: None,
            reading: None,
            sessions: 0,
            forgotten_in_flight: 0,
            disk: Disk {
                disk: SimDisk::default(),
                is_faulty: false,
                loses_power: false,
                hangs_until: None,
            },
            random: random.fork(),
            kinds,
            silent_until: None,
            trial: None,
            drains: None,
            is_calm: false,
            is_over: false,
            is_shared: false,
            expire_after: None,
            limit: None,
            scripts: Arc::default(),
            interleavings: 0,
            log: Vec::new(),
        };
        Self(Arc::new(Shared {
            data: Mutex::new(data),
            cuts: watch::Sender::new(()),
            stop: watch::Sender::new(false),
            fed: Notify::new(),
            killed: Notify::new(),
        }))
    }

    /// Prepares the world for the configuration of a crawl.
    pub(super) fn begin(&self, crawl: &Crawl) {
        let mut data = self.data();
        data.is_shared = crawl.is_shared;
        data.expire_after = crawl.config.filter.expire_after;
        data.limit = crawl.limit;
        data.reading = Some(crawl.items());
        data.state.is_scored = crawl.items().scored;
        data.scripts = Arc::clone(&crawl.scripts);
        if crawl.fsync != Fsync::Always {
            // Without a sync of each batch, a power loss would remove batches from the log.
            data.kinds.retain(|&kind| kind != Kind::LosePower);
        }
    }

    pub(super) fn data(&self) -> MutexGuard<'_, Data> {
        // The lock can be poisoned by a failed assertion. The log must be readable even then.
        self.0.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws a number below `bound`.
    pub(super) fn draw(&self, bound: u64) -> u64 {
        self.data().random.u64(..bound)
    }

    /// Draws a count below `bound`.
    pub(super) fn number(&self, bound: usize) -> usize {
        self.data().random.usize(..bound)
    }

    pub(super) fn note(&self, what: impl FnOnce() -> String) {
        self.data().note(what);
    }

    pub(super) fn log(&self) -> String {
        let data = self.data();
        format!("{:?}\n{}", data.kinds, data.log.join("\n"))
    }

    /// Counts an interleaving.
    pub(super) fn count(&self) {
        self.data().interleavings += 1;
    }

    pub(super) fn interleavings(&self) -> u64 {
        self.data().interleavings
    }

    pub(super) fn cut(&self) {
        self.0.cuts.send_replace(());
    }

    pub(super) fn cuts(&self) -> watch::Receiver<()> {
        self.0.cuts.subscribe()
    }

    pub(super) fn ask_to_stop(&self, stops: bool) {
        self.0.stop.send_replace(stops);
    }

    pub(super) fn stop(&self) -> watch::Receiver<bool> {
        self.0.stop.subscribe()
    }

    pub(super) fn fed(&self) -> &Notify {
        &self.0.fed
    }

    pub(super) fn kill(&self) {
        self.0.killed.notify_waiters();
    }

    pub(super) async fn killed(&self) {
        self.0.killed.notified().await;
    }

    pub(super) fn disk(&self) -> SimDisk {
        self.data().disk.disk.clone()
    }

    /// Returns true unless the disk hangs.
    pub(super) fn has_disk(&self) -> bool {
        let hangs_until = self.data().disk.hangs_until;
        hangs_until.is_none_or(|until| until <= Instant::now())
    }

    /// Repairs the disk after a daemon has ended. Returns true if the daemon may have ended because
    /// of the disk.
    pub(super) fn renew_disk(&self) -> bool {
        let data = &mut *self.data();
        let Disk { disk, is_faulty, loses_power, .. } = &mut data.disk;
        let has_failed = std::mem::take(is_faulty) && disk.has_struck();
        let random = &mut data.random;
        *disk = if std::mem::take(loses_power) {
            disk.after_power_loss(&mut |bound| random.usize(..bound))
        } else {
            disk.after_kill()
        };
        has_failed
    }

    /// Chooses the next job. Returns true if a job of the engine comes first, and false if a job of
    /// the folder comes first. Returns `None` if all jobs wait.
    pub(super) fn next_job(&self) -> Option<bool> {
        let data = &mut *self.data();
        (!data.may(Kind::Lag, 4)).then(|| data.random.bool())
    }

    pub(super) fn is_unreachable(&self) -> bool {
        let mut data = self.data();
        data.interleavings += 1;
        data.may(Kind::Break, 10)
    }

    /// Draws the time that the server takes for a command.
    pub(super) fn delay(&self) -> Duration {
        let data = &mut *self.data();
        let longest = if data.may(Kind::Slow, 40) {
            20_000_000
        } else if data.may(Kind::Slow, 8) {
            1_000_000
        } else {
            2_000
        };
        let silence = data.silent_until.map_or(Duration::ZERO, |until| until - Instant::now());
        silence + Duration::from_micros(data.random.u64(..longest))
    }

    /// Decides the fate of a command or a transaction.
    pub(super) fn fate(&self, commands: &[Words]) -> Fate {
        let data = &mut *self.data();
        data.interleavings += 1;
        let fate = if data.may(Kind::Break, 25) {
            [Fate::Lost, Fate::Unanswered, Fate::Torn, Fate::Late][data.random.usize(..4)]
        } else if data.may(Kind::Refuse, 30) {
            Fate::Refused(match commands.len() {
                1 => "-LOADING Redis is loading\r\n",
                _ => "-EXECABORT Transaction discarded because of: OOM command not allowed\r\n",
            })
        } else {
            return Fate::Answered;
        };
        let script = data.script(commands);
        data.note(|| {
            let names = commands.iter().map(|words| String::from_utf8_lossy(&words[0]));
            format!("{fate:?}: {} {script}", names.collect::<Vec<_>>().join(" "))
        });
        fate
    }

    /// Runs a command, or the commands of a transaction.
    pub(super) fn execute(&self, commands: &[Words]) -> Vec<u8> {
        let data = &mut *self.data();
        let script = data.script(commands);
        let last = commands.last().expect("a command");
        if script.is_empty() {
            return data.state.plain(last);
        }
        let before = data.state.head.clone();
        let reply = if script == "commit" {
            let pushed = commands.iter().find(|words| &*words[0] == b"RPUSH");
            let pushed = pushed.map_or(&[][..], |push| &push[2..]);
            let answer = data.state.commit(pushed, last);
            // Only in a transaction is the script sent as text.
            match &*last[0] {
                b"EVAL" => array(commands[1..].iter().map(|_| integer(0)).chain([answer])),
                _ => answer,
            }
        } else {
            data.state.run(script, last)
        };
        data.sessions += usize::from(script == "own");
        let is_claim = script == "claim" && last[4] == "forget";
        if is_claim && reply.starts_with(b"*2\r\n$2\r\nok") {
            data.note_forgets(1000);
        }
        data.follow(script, before.as_ref());
        let head = data.state.head.clone();
        data.note(|| {
            let start = String::from_utf8_lossy(&reply[..reply.len().min(60)]);
            format!("{script}: {start:?}, then at {head:?}")
        });
        reply
    }

    /// Checks the treatment of all items.
    pub(super) fn check(&self) {
        let data = self.data();
        let windows = if data.expire_after.is_some() { expiry::windows() } else { 0 };
        let allowed: Vec<_> = data.forgets.iter().map(|forgets| forgets + windows).collect();
        Tally::of(&data.state).check(&data.state, &allowed, data.limit);
        for number in 0..ITEMS {
            if let Some(score) = data.state.scores.get(&items::item(number)) {
                assert_eq!(score.to_bits(), (items::score(number) + 0.0).to_bits(), "{number}");
            }
        }
    }
}
