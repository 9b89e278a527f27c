//! Items to feed. The seed, the position and the history determine each item. So the oracle can
//! make an item again, and does not need the program under test to identify it.

use fastrand::Rng;

/// Expected fate of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// Item with this key. Only the first item with the key goes to the sink.
    Key(u64),
    /// Item that always goes to the sink.
    Unfiltered,
    /// Item that is rejected.
    Unreadable,
}

/// Element of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) bytes: Vec<u8>,
    pub(crate) identity: Identity,
}

/// Series of items that starts at the position `first`.
///
/// When Redis comes back with older data, a new generation starts: later items differ from those
/// that Redis lost. But half of the new keys of this generation are keys of earlier items that
/// Redis has perhaps lost. If the filter still has such a key, the filter drops the new item, and
/// the oracle reports the item as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation {
    pub(crate) first: u64,
    pub(crate) number: u64,
}

/// Items that a round feeds.
#[derive(Debug, Clone)]
pub(crate) struct Items {
    pub(crate) seed: u64,
    /// Percentage of items that are new.
    pub(crate) new_percent: u8,
    /// Generations in ascending order. If two generations start at the same item, the last one
    /// counts.
    pub(crate) history: Vec<Generation>,
}

/// Maximum distance, in items, between a near repeat and the item that it repeats. Half of the
/// repeats are near ones.
const NEAR: u64 = 500;

/// Number of nearby positions that are searched for a key that Redis has perhaps lost.
const MOVED: u64 = 300;

/// Number of low bits of a key. They encode the position of the first item with this key. The bits
/// above them encode the generation.
const GENERATION_SHIFT: u32 = 40;

impl Items {
    /// Returns the item at the position `place`.
    pub(crate) fn item(&self, place: u64) -> Item {
        let mut random = self.random(self.generation(place), place, 0);
        let key = self.key(place);
        match random.u8(0..200) {
            0 => Item { bytes: garbage(&mut random, place), identity: Identity::Unreadable },
            1 => {
                // Two neighbouring items can have the same bytes. Both items go to the sink.
                let mark = place / 2;
                let url = url(&mut random, key);
                let json = format!(r#"{{"url": "{url}", "dont_filter": true, "mark": {mark}}}"#);
                Item { bytes: json.into(), identity: Identity::Unfiltered }
            }
            _ => Item { bytes: spelling(&mut random, key, place), identity: Identity::Key(key) },
        }
    }

    fn generation(&self, place: u64) -> u64 {
        let begun = self.history.iter().rev().find(|generation| generation.first <= place);
        begun.map_or(0, |generation| generation.number)
    }

    /// Returns the key of the item at `place`.
    fn key(&self, mut place: u64) -> u64 {
        loop {
            let generation = self.generation(place);
            if self.is_new(generation, place) {
                return self.new_key(generation, place);
            }
            let mut random = self.random(generation, place, 1);
            place = if random.bool() {
                place - 1 - random.u64(0..place.min(NEAR))
            } else {
                random.u64(0..place)
            };
        }
    }

    fn is_new(&self, generation: u64, place: u64) -> bool {
        place == 0 || self.random(generation, place, 2).u8(0..100) < self.new_percent
    }

    /// Returns a new key at `place`: either a key that no item had before, or a key that Redis has
    /// perhaps lost. A lost key comes from an earlier generation and a nearby position.
    fn new_key(&self, generation: u64, place: u64) -> u64 {
        let mut random = self.random(generation, place, 3);
        if generation == 0 || random.bool() {
            return generation << GENERATION_SHIFT | place;
        }
        let earlier = random.u64(0..generation);
        let from = (place + random.u64(0..2 * MOVED)).saturating_sub(MOVED);
        let thereabouts = from..from + MOVED;
        let place = thereabouts.into_iter().find(|&place| self.is_new(earlier, place));
        let place = place.unwrap_or(from);
        earlier << GENERATION_SHIFT | place
    }

    fn random(&self, generation: u64, place: u64, purpose: u64) -> Rng {
        let mut random = Rng::with_seed(self.seed ^ generation << 48 ^ place << 2 ^ purpose);
        // The first random number is skipped, because it depends too closely on the seed.
        random.u64(..);
        random
    }
}

/// Returns the bytes of an item with this key. Items with the same key have different bytes at most
/// places.
fn spelling(random: &mut Rng, key: u64, place: u64) -> Vec<u8> {
    let mut kind = Rng::with_seed(!key);
    kind.u64(..);
    let padding = "x".repeat(random.usize(0..40));
    match kind.u8(0..10) {
        0..=4 => {
            let url = url(random, key);
            match random.u8(0..3) {
                0 => url.into(),
                1 => format!("{url}#{place}").into(),
                _ => format!(r#"{{"meta": {{"from": {place}}}, "url": "{url}"}}"#).into(),
            }
        }
        5 => {
            let url = url(random, key);
            let body = if random.bool() { r#""body": "a=1""# } else { r#""body_base64": "YT0x""# };
            format!(r#"{{"url": "{url}", "method": "POST", {body}, "from": {place}}}"#).into()
        }
        6 => {
            let prefix = ["", "0x", " 0X"][random.usize(0..3)];
            format!(r#"{{"fingerprint": "{prefix}{key:040x}", "from": {place}, "x": "{padding}"}}"#)
                .into()
        }
        _ => {
            let digits = [(); 4].map(|()| format!("{:016x}", kind.u64(..))).concat();
            let mut digits = digits[..[32, 40, 40, 64][kind.usize(0..4)]].to_owned();
            if random.bool() {
                digits.make_ascii_uppercase();
            }
            match random.u8(0..3) {
                0 => digits.into(),
                1 => format!("{digits}\tpayload {place} {padding}").into(),
                _ => format!(r#"{{"from": {place}, "fingerprint": "{digits}"}}"#).into(),
            }
        }
    }
}

fn url(random: &mut Rng, key: u64) -> String {
    match random.u8(0..3) {
        0 => format!("http://example.com/{key}?b=2&a=1"),
        1 => format!("HTTP://EXAMPLE.COM/{key}?a=1&b=2"),
        _ => format!("http://example.com/{key}?a=1&b=2"),
    }
}

fn garbage(random: &mut Rng, place: u64) -> Vec<u8> {
    match random.u8(0..6) {
        0 => Vec::new(),
        1 => [b"\xff\xfe", place.to_string().as_bytes()].concat(),
        2 => [b"\x80\x04", place.to_string().as_bytes()].concat(),
        3 => format!(r#"{{"url": {place}"#).into(),
        4 => format!("/no/scheme/{place}").into(),
        _ => [b"http://example.com/\xff/", place.to_string().as_bytes()].concat(),
    }
}
