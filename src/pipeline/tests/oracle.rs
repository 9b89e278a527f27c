//! Oracle of the simulation. It compares the treatment that each item got with the treatment that
//! the item must get.

use std::collections::HashMap;

use super::items::{self, ITEMS, Treatment};
use super::state::State;
use super::wire::Word;
use urlseen_redis::reject::{Reject, RejectedItem};

/// For each item, the number of its emissions and of its rejections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) emitted: Vec<usize>,
    rejected: Vec<usize>,
}

impl Tally {
    /// Counts the items in the sink and on the list of rejects.
    pub(super) fn of(state: &State) -> Self {
        let rejected = state.rejected.iter().map(|json| {
            let reject = Reject::from_json(json).expect("a reject");
            let RejectedItem::Whole(item) = reject.item else { panic!("no item is large") };
            Word::from(item)
        });
        Self { emitted: counts(state.sink.iter().cloned()), rejected: counts(rejected) }
    }

    /// Compares the tally with the fed items. `allowed` has for each item the number of times that
    /// it may pass again: because the daemon read it from the list of items to forget, or because
    /// its time was over. Lost replies can make the daemon read an entry several times. `limit` is
    /// the number of unseen items that may pass: items are missing only if so many have passed.
    pub(super) fn check(&self, state: &State, allowed: &[usize], limit: Option<usize>) {
        let fed = counts(state.fed.iter().cloned());
        let to_forget = counts(state.told.iter().cloned());
        let emitted = |number: &u32| self.emitted[*number as usize];
        let passed: usize = items::filtered().iter().map(emitted).sum();
        let most = limit.unwrap_or(usize::MAX);
        assert!(passed <= most, "{passed} items passed, and the limit is {most}");
        for number in 0..ITEMS {
            let index = number as usize;
            let (fed, emitted, rejected) = (fed[index], self.emitted[index], self.rejected[index]);
            let (least, most, rejects) = match items::treatment(number) {
                Treatment::Filtered => {
                    let least = if passed == most { 0 } else { fed.min(1) };
                    (least, fed.min(1 + allowed[index]), 0)
                }
                Treatment::Unfiltered => (fed, fed, 0),
                Treatment::Rejected => (0, 0, fed + to_forget[index]),
            };
            assert!(least <= emitted, "lost: {number} was fed {fed} and emitted {emitted} times");
            assert!(emitted <= most, "repeated: {number} was emitted {emitted} of {most} times");
            assert_eq!(rejected, rejects, "rejects of {number}, which was fed {fed} times");
        }
    }
}

/// Counts each item by its number. Panics at anything else.
fn counts(all: impl Iterator<Item = Word>) -> Vec<usize> {
    thread_local! {
        static NUMBERS: HashMap<Word, usize> =
            (0..ITEMS).map(|number| (items::item(number), number as usize)).collect();
    }
    let mut counts = vec![0; ITEMS as usize];
    NUMBERS.with(|numbers| {
        for item in all {
            let number = numbers.get(&item);
            counts[*number.unwrap_or_else(|| panic!("{item:?} was never fed"))] += 1;
        }
    });
    counts
}
