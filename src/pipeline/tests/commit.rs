//! Commits on the simulated Redis, in two forms: the items are arguments of the script, or a
//! command of the same transaction has pushed them before. The filter may be in this Redis.

use super::state::{Args, Refusal, State, answer, done};
use super::wire::{Word, Words};

/// Number of Redis keys of a commit without those of a filter.
const OWN_KEYS: usize = 5;

impl State {
    /// Runs a commit: the push before the script, and the script.
    pub(super) fn commit(&mut self, pushed: &[Word], commit: &Words) -> Vec<u8> {
        self.sink.extend_from_slice(pushed);
        let committed = self.committed(pushed, commit);
        if committed.is_err() {
            self.sink.truncate(self.sink.len() - pushed.len());
        }
        committed.unwrap_or_else(|refusal| refusal)
    }

    fn committed(&mut self, pushed: &[Word], commit: &Words) -> Result<Vec<u8>, Refusal> {
        let mut args = Args::of(commit);
        self.check_lease(args.text())?;
        self.advance(&mut args)?;
        assert_eq!(args.number(), pushed.len(), "the script knows the push");
        assert_eq!(Some(args.0.next().expect("an item")), pushed.last().or(Some(&Word::new())));
        let (given, extras) = (args.number(), args.number());
        let _places = args.0.next();
        let (items, extras) = (args.take(given), args.take(extras));
        if Args::keys(commit) == OWN_KEYS {
            self.push(items);
            self.reject(args);
            return Ok(done(&[self.sink_length(), self.rejected.len(), 0]));
        }
        let unseen = self.judge(items, extras);
        self.reject(args);
        Ok(done(&[self.sink_length(), self.rejected.len(), 0, unseen]))
    }

    /// Pushes the unseen items, and adds them to a filter in Redis. The filter is a set of
    /// fingerprints, as in scrapy-redis. Returns the number of unseen items.
    fn judge(&mut self, items: &[Word], fingerprints: &[Word]) -> usize {
        let is_unseen = |it: &Word| !it.is_empty() && !self.members.contains(it);
        let unseen: Vec<_> = fingerprints.iter().filter(|it| is_unseen(it)).cloned().collect();
        let judged = items.iter().zip(fingerprints);
        let onward = judged.filter(|(_, it)| it.is_empty() || is_unseen(it));
        let onward: Vec<_> = onward.map(|(item, _)| item.clone()).collect();
        self.push(&onward);
        self.unseen += unseen.len();
        let count = unseen.len();
        self.members.extend(unseen);
        count
    }

    /// Checks head and processing list of a commit, trims the list and advances the head.
    fn advance(&mut self, args: &mut Args<'_>) -> Result<(), Refusal> {
        let (base, next) = (args.head(), args.head());
        let (place, count) = (args.number(), args.number());
        let [_take_from, _rejects_max, _push] = [args.text(), args.text(), args.text()];
        let head = self.head.clone().unwrap_or_default();
        if head != base {
            return Err(answer(&["head", &head.0, &head.1]));
        }
        if self.processing.len() != place {
            let found = self.processing.len();
            let what = format!("the list of claimed items: it now holds {found} items");
            return Err(answer(&["source", &what]));
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
