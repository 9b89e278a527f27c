//! Commits on the simulated Redis, of three sorts: a push and a script, a script that pushes, and a
//! script that tests the items against a filter in Redis and then pushes.

use super::state::{Args, Refusal, State, answer, done};
use super::wire::{Word, Words};

impl State {
    /// Runs a transaction: a push, and the script of the commit.
    pub(super) fn transaction(&mut self, pushed: &[Word], commit: &Words) -> Vec<u8> {
        self.sink.extend_from_slice(pushed);
        let committed = self.commit_pushed(pushed, Args::of(commit));
        if committed.is_err() {
            self.sink.truncate(self.sink.len() - pushed.len());
        }
        committed.unwrap_or_else(|refusal| refusal)
    }

    fn commit_pushed(&mut self, pushed: &[Word], mut args: Args<'_>) -> Result<Vec<u8>, Refusal> {
        self.check_lease(args.text())?;
        self.advance(&mut args)?;
        assert_eq!(args.number(), pushed.len(), "the script knows the push");
        assert_eq!(Some(args.0.next().expect("an item")), pushed.last().or(Some(&Word::new())));
        Ok(self.pushed(args))
    }

    pub(super) fn commit_pushing(&mut self, mut args: Args<'_>) -> Result<Vec<u8>, Refusal> {
        self.advance(&mut args)?;
        let onward = args.number();
        self.push(args.take(onward));
        Ok(self.pushed(args))
    }

    /// Adds rejects to their list, after the push of a commit.
    fn pushed(&mut self, args: Args<'_>) -> Vec<u8> {
        self.reject(args);
        done(&[self.sink_length(), self.rejected.len(), 0])
    }

    /// Commits a batch with a filter in Redis, which is a set of fingerprints as in scrapy-redis.
    pub(super) fn commit_shared(&mut self, mut args: Args<'_>) -> Result<Vec<u8>, Refusal> {
        self.advance(&mut args)?;
        let (judged, extras) = (args.number(), args.number());
        let _places = args.0.next();
        let (items, fingerprints) = (args.take(judged), args.take(extras));
        let is_unseen = |it: &Word| !it.is_empty() && !self.members.contains(it);
        let unseen: Vec<_> = fingerprints.iter().filter(|it| is_unseen(it)).cloned().collect();
        let judged = items.iter().zip(fingerprints);
        let onward = judged.filter(|(_, it)| it.is_empty() || is_unseen(it));
        let onward: Vec<_> = onward.map(|(item, _)| item.clone()).collect();
        self.push(&onward);
        self.reject(args);
        self.unseen += unseen.len();
        let counts = [self.sink_length(), self.rejected.len(), 0, unseen.len()];
        self.members.extend(unseen);
        Ok(done(&counts))
    }

    /// Checks head and processing list of a commit, trims the list and advances the head.
    fn advance(&mut self, args: &mut Args<'_>) -> Result<(), Refusal> {
        let (base, next) = (args.head(), args.head());
        let (place, count) = (args.number(), args.number());
        let _rejects_max = args.number();
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

    /// Pushes items from within a script. For a sorted set, each item begins with its score.
    fn push(&mut self, items: &[Word]) {
        if !self.is_scored {
            return self.sink.extend_from_slice(items);
        }
        for item in items {
            let space = item.iter().position(|&byte| byte == b' ').expect("a score");
            let score = String::from_utf8_lossy(&item[..space]).parse().expect("a number");
            let member = item.slice(space + 1..);
            self.sink.push(member.clone());
            self.scores.insert(member, score);
        }
    }

    /// Adds the rejects, which are the last arguments of a script.
    pub(super) fn reject(&mut self, rejects: Args<'_>) {
        self.rejected.extend(rejects.0.cloned());
    }

    fn sink_length(&self) -> usize {
        if self.is_scored { self.scores.len() } else { self.sink.len() }
    }
}
