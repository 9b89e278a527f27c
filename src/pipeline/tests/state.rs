//! State of the simulated Redis, and the effects of urlseen's scripts on this state.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, UNIX_EPOCH};

use tokio::time::Instant;

use super::expiry::clocks;
use super::wire::{Word, Words, array, bulk, error, integer};

/// Number and id of a commit, as Redis stores them.
pub(super) type Head = (String, String);

/// Everything that Redis holds, and the items that were fed to it. A rollback resets both.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// Items that were fed up to this state.
    pub(super) fed: Vec<Word>,
    /// Items that were put on the list of items to forget, up to this state.
    pub(super) told: Vec<Word>,
    pub(super) source: VecDeque<Word>,
    pub(super) processing: VecDeque<Word>,
    /// Items that were pushed to the sink up to this state. No consumer pops an item.
    pub(super) sink: Vec<Word>,
    /// True if the sink is a sorted set. Then `scores` has its members.
    pub(super) is_scored: bool,
    pub(super) scores: BTreeMap<Word, f64>,
    pub(super) rejected: Vec<Word>,
    pub(super) forget: VecDeque<Word>,
    pub(super) forgetting: VecDeque<Word>,
    pub(super) head: Option<Head>,
    filter: String,
    format: String,
    /// Definition of a filter in Redis. `members` has its fingerprints, and `unseen` counts the
    /// items that commits found unseen.
    definition: Words,
    pub(super) members: BTreeSet<Word>,
    pub(super) unseen: usize,
    /// Value of the lease, and its end.
    pub(super) lease: Option<(String, Instant)>,
}

/// Arguments of a script's call, after its keys.
pub(super) struct Args<'a>(pub(super) std::slice::Iter<'a, Word>);

/// Answer of a script that changed nothing.
pub(super) type Refusal = Vec<u8>;

impl<'a> Args<'a> {
    /// Returns the arguments after the keys of `EVALSHA` or `EVAL`.
    pub(super) fn of(words: &'a Words) -> Self {
        Self(words[3 + Self::keys(words)..].iter())
    }

    /// Returns the number of keys of `EVALSHA` or `EVAL`.
    pub(super) fn keys(words: &Words) -> usize {
        std::str::from_utf8(&words[2]).expect("text").parse().expect("a number")
    }

    pub(super) fn text(&mut self) -> &'a str {
        std::str::from_utf8(self.0.next().expect("an argument")).expect("text")
    }

    pub(super) fn number(&mut self) -> usize {
        self.text().parse().expect("a number")
    }

    pub(super) fn head(&mut self) -> Head {
        (self.text().to_owned(), self.text().to_owned())
    }

    /// Takes the next `count` arguments.
    pub(super) fn take(&mut self, count: usize) -> &'a [Word] {
        let (taken, rest) = self.0.as_slice().split_at(count);
        self.0 = rest.iter();
        taken
    }
}

/// Builds the answer of a script from strings.
pub(super) fn answer(words: &[&str]) -> Vec<u8> {
    array(words.iter().map(|word| bulk(word.as_bytes())))
}

/// Builds the answer of a script that succeeded, from numbers.
pub(super) fn done(numbers: &[usize]) -> Vec<u8> {
    let numbers = numbers.iter().map(|&number| integer(number));
    array(std::iter::once(bulk(b"ok")).chain(numbers))
}

impl State {
    /// Runs a script by name.
    pub(super) fn run(&mut self, script: &str, words: &Words) -> Vec<u8> {
        let mut args = Args::of(words);
        if script == "define" {
            if self.definition.is_empty() {
                self.definition = args.0.as_slice().to_vec();
            }
            return array(self.definition.iter().map(|word| bulk(word)));
        }
        let token = args.text();
        let is_release = script == "renew" && args.0.as_slice()[0] == "0";
        if let (false, Err(refusal)) = (script == "own" || is_release, self.check_lease(token)) {
            return refusal;
        }
        match script {
            "own" => self.own(token, args),
            "begin" => self.begin(args),
            "renew" if is_release => {
                if self.lease().is_some_and(|lease| lease[..16] == token[..16]) {
                    self.lease = None;
                }
                done(&[])
            }
            "renew" => {
                self.lease = self.lease.take().map(|(lease, _)| (lease, end(&mut args)));
                done(&[])
            }
            "claim" if words[4] == "forget" => {
                claim(&mut self.forget, &mut self.forgetting);
                done(&[self.forgetting.len()])
            }
            "claim" => {
                claim(&mut self.source, &mut self.processing);
                done(&[self.processing.len()])
            }
            "give_back" => self.give_back(),
            "trim" => {
                let [_take_from, _before] = [args.text(), args.text()];
                let count = args.number();
                self.reject(args);
                self.forgetting.drain(..count);
                done(&[])
            }
            other => panic!("the script {other} is not known"),
        }
    }

    /// Returns the lease, unless it has expired.
    pub(super) fn lease(&self) -> Option<&str> {
        let (lease, until) = self.lease.as_ref()?;
        (*until > Instant::now()).then_some(lease)
    }

    pub(super) fn check_lease(&self, token: &str) -> Result<(), Refusal> {
        let lease = self.lease().unwrap_or_default();
        if lease.get(..32) == Some(token) { Ok(()) } else { Err(answer(&["lease", lease])) }
    }

    fn own(&mut self, token: &str, mut args: Args<'_>) -> Vec<u8> {
        let holder = args.text();
        let until = end(&mut args);
        let (seq, commit_id) = self.head.clone().unwrap_or_default();
        if let Some(lease) = self.lease() {
            let run = &lease[..16];
            if run != &token[..16] && !args.0.any(|dead| &**dead == run.as_bytes()) {
                let mut held = vec![bulk(b"held"), bulk(lease.as_bytes()), integer(1)];
                let rest = [&seq, &commit_id, &self.filter];
                held.extend(rest.map(|word| bulk(word.as_bytes())));
                return array(held);
            }
        }
        self.lease = Some((format!("{token} {holder}"), until));
        let state = ["ok", &seq, &commit_id, &self.format, &self.filter].map(str::as_bytes);
        let mut owned: Vec<_> = state.into_iter().map(bulk).collect();
        let unseen = Some(self.unseen).filter(|&it| it > 0).map(|it| it.to_string());
        let unseen = bulk(unseen.unwrap_or_default().as_bytes());
        owned.extend([integer(self.processing.len()), unseen]);
        array(owned)
    }

    fn begin(&mut self, mut args: Args<'_>) -> Vec<u8> {
        (self.filter, self.format) = (args.text().to_owned(), args.text().to_owned());
        let head = args.head();
        self.head.get_or_insert(head);
        done(&[])
    }

    fn give_back(&mut self) -> Vec<u8> {
        let back = self.processing.len();
        self.processing.append(&mut self.source);
        std::mem::swap(&mut self.processing, &mut self.source);
        self.lease = None;
        done(&[back, 0, self.source.len()])
    }

    /// Answers a plain command.
    pub(super) fn plain(&self, words: &Words) -> Vec<u8> {
        let name = words[0].to_ascii_uppercase();
        match &*name {
            b"LRANGE" => {
                let list = match &*words[1] {
                    b"urlseen:{source}:forgetting" => &self.forgetting,
                    _ => &self.processing,
                };
                let len = list.len();
                // Negative indexes count from the right end: the last item is -1.
                let place = |word: &[u8]| {
                    let index: isize = String::from_utf8_lossy(word).parse().expect("a number");
                    let from_right = len.checked_sub(index.unsigned_abs());
                    if index < 0 { from_right } else { Some(index.unsigned_abs()) }
                };
                let Some(last) = place(&words[3]) else { return array([]) };
                let from = place(&words[2]).unwrap_or(0);
                let items = list.iter().take(last + 1).skip(from);
                array(items.map(|item| bulk(item)))
            }
            b"LLEN" => integer(match &*words[1] {
                b"source" => self.source.len(),
                b"sink" => self.sink.len(),
                b"sim:rejected" => self.rejected.len(),
                b"forget" => self.forget.len(),
                _ => 0,
            }),
            b"ZCARD" => integer(self.scores.len()),
            b"SCARD" => integer(self.members.len()),
            b"TYPE" if self.members.is_empty() => b"+none\r\n".into(),
            b"TYPE" => b"+set\r\n".into(),
            b"CONFIG" => array([bulk(&words[2]), bulk(b"536870912")]),
            b"INFO" => bulk(b"redis_version:7.0.0\r\n"),
            b"HGETALL" => array([]),
            b"TIME" => {
                let time = clocks().1.duration_since(UNIX_EPOCH).unwrap_or_default();
                let parts = [time.as_secs(), time.subsec_micros().into()];
                array(parts.map(|part| bulk(part.to_string().as_bytes())))
            }
            b"SCRIPT" => bulk(b"loaded"),
            // A late command, whose reply never arrives.
            b"WAIT" => integer(0),
            other => error(&format!("ERR no command {}", String::from_utf8_lossy(other))),
        }
    }
}

/// Claims the items of a list, if no claimed item is left.
fn claim(list: &mut VecDeque<Word>, claimed: &mut VecDeque<Word>) {
    if claimed.is_empty() {
        std::mem::swap(list, claimed);
    }
}

/// Returns the end of a lease that is granted now.
fn end(args: &mut Args<'_>) -> Instant {
    Instant::now() + Duration::from_millis(args.number() as u64)
}
