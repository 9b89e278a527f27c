//! Oracle: computes the expected content of the sink and of the rejects list, and finds all errors
//! in the real lists.

use std::collections::HashMap;
use std::fmt;
use std::ops::AddAssign;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::items::{Identity, Items};

/// Number of examples that are shown for each kind of error.
const EXAMPLES: usize = 5;

/// Kind of error in the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Wrong {
    /// Item that Redis kept, and that is missing in the sink.
    Lost,
    /// Item that is in the sink too often.
    Repeated,
    /// Item in the sink that was never fed, or that should not be there.
    Invented,
    /// Unreadable item that is missing in the rejects list.
    RejectLost,
    /// Item that is in the rejects list too often.
    RejectRepeated,
    /// Item in the rejects list that is readable, or was never fed.
    RejectInvented,
}

impl Wrong {
    pub(crate) const ALL: [Self; 6] = [
        Self::Lost,
        Self::Repeated,
        Self::Invented,
        Self::RejectLost,
        Self::RejectRepeated,
        Self::RejectInvented,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Repeated => "repeated",
            Self::Invented => "invented",
            Self::RejectLost => "rejects lost",
            Self::RejectRepeated => "rejects repeated",
            Self::RejectInvented => "rejects invented",
        }
    }
}

/// Counted errors of each kind, with examples.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    counts: HashMap<Wrong, u64>,
    examples: Vec<(Wrong, String)>,
}

impl Verdict {
    pub(crate) fn count(&self, wrong: Wrong) -> u64 {
        self.counts.get(&wrong).copied().unwrap_or_default()
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the counts of all kinds in one line.
    pub(crate) fn counts(&self) -> String {
        let counts = Wrong::ALL.map(|wrong| format!("{} {}", self.count(wrong), wrong.name()));
        counts.join(", ")
    }

    fn add(&mut self, wrong: Wrong, example: impl FnOnce() -> String) {
        let count = self.counts.entry(wrong).or_default();
        *count += 1;
        if *count <= EXAMPLES as u64 {
            self.examples.push((wrong, example()));
        }
    }
}

impl AddAssign<&Self> for Verdict {
    /// Adds the counts of another verdict, without its examples, which were already shown.
    fn add_assign(&mut self, other: &Self) {
        for (&wrong, count) in &other.counts {
            *self.counts.entry(wrong).or_default() += count;
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for wrong in Wrong::ALL.into_iter().filter(|&wrong| self.count(wrong) > 0) {
            writeln!(f, "  {}: {}", wrong.name(), self.count(wrong))?;
            for (_, example) in self.examples.iter().filter(|(kind, _)| *kind == wrong) {
                writeln!(f, "    {example}")?;
            }
        }
        Ok(())
    }
}

/// Expected content of the sink and of the rejects list, computed from the items that Redis kept.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    /// For the bytes of each item: its identity, its first position, and the number of times that
    /// it was fed.
    fed: HashMap<Vec<u8>, Fed>,
    /// For each key: the position of its first item, and the number of items with this key in the
    /// sink.
    keys: HashMap<u64, KeyState>,
    /// True if a router may have pushed items again.
    is_routed: bool,
}

#[derive(Debug)]
struct Fed {
    identity: Identity,
    first: u64,
    times: u64,
}

#[derive(Debug)]
struct KeyState {
    first: u64,
    out: u64,
}

impl Oracle {
    /// Computes the expected content for the first `count` items.
    pub(crate) fn of(items: &Items, count: u64) -> Self {
        let mut oracle = Self::default();
        for place in 0..count {
            let item = items.item(place);
            let fed = Fed { identity: item.identity, first: place, times: 0 };
            oracle.fed.entry(item.bytes).or_insert(fed).times += 1;
            if let Identity::Key(key) = item.identity {
                oracle.keys.entry(key).or_insert(KeyState { first: place, out: 0 });
            }
        }
        oracle
    }

    /// Returns the oracle, which permits repeated items if no filter tests them, because a router
    /// may have pushed them again.
    pub(crate) fn routed(self) -> Self {
        Self { is_routed: true, ..self }
    }

    /// Returns the number of elements that the sink must have.
    #[cfg(test)]
    fn expected(&self) -> u64 {
        let unfiltered = self.fed.values().filter(|fed| fed.identity == Identity::Unfiltered);
        self.keys.len() as u64 + unfiltered.map(|fed| fed.times).sum::<u64>()
    }

    /// Finds all errors in a sink and a list of rejects.
    pub(crate) fn judge(
        mut self,
        sink: impl IntoIterator<Item = Vec<u8>>,
        rejects: impl IntoIterator<Item = Vec<u8>>,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        let mut passed: HashMap<Vec<u8>, u64> = HashMap::new();
        for (place, bytes) in sink.into_iter().enumerate() {
            let example = || format!("sink[{place}] = {}", shown(&bytes));
            match self.fed.get(&bytes).map(|fed| fed.identity) {
                None => verdict.add(Wrong::Invented, || example() + ", never fed"),
                Some(Identity::Unreadable) => {
                    verdict.add(Wrong::Invented, || example() + ", not readable");
                }
                Some(Identity::Unfiltered) => *passed.entry(bytes).or_default() += 1,
                Some(Identity::Key(key)) => {
                    let state = self.keys.get_mut(&key).expect("every key that was fed");
                    state.out += 1;
                    if state.out > 1 {
                        let first = state.first;
                        verdict.add(Wrong::Repeated, || {
                            format!("{}, key {key:x}, first fed as item {first}", example())
                        });
                    }
                }
            }
        }
        for (key, state) in self.keys.iter().filter(|(_, state)| state.out == 0) {
            let first = state.first;
            verdict.add(Wrong::Lost, || format!("key {key:x}, first fed as item {first}"));
        }
        let rejected = rejects_by_item(rejects, &mut verdict);
        for (bytes, fed) in &self.fed {
            let (counted, more, fewer) = match fed.identity {
                Identity::Key(_) => (&rejected, Wrong::RejectInvented, None),
                Identity::Unfiltered => (&passed, Wrong::Repeated, Some(Wrong::Lost)),
                Identity::Unreadable => (&rejected, Wrong::RejectRepeated, Some(Wrong::RejectLost)),
            };
            let expected = if fewer.is_some() { fed.times } else { 0 };
            let out = counted.get(bytes).copied().unwrap_or_default();
            let is_permitted = self.is_routed && fewer.is_some();
            let wrong = match out > expected {
                true if is_permitted => None,
                true => Some(more),
                false => fewer,
            };
            if let Some(wrong) = wrong {
                for _ in 0..out.abs_diff(expected) {
                    verdict.add(wrong, || {
                        let (bytes, first) = (shown(bytes), fed.first);
                        format!("{bytes}, first fed as item {first}: {out} times, not {expected}")
                    });
                }
            }
        }
        for (bytes, count) in rejected {
            let is_unfiltered = |fed: &Fed| fed.identity == Identity::Unfiltered;
            if self.fed.get(&bytes).is_none_or(is_unfiltered) {
                for _ in 0..count {
                    verdict.add(Wrong::RejectInvented, || shown(&bytes));
                }
            }
        }
        verdict
    }
}

/// Counts, for each item, the rejects that contain the item.
fn rejects_by_item(
    rejects: impl IntoIterator<Item = Vec<u8>>,
    verdict: &mut Verdict,
) -> HashMap<Vec<u8>, u64> {
    let mut rejected: HashMap<Vec<u8>, u64> = HashMap::new();
    for reject in rejects {
        match rejected_item(&reject) {
            Some(item) => *rejected.entry(item).or_default() += 1,
            None => {
                verdict.add(Wrong::RejectInvented, || format!("not a reject: {}", shown(&reject)));
            }
        }
    }
    rejected
}

/// Returns the item that a reject contains.
fn rejected_item(reject: &[u8]) -> Option<Vec<u8>> {
    let reject: serde_json::Value = serde_json::from_slice(reject).ok()?;
    match (reject["item"].as_str(), reject["item_base64"].as_str()) {
        (Some(text), None) => Some(text.into()),
        (None, Some(base64)) => BASE64_STANDARD.decode(base64).ok(),
        _ => None,
    }
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().take(160).map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: u64 = 5_000;

    fn items() -> Items {
        Items { seed: 3, new_percent: 30, history: Vec::new() }
    }

    /// Correct content of sink and rejects.
    fn right() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let (items, mut met) = (items(), std::collections::HashSet::new());
        let (mut sink, mut rejects) = (Vec::new(), Vec::new());
        for item in (0..COUNT).map(|place| items.item(place)) {
            match item.identity {
                Identity::Unreadable => {
                    let base64 = BASE64_STANDARD.encode(&item.bytes);
                    rejects.push(format!(r#"{{"item_base64": "{base64}"}}"#).into_bytes());
                }
                Identity::Unfiltered => sink.push(item.bytes),
                Identity::Key(key) if met.insert(key) => sink.push(item.bytes),
                Identity::Key(_) => {}
            }
        }
        (sink, rejects)
    }

    fn index_of(sink: &[Vec<u8>], wanted: fn(Identity) -> bool) -> usize {
        let oracle = Oracle::of(&items(), COUNT);
        sink.iter().position(|bytes| wanted(oracle.fed[bytes].identity)).unwrap()
    }

    #[track_caller]
    fn assert_verdict(sink: Vec<Vec<u8>>, rejects: Vec<Vec<u8>>, expected: &[(Wrong, u64)]) {
        let verdict = Oracle::of(&items(), COUNT).judge(sink, rejects);
        assert_eq!(verdict.counts, expected.iter().copied().collect(), "{verdict}");
        assert_eq!(verdict.is_clean(), expected.is_empty());
        for (wrong, _) in expected {
            assert!(verdict.to_string().contains(wrong.name()), "{verdict}");
        }
    }

    #[test]
    fn correct_output_passes_in_any_order() {
        let (mut sink, rejects) = right();
        assert_eq!(sink.len() as u64, Oracle::of(&items(), COUNT).expected());
        assert!(rejects.len() > 10);
        assert_verdict(sink.clone(), rejects.clone(), &[]);
        sink.reverse();
        assert_verdict(sink, rejects, &[]);
    }

    #[test]
    fn a_router_may_repeat_only_items_that_no_filter_tests() {
        let (mut sink, mut rejects) = right();
        let [unfiltered, filtered] = [
            index_of(&sink, |it| it == Identity::Unfiltered),
            index_of(&sink, |it| matches!(it, Identity::Key(_))),
        ];
        sink.push(sink[unfiltered].clone());
        rejects.push(rejects[0].clone());
        let judge = |sink: &[Vec<u8>], rejects: &[Vec<u8>]| {
            Oracle::of(&items(), COUNT).routed().judge(sink.to_vec(), rejects.to_vec()).counts
        };
        assert_eq!(judge(&sink, &rejects), HashMap::new());
        sink.push(sink[filtered].clone());
        assert_eq!(judge(&sink, &rejects), HashMap::from([(Wrong::Repeated, 1)]));
    }

    #[test]
    fn a_second_item_with_the_same_key_is_a_repeat() {
        let (mut sink, rejects) = right();
        let oracle = Oracle::of(&items(), COUNT);
        let is_other = |bytes: &&Vec<u8>| {
            matches!(oracle.fed[*bytes].identity, Identity::Key(_)) && !sink.contains(bytes)
        };
        let other = oracle.fed.keys().find(is_other).unwrap().clone();
        sink.push(other);
        assert_verdict(sink, rejects, &[(Wrong::Repeated, 1)]);
    }

    #[test]
    fn an_invented_item_is_found() {
        let (mut sink, rejects) = right();
        sink.push(b"http://example.com/never".to_vec());
        // An item that is in the rejects list must not be in the sink.
        sink.push(b"".to_vec());
        assert_verdict(sink, rejects, &[(Wrong::Invented, 2)]);
    }

    #[test]
    fn an_item_with_a_changed_payload_is_lost_and_another_is_invented() {
        let (mut sink, rejects) = right();
        let index = index_of(&sink, |it| matches!(it, Identity::Key(_)));
        sink[index].push(b'!');
        assert_verdict(sink, rejects, &[(Wrong::Invented, 1), (Wrong::Lost, 1)]);
    }

    #[test]
    fn missing_doubled_and_invented_rejects_are_found() {
        let (sink, mut rejects) = right();
        let one = rejects.pop().unwrap();
        assert_verdict(sink.clone(), rejects.clone(), &[(Wrong::RejectLost, 1)]);
        rejects.extend([one.clone(), one]);
        assert_verdict(sink.clone(), rejects.clone(), &[(Wrong::RejectRepeated, 1)]);
        rejects.pop();
        let readable = sink.iter().find(|it| it.starts_with(b"http")).unwrap();
        let readable = format!(r#"{{"item": "{}"}}"#, str::from_utf8(readable).unwrap());
        for invented in [readable.as_str(), r#"{"item": "/never"}"#, "no JSON", "{}"] {
            rejects.push(invented.into());
            assert_verdict(sink.clone(), rejects.clone(), &[(Wrong::RejectInvented, 1)]);
            rejects.pop();
        }
        let index = index_of(&sink, |it| it == Identity::Unfiltered);
        let base64 = BASE64_STANDARD.encode(&sink[index]);
        rejects.push(format!(r#"{{"item_base64": "{base64}"}}"#).into_bytes());
        assert_verdict(sink, rejects, &[(Wrong::RejectInvented, 1)]);
    }
}
