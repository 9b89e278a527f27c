//! Place of a fingerprint in each kind of filter: its shard, its bits or its set.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use urlseen_core::filter::kinds::{NATIVE, REDISBLOOM};
use urlseen_core::filter::native::Native;
use urlseen_core::filter::redisbloom::LayerBits;
use urlseen_core::filter::{BLOCK_BITS, Kind, Seed};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::redis_filter::opening::Opened;
use urlseen_engine::config::{Config, FilterPlace, SeedChoice};

use super::super::context::Context;
use super::super::settings::Place;
use super::Subject;

/// Place of a fingerprint in one kind of filter: its shard, its bits or its set.
#[derive(Debug, Default, Serialize)]
pub(super) struct PlaceShown {
    /// Name of the kind, as in `filter.kind`.
    pub(super) kind: &'static str,
    /// True if the filter is of this kind.
    pub(super) is_used: bool,
    /// The shard: two hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shard: Option<String>,
    /// Bits of the fingerprint in the filter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) bits: Vec<Bits>,
    /// Remark on the place, or the reason why the place is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// Bits of one block, or of one key in Redis.
#[derive(Debug, Default, Serialize)]
pub(super) struct Bits {
    /// Name of the key, for bits in Redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// Number of the block in its shard. Bits are counted from the first bit of the block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) block: Option<u64>,
    /// Numbers of the bits. In Redis they are offsets for `GETBIT`.
    #[serde(rename = "bits")]
    pub(super) numbers: BTreeSet<u64>,
}

/// Returns the place in each kind of filter. The kind in use comes first.
pub(super) fn of(key: &Fingerprint, subject: &Subject) -> Vec<PlaceShown> {
    let used = match &subject.header {
        Some(header) => header.spec().filter.kind(),
        None => subject.config.filter.kind,
    };
    let mut places: Vec<_> = Kind::all().map(|kind| by(kind, key, subject, used)).collect();
    places.sort_by_key(|place| !place.is_used);
    places
}

fn by(kind: Kind, key: &Fingerprint, subject: &Subject, used: Kind) -> PlaceShown {
    let mut place =
        PlaceShown { kind: kind.name(), is_used: kind == used, ..PlaceShown::default() };
    if kind == NATIVE {
        native(&mut place, key, subject);
    } else if kind == REDISBLOOM {
        redisbloom(&mut place, key, subject);
    } else if kind.is_in(FilterPlace::Redis) {
        strings(&mut place, kind, key, &subject.config);
    } else {
        member(&mut place, kind, key, subject);
    }
    place
}

fn native(place: &mut PlaceShown, key: &Fingerprint, subject: &Subject) {
    let Some(native) = seeded(place.is_used, subject) else {
        if !matches!(key, Fingerprint::Text(_)) {
            place.shard = Some(format!("{:02x}", key.as_bytes()[0]));
        }
        let words = "its blocks and bits depend on the filter's seed, which is chosen when the \
                     filter is made";
        place.note = Some(words.to_owned());
        return;
    };
    let key_hash = native.key_hash(key);
    place.shard = Some(key_hash.shard().to_string());
    let bits = u64::from(BLOCK_BITS);
    let positions = native.positions(key_hash);
    let blocks = grouped(positions.map(|position| (position / bits, position % bits)));
    let of_block = |(block, numbers)| Bits { block: Some(block), numbers, ..Bits::default() };
    place.bits = blocks.map(of_block).collect();
    if place.is_used && subject.config.filter.place == FilterPlace::Redis {
        let Ok(wanted) = subject.config.redis_filter() else { return };
        let Ok(shared) = wanted.filter(native.seed) else { return };
        let positions = shared.kind().positions(key).unwrap_or_default();
        let numbers = positions.iter().map(|position| position.bit.into()).collect();
        let key = Some(shared.key(key_hash.shard().number()));
        place.bits.push(Bits { key, numbers, ..Bits::default() });
    }
}

/// Returns the native kind with the filter's seed, if the seed is known.
fn seeded(is_used: bool, subject: &Subject) -> Option<Native> {
    if let Some(header) = &subject.header {
        return header.spec().filter.parameters.layout();
    }
    if let (Place::Redis, true) = (&subject.place, is_used)
        && let Ok(opened) = opened(&subject.config)
    {
        return opened.filter.kind().native();
    }
    let SeedChoice::Fixed(seed) = subject.config.filter.seed else { return None };
    subject.config.redis_filter().ok()?.filter(Seed::new(seed)).ok()?.kind().native()
}

fn opened(config: &Config) -> anyhow::Result<Opened> {
    let wanted = config.redis_filter()?;
    let context = Context::new(config.clone())?;
    let (_, opened) = context.runtime.block_on(context.find(&wanted))?;
    Ok(opened)
}

fn redisbloom(place: &mut PlaceShown, key: &Fingerprint, subject: &Subject) {
    let made = subject.header.as_ref().map(|header| &header.spec().filter.parameters);
    if made.is_some_and(|made| made.is_imported()) {
        let words = "the filter was imported: the positions of the bits depend on its layers";
        place.note = Some(words.to_owned());
        return;
    }
    let mut filter = subject.config.filter.clone();
    if let Some(made) = made {
        filter.set_parts(made);
    }
    let mut room = [0; 64];
    let text = key.text(&mut room);
    let found = LayerBits::of(text, filter.error_rate, filter.capacity, filter.expansion);
    if let Some(LayerBits { bits, positions }) = found {
        let numbers = positions.into_iter().collect();
        place.bits.push(Bits { numbers, ..Bits::default() });
        place.note = Some(format!("of the {bits} bits of its first layer"));
    }
}

/// Names the place in an exact filter.
fn member(place: &mut PlaceShown, kind: Kind, key: &Fingerprint, subject: &Subject) {
    let made = subject.header.as_ref().map(|header| &header.spec().filter.parameters);
    let made = made.filter(|made| made.kind() == kind);
    place.shard = made.map(|made| made.hasher().key_hash(key).shard().to_string());
    place.note = Some("its hash is a member of the set of its shard".to_owned());
}

fn strings(place: &mut PlaceShown, kind: Kind, key: &Fingerprint, config: &Config) {
    let mut config = config.clone();
    config.filter.kind = kind;
    let shared = match config.redis_filter().and_then(|wanted| wanted.filter(Seed::new(0))) {
        Ok(shared) => shared,
        Err(error) => {
            place.note = Some(error.to_string());
            return;
        }
    };
    if shared.kind().is_exact() {
        place.note = Some(format!("a member of the set {}", shared.key(0)));
        return;
    }
    match shared.kind().positions(key) {
        Ok(positions) => {
            let positions = positions.iter().map(|place| (place.string, place.bit.into()));
            let of_key = |(string, numbers)| {
                let key = Some(shared.key(string));
                Bits { key, numbers, ..Bits::default() }
            };
            place.bits = grouped(positions).map(of_key).collect();
        }
        Err(unplaced) => place.note = Some(unplaced.to_string()),
    }
}

/// Groups bits by their block or string.
fn grouped<K: Ord>(
    bits: impl Iterator<Item = (K, u64)>,
) -> impl Iterator<Item = (K, BTreeSet<u64>)> {
    let mut groups = BTreeMap::<K, BTreeSet<u64>>::new();
    for (group, bit) in bits {
        groups.entry(group).or_default().insert(bit);
    }
    groups.into_iter()
}
