//! State of the simulated Redis, and the meaning of urlseen's scripts on it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::wire::{Words, array, bulk, error, integer};

/// Item of a list in Redis.
pub(super) type Item = Vec<u8>;

/// Number and id of a commit, as Redis stores them.
pub(super) type Head = (String, String);

/// Everything that Redis holds, and the items that were fed to it. A rollback resets both.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// Items fed in this history.
    pub(super) fed: Vec<Item>,
    pub(super) source: VecDeque<Item>,
    pub(super) processing: VecDeque<Item>,
    /// Items that were ever pushed in this history: no consumer pops any.
    pub(super) sink: Vec<Item>,
    pub(super) head: Option<Head>,
    filter: String,
    format: String,
    /// Value of the lease, and its end.
    pub(super) lease: Option<(String, Instant)>,
}

/// Arguments of a script's call, after its keys.
struct Args<'a>(std::slice::Iter<'a, Vec<u8>>);

/// Answer of a script that changed nothing.
type Refusal = Vec<u8>;

impl<'a> Args<'a> {
    fn text(&mut self) -> &'a str {
        std::str::from_utf8(self.0.next().expect("an argument")).expect("text")
    }

    fn number(&mut self) -> usize {
        self.text().parse().expect("a number")
    }

    fn head(&mut self) -> Head {
        (self.text().to_owned(), self.text().to_owned())
    }
}

/// Answer of a script in strings.
fn answer(words: &[&str]) -> Vec<u8> {
    array(words.iter().map(|word| bulk(word.as_bytes())))
}

/// Answer of a script that succeeded, with numbers.
fn done(numbers: &[usize]) -> Vec<u8> {
    let numbers = numbers.iter().map(|&number| integer(number));
    array(std::iter::once(bulk(b"ok")).chain(numbers))
}

impl State {
    /// Runs a script by name.
    pub(super) fn run(&mut self, script: &str, words: &Words) -> Vec<u8> {
        let keys: usize = String::from_utf8_lossy(&words[2]).parse().expect("a number of keys");
        let mut args = Args(words[3 + keys..].iter());
        let token = if script == "rejected_length" { "" } else { args.text() };
        let is_free = matches!(script, "own" | "release" | "rejected_length");
        if let (false, Err(refusal)) = (is_free, self.check_lease(token)) {
            return refusal;
        }
        match script {
            "own" => self.own(token, args),
            "begin" => self.begin(args),
            "renew" => {
                self.lease = self.lease.take().map(|(lease, _)| (lease, end(&mut args)));
                done(&[])
            }
            "claim" => {
                if self.processing.is_empty() {
                    std::mem::swap(&mut self.source, &mut self.processing);
                }
                let length = self.processing.len();
                array([
                    bulk(b"ok"),
                    bulk(length.to_string().as_bytes()),
                    integer(length),
                    integer(0),
                ])
            }
            "commit_small" => self.commit_small(&args).unwrap_or_else(|refusal| refusal),
            "give_back" => self.give_back(),
            "release" => {
                if self.lease().is_some_and(|lease| lease[..16] == token[..16]) {
                    self.lease = None;
                }
                done(&[])
            }
            "forgets" => array([bulk(b"ok"), array([])]),
            "forgotten" => done(&[]),
            "rejected_length" => integer(0),
            other => panic!("the script {other} is not known"),
        }
    }

    /// Runs a transaction: a push, and the script of the commit.
    pub(super) fn transaction(&mut self, pushed: &[Item], commit: &Words) -> Vec<u8> {
        self.sink.extend_from_slice(pushed);
        let mut args = Args(commit[9..].iter());
        let token = args.text();
        let done = self.check_lease(token).and_then(|()| self.advance(&mut args));
        if done.is_err() {
            self.sink.truncate(self.sink.len() - pushed.len());
        }
        done.map_or_else(|refusal| refusal, |()| self.lengths())
    }

    /// Returns the lease, unless it has expired.
    pub(super) fn lease(&self) -> Option<&str> {
        let (lease, until) = self.lease.as_ref()?;
        (*until > Instant::now()).then_some(lease)
    }

    fn check_lease(&self, token: &str) -> Result<(), Refusal> {
        let lease = self.lease().unwrap_or_default();
        if lease.get(..32) == Some(token) { Ok(()) } else { Err(answer(&["lease", lease])) }
    }

    fn own(&mut self, token: &str, mut args: Args<'_>) -> Vec<u8> {
        let holder = args.text();
        let until = end(&mut args);
        let (seq, commit_id) = self.head.clone().unwrap_or_default();
        if let Some(lease) = self.lease() {
            let run = &lease[..16];
            if run != &token[..16] && !args.0.any(|dead| dead == run.as_bytes()) {
                let mut held = vec![bulk(b"held"), bulk(lease.as_bytes()), integer(1)];
                let rest = [&seq, &commit_id, &self.filter];
                held.extend(rest.map(|word| bulk(word.as_bytes())));
                return array(held);
            }
        }
        self.lease = Some((format!("{token} {holder}"), until));
        let state = ["ok", &seq, &commit_id, &self.format, &self.filter].map(str::as_bytes);
        let mut owned: Vec<_> = state.into_iter().map(bulk).collect();
        let length = self.processing.len();
        owned.extend([bulk(length.to_string().as_bytes()), integer(length), bulk(b"")]);
        array(owned)
    }

    fn begin(&mut self, mut args: Args<'_>) -> Vec<u8> {
        (self.filter, self.format) = (args.text().to_owned(), args.text().to_owned());
        let head = args.head();
        self.head.get_or_insert(head);
        done(&[])
    }

    fn commit_small(&mut self, args: &Args<'_>) -> Result<Vec<u8>, Refusal> {
        let all = args.0.as_slice();
        self.advance(&mut Args(all.iter()))?;
        let mut rest = Args(all[7..].iter());
        let (onward, rejects) = (rest.number(), rest.number());
        assert_eq!(rejects, 0, "all items can be read");
        self.sink.extend_from_slice(&rest.0.as_slice()[..onward]);
        Ok(self.lengths())
    }

    /// Checks head and processing list of a commit, trims the list and advances the head.
    fn advance(&mut self, args: &mut Args<'_>) -> Result<(), Refusal> {
        let (base, next) = (args.head(), args.head());
        let (place, count) = (args.number(), args.number());
        let head = self.head.clone().unwrap_or_default();
        if head != base {
            return Err(answer(&["head", &head.0, &head.1]));
        }
        if self.processing.len() != place {
            return Err(answer(&["source", "the list of claimed items"]));
        }
        self.processing.drain(..count);
        self.head = Some(next);
        Ok(())
    }

    fn lengths(&self) -> Vec<u8> {
        done(&[self.sink.len(), 0, 0])
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
                // Indexes from the right end count down from -1.
                let behind = |word: &[u8]| {
                    let index: isize = String::from_utf8_lossy(word).parse().expect("a number");
                    self.processing.len().checked_sub(index.unsigned_abs())
                };
                let Some(last) = behind(&words[3]) else { return array([]) };
                let from = behind(&words[2]).unwrap_or(0);
                let items = self.processing.iter().take(last + 1).skip(from);
                array(items.map(|item| bulk(item)))
            }
            b"LLEN" => integer(match &*words[1] {
                b"source" => self.source.len(),
                b"sink" => self.sink.len(),
                _ => 0,
            }),
            b"CONFIG" => array([bulk(&words[2]), bulk(b"536870912")]),
            b"INFO" => bulk(b"redis_version:7.0.0\r\n"),
            b"HGETALL" => array([]),
            b"SCRIPT" => bulk(b"loaded"),
            other => error(&format!("ERR no command {}", String::from_utf8_lossy(other))),
        }
    }
}

/// End of a lease that is granted now.
fn end(args: &mut Args<'_>) -> Instant {
    Instant::now() + Duration::from_millis(args.number() as u64)
}
