//! World of the daemon: the data of the simulated server, and the events that affect both.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

use super::server::Fate;
use super::state::{Head, State};
use super::wire::{Words, array, integer};
use crate::crawl::protocol::Protocol;
use urlseen_core::redis::preflight::ServerVersion;

/// Number of different items in a run.
const ITEMS: u32 = 80;

/// Kind of event in a run, other than the arrival of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A command or a reply gets lost, or comes late.
    Break,
    /// The server refuses commands for a while.
    Refuse,
    /// The server is slow, up to a lease that lapses.
    Slow,
    /// All connections break.
    Cut,
    /// The server returns with older data.
    RollBack,
    /// The server returns with data of a history that it has left.
    OtherHistory,
    /// Claimed items return to the source.
    Meddle,
    /// Another program holds the lease for a while.
    Usurp,
    /// The daemon is killed at a random moment.
    Kill,
}

const KINDS: [Kind; 9] = [
    Kind::Break,
    Kind::Refuse,
    Kind::Slow,
    Kind::Cut,
    Kind::RollBack,
    Kind::OtherHistory,
    Kind::Meddle,
    Kind::Usurp,
    Kind::Kill,
];

/// The world of one run. Clones are the same world.
#[derive(Debug, Clone)]
pub(super) struct World(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    data: Mutex<Data>,
    scripts: HashMap<Vec<u8>, &'static str>,
    cuts: watch::Sender<()>,
    stop: watch::Sender<bool>,
    fed: Notify,
    killed: Notify,
}

#[derive(Debug)]
struct Data {
    state: State,
    /// Data that the server may return with.
    saves: Vec<State>,
    /// Commits that the storage folder leads to, oldest first, and how many of them are certain.
    folder: Vec<Head>,
    certain: usize,
    /// True if the folder led to the head that the daemon read last with the lease.
    is_led: bool,
    random: Rng,
    kinds: Vec<Kind>,
    /// True once no more events occur.
    is_calm: bool,
    log: Vec<String>,
}

impl Data {
    fn may(&mut self, kind: Kind, of: u32) -> bool {
        !self.is_calm && self.kinds.contains(&kind) && self.random.u32(..of) == 0
    }

    fn note(&mut self, what: String) {
        self.log.push(what);
    }

    fn is_certain(&self, state: &State) -> bool {
        state.head.as_ref().is_some_and(|head| self.folder[..self.certain].contains(head))
    }

    /// Puts other data into the server.
    fn load(&mut self, state: State) {
        self.note(format!("the server comes back at {:?}", state.head));
        self.state = state;
    }

    /// Notes the effect of a script on the head.
    fn follow(&mut self, script: &str, before: Option<&Head>) {
        let Some(head) = self.state.head.clone() else { return };
        let place = |of: &Head| self.folder.iter().position(|other| other == of);
        match script {
            // If the folder leads to this head, it may be cut back to here from now on.
            "own" => {
                self.is_led = self.is_certain(&self.state);
                self.certain = place(&head).map_or(self.certain, |it| self.certain.min(it + 1));
            }
            "begin" => {
                let kept = match place(&head) {
                    Some(place) => place + 1,
                    None if self.folder.is_empty() => 0,
                    None => panic!("recovered to {head:?}, which the folder does not lead to"),
                };
                self.folder.truncate(kept);
                if kept == 0 {
                    self.folder.push(head);
                    self.saves.push(self.state.clone());
                }
                self.certain = self.folder.len();
            }
            _ if before != Some(&head) => {
                let base = before.and_then(place).expect("a commit follows one that is known");
                self.folder.truncate(base + 1);
                self.folder.push(head);
                self.certain = self.folder.len();
            }
            _ => {}
        }
    }
}

impl World {
    pub(super) fn new(seed: u64, protocol: &Protocol) -> Self {
        let mut random = Rng::with_seed(seed);
        let names = protocol.scripts().into_iter();
        let scripts = names.flat_map(|(name, script)| {
            [(script.text().into(), name), (script.hash().into(), name)]
        });
        let kinds = KINDS.into_iter().filter(|_| random.u8(..3) == 0).collect();
        let data = Data {
            state: State::default(),
            saves: Vec::new(),
            folder: Vec::new(),
            certain: 0,
            is_led: false,
            random: random.fork(),
            kinds,
            is_calm: false,
            log: Vec::new(),
        };
        Self(Arc::new(Shared {
            data: Mutex::new(data),
            scripts: scripts.collect(),
            cuts: watch::Sender::new(()),
            stop: watch::Sender::new(false),
            fed: Notify::new(),
            killed: Notify::new(),
        }))
    }

    fn data<T>(&self, with: impl FnOnce(&mut Data) -> T) -> T {
        with(&mut self.0.data.lock().expect("no assertion has failed"))
    }

    pub(super) fn state<T>(&self, with: impl FnOnce(&State) -> T) -> T {
        self.data(|data| with(&data.state))
    }

    /// Draws a number below `bound`.
    pub(super) fn draw(&self, bound: u64) -> u64 {
        self.data(|data| data.random.u64(..bound))
    }

    /// Draws a count below `bound`.
    pub(super) fn number(&self, bound: usize) -> usize {
        self.data(|data| data.random.usize(..bound))
    }

    pub(super) fn note(&self, what: String) {
        self.data(|data| data.note(what));
    }

    pub(super) fn log(&self) -> String {
        // The lock is taken also after a failed assertion.
        let data = self.0.data.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{:?}\n{}", data.kinds, data.log.join("\n"))
    }

    pub(super) fn cuts(&self) -> watch::Receiver<()> {
        self.0.cuts.subscribe()
    }

    pub(super) fn stop(&self) -> watch::Receiver<bool> {
        self.0.stop.subscribe()
    }

    pub(super) fn fed(&self) -> &Notify {
        &self.0.fed
    }

    pub(super) async fn killed(&self) {
        self.0.killed.notified().await;
    }

    /// Version of the server; before 7.0 all commits are transactions.
    pub(super) fn version(&self) -> ServerVersion {
        if self.draw(2) == 0 { ServerVersion(6, 2, 0) } else { ServerVersion(7, 0, 0) }
    }

    pub(super) fn is_unreachable(&self) -> bool {
        self.data(|data| data.may(Kind::Break, 10))
    }

    /// Time that the server takes for a command.
    pub(super) fn delay(&self) -> Duration {
        self.data(|data| {
            let longest = if data.may(Kind::Slow, 40) {
                20_000_000
            } else if data.may(Kind::Slow, 8) {
                1_000_000
            } else {
                2_000
            };
            Duration::from_micros(data.random.u64(..longest))
        })
    }

    pub(super) fn fate(&self, commands: &[Words]) -> Fate {
        self.data(|data| {
            let fate = if data.may(Kind::Break, 25) {
                [Fate::Lost, Fate::Unanswered, Fate::Torn, Fate::Late][data.random.usize(..4)]
            } else if data.may(Kind::Refuse, 30) {
                Fate::Refused(match commands.len() {
                    1 => "-LOADING Redis is loading\r\n",
                    _ => "-EXECABORT Transaction discarded because of: OOM command not allowed\r\n",
                })
            } else {
                Fate::Answered
            };
            if fate != Fate::Answered {
                let names = commands.iter().map(|words| String::from_utf8_lossy(&words[0]));
                let names = names.collect::<Vec<_>>().join(" ");
                let script = self.script(commands);
                data.note(format!("{fate:?}: {names} {script}"));
            }
            fate
        })
    }

    /// Name of the script in a command or a transaction.
    fn script(&self, commands: &[Words]) -> &'static str {
        let text = commands.last().and_then(|words| words.get(1));
        text.and_then(|text| self.0.scripts.get(text)).copied().unwrap_or_default()
    }

    /// Runs a command, or the commands of a transaction.
    pub(super) fn execute(&self, commands: &[Words]) -> Vec<u8> {
        let script = self.script(commands);
        let last = commands.last().expect("a command");
        self.data(|data| {
            let before = data.state.head.clone();
            let reply = match script {
                "" => data.state.plain(last),
                "commit" => {
                    let pushed = commands.iter().find(|words| &*words[0] == b"RPUSH");
                    let pushed = pushed.map_or(&[][..], |push| &push[2..]);
                    let answer = data.state.transaction(pushed, last);
                    let before = commands[1..].iter().map(|_| integer(0));
                    array(before.chain([answer]))
                }
                script => data.state.run(script, last),
            };
            data.follow(script, before.as_ref());
            if !script.is_empty() {
                let head = &data.state.head;
                data.log.push(format!(
                    "{script}: {:?}, then at {head:?}",
                    String::from_utf8_lossy(&reply[..reply.len().min(60)])
                ));
            }
            reply
        })
    }

    /// Feeds items and triggers events, and then asks the daemon to stop once all items are
    /// processed.
    pub(super) async fn happen(&self) -> Infallible {
        for _ in 0..4 + self.draw(12) {
            self.feed();
            sleep(Duration::from_millis(self.draw(2000))).await;
            for kind in self.data(|data| data.kinds.clone()) {
                if self.draw(3) == 0 {
                    self.strike(kind);
                    sleep(Duration::from_micros(self.draw(20_000))).await;
                }
            }
            self.data(|data| {
                if data.state.head.is_some() {
                    data.saves.push(data.state.clone());
                }
            });
        }
        self.data(|data| data.is_calm = true);
        // A refused commit may return items.
        loop {
            sleep(Duration::from_secs(1)).await;
            self.0.stop.send_replace(self.is_done());
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.data(|data| {
            data.is_calm && data.state.source.is_empty() && data.state.processing.is_empty()
        })
    }

    fn feed(&self) {
        self.data(|data| {
            for _ in 0..data.random.u32(..30) {
                let item = format!("http://a/{}", data.random.u32(..ITEMS)).into_bytes();
                data.state.fed.push(item.clone());
                data.state.source.push_back(item);
            }
        });
        self.0.fed.notify_waiters();
    }

    fn strike(&self, kind: Kind) {
        match kind {
            Kind::Break | Kind::Refuse | Kind::Slow => {}
            Kind::Cut => self.0.cuts.send_replace(()),
            Kind::RollBack | Kind::OtherHistory => self.roll_back(kind == Kind::OtherHistory),
            Kind::Meddle => self.data(|data| {
                let State { processing, source, .. } = &mut data.state;
                source.extend(processing.pop_back());
                data.note("an item goes back".to_owned());
            }),
            Kind::Usurp => self.data(|data| {
                let until = Instant::now() + Duration::from_millis(data.random.u64(..4000));
                data.state.lease = Some(("f".repeat(32), until));
                data.note("another program takes the lease".to_owned());
            }),
            Kind::Kill => self.0.killed.notify_waiters(),
        }
    }

    /// Makes the server return with a save.
    fn roll_back(&self, any: bool) {
        self.data(|data| {
            let mut saves = data.saves.clone();
            saves.retain(|save| any || data.is_certain(save));
            if saves.is_empty() {
                return;
            }
            let number = data.random.usize(..saves.len());
            data.load(saves.swap_remove(number));
        });
        self.0.cuts.send_replace(());
    }

    /// The daemon refused to continue with the server's data. Checks that there is a reason. Then
    /// the server returns with data that the folder leads to.
    pub(super) fn refused(&self, why: &str) {
        self.data(|data| {
            assert!(!data.is_led, "refused without a reason: {why}");
            data.note(format!("refused: {why}"));
            let last = data.saves.iter().rfind(|save| data.is_certain(save)).cloned();
            data.load(last.expect("the folder leads to its beginning"));
        });
        self.0.cuts.send_replace(());
    }

    /// Checks that each fed item is in the sink exactly once, and that nothing else is.
    pub(super) fn check(&self) {
        self.state(|state| {
            let fed: BTreeSet<_> = state.fed.iter().collect();
            let pushed: BTreeSet<_> = state.sink.iter().collect();
            let text = |items: Vec<&&Vec<u8>>| {
                let text = items.into_iter().map(|item| String::from_utf8_lossy(item));
                text.collect::<Vec<_>>().join(" ")
            };
            let lost = text(fed.difference(&pushed).collect());
            let extra = state.sink.len() - pushed.len();
            assert!(lost.is_empty() && extra == 0, "lost {lost:?}, {extra} repeated");
        });
    }
}
