//! Compares shards with a map from keys to generations, by every kernel.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::contents::Contents;
use super::super::layout::{KeyBits, Layout};
use super::super::{Arena, Kernel, Kernels, Work};
use super::*;
use crate::generation::Generation;

/// Shard, and the map that it must equal.
struct Pair {
    shard: Shard,
    arena: Arena,
    /// Keys that have not expired, and the generations in which they were let through.
    model: BTreeMap<Key, Generation>,
    /// The present generation, if the keys expire.
    now: Option<Generation>,
}

/// Operation on a shard and on its model.
#[derive(Debug, Clone)]
enum Step {
    /// Insert this many keys from this one on, which were let through this many generations ago.
    Insert(u64, u64, u32),
    /// Remove this many keys from this one on.
    Remove(u64, u64),
    /// Make room for this many keys.
    MakeRoom(u64),
    /// Begin the generation that comes this many later.
    Begin(u32),
    /// Sweep this many blocks.
    Sweep(u64),
}

/// Does a step with a kernel, and tests all keys in the range of the step.
struct Do<'a>(&'a mut Pair, &'a Step);

impl Work for Do<'_> {
    type Done = ();

    #[inline(always)]
    fn by(self, kernel: impl Kernel) {
        let Self(Pair { shard, arena, model, now }, step) = self;
        match *step {
            Step::Insert(from, count, age) => {
                let generation = now.map_or(Generation::FOREVER, |now| now.earlier(age));
                for number in from..from + count {
                    let key = key(number, shard.bits);
                    shard.make_room(1, kernel, arena).unwrap();
                    shard.insert(key, Stamp::of(generation), kernel, arena);
                    model.insert(key, generation);
                }
            }
            Step::Remove(from, count) => {
                for number in from..from + count {
                    shard.remove(key(number, shard.bits), arena);
                    model.remove(&key(number, shard.bits));
                }
            }
            Step::MakeRoom(keys) => shard.make_room(keys, kernel, arena).unwrap(),
            Step::Begin(later) => {
                if let Some(now) = now {
                    *now = now.later(later);
                    shard.begin_generation(*now, arena);
                    model.retain(|_, generation| generation.age_in(*now).is_some());
                }
            }
            Step::Sweep(blocks) => shard.sweep(blocks, arena),
        }
        for number in (0..6000).step_by(7) {
            let key = key(number, shard.bits);
            let probe = shard.probe(key, arena);
            assert_eq!(
                shard.has_live(key, &probe, kernel, arena.blocks()),
                model.contains_key(&key),
                "{number}"
            );
        }
    }
}

/// Stores a new key in a shard that does not grow.
struct Store<'a>(&'a mut Pair, Key);

impl Work for Store<'_> {
    type Done = ();

    #[inline(always)]
    fn by(self, kernel: impl Kernel) {
        let Self(Pair { shard, arena, model, .. }, key) = self;
        shard.store(key, Stamp::NONE, kernel, arena);
        shard.keys += 1;
        assert_eq!(model.insert(key, Generation::FOREVER), None);
    }
}

impl Pair {
    /// Makes a shard whose keys do not expire.
    fn new(slots: u64, bits: u32) -> Self {
        Self::in_generation(None, slots, bits)
    }

    /// Makes a shard. If a generation is given, its keys expire.
    fn in_generation(now: Option<Generation>, slots: u64, bits: u32) -> Self {
        let (bits, mut arena) = (KeyBits::new(bits).unwrap(), Arena::reserve(1, 1 << 14));
        let arena_of = arena.as_mut().unwrap();
        arena_of.touched = 0;
        let mut shard = Shard::with_slots(slots, bits, now.is_some(), arena_of).unwrap();
        shard.begin_generation(now.unwrap_or_default(), arena_of);
        Self { shard, arena: arena.unwrap(), model: BTreeMap::new(), now }
    }

    /// Checks that the shard has exactly the keys of the map.
    fn check(&self) {
        let Self { shard, arena, model, now } = self;
        assert_eq!(shard.live_keys(), model.len() as u64);
        let dated =
            |(key, stamp): (Key, Stamp)| (key, stamp.generation((*now).unwrap_or_default()));
        let copy: Contents = shard.copy(arena, vec![7]);
        let keys: Vec<_> = copy.iter().map(dated).collect();
        assert_eq!(keys.len(), model.len(), "no key has two slots");
        assert_eq!(&keys.into_iter().collect::<BTreeMap<_, _>>(), model);
        if let (Some(generations), Some(now)) = (shard.generations(), *now) {
            let ages: Vec<_> = model.values().map(|it| it.age_in(now)).collect();
            let of_age = |age| ages.iter().filter(|&&it| it == Some(age)).count() as u64;
            assert_eq!(generations.keys, [0, 1, 2, 3, 4, 5].map(of_age));
            assert_eq!(generations.expired, shard.keys - shard.live_keys());
        }
    }
}

/// Returns a key whose bits are spread like those of a hash.
fn key(number: u64, bits: KeyBits) -> Key {
    let hash = number.wrapping_add(1).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let hash = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    bits.key(hash ^ hash >> 29)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = || (0..5000_u64, 0..1000_u64);
    let step = prop_oneof![
        4 => (range(), 0..6_u32).prop_map(|((from, count), age)| Step::Insert(from, count, age)),
        2 => range().prop_map(|(from, count)| Step::Remove(from, count)),
        1 => (0..1000_u64).prop_map(Step::MakeRoom),
        1 => (0..9_u32).prop_map(Step::Begin),
        1 => (0..50_u64).prop_map(Step::Sweep),
    ];
    prop::collection::vec(step, 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// With few bits, different keys fall together.
    #[test]
    fn a_shard_has_exactly_the_keys_of_a_map(
        bits in 10..=KeyBits::MAX,
        slots in 1..2000_u64,
        now in prop::option::of((10..30_u32).prop_map(Generation::new)),
        steps in steps(),
    ) {
        for kernel in Kernels::all() {
            let mut pair = Pair::in_generation(now, slots, bits);
            for step in &steps {
                kernel.run(Do(&mut pair, step));
                pair.check();
            }
        }
    }
}

#[test]
fn a_growing_shard_has_memory_before_it_needs_it() {
    let mut pair = Pair::new(20_000, 40);
    let first = pair.arena.backed();
    let mut from = 0;
    while pair.arena.backed() == first {
        Kernels::fastest().run(Do(&mut pair, &Step::Insert(from, 500, 0)));
        from += 500;
    }
    let chunks = pair.shard.chunks.iter().filter(|&&chunk| chunk != NONE).count();
    assert!(chunks * pair.arena.chunk() <= first);
}

#[test]
fn no_key_is_homeless_while_a_shard_grows_by_itself() {
    let mut pair = Pair::new(20_000, 40);
    for from in (0..300_000).step_by(100) {
        Kernels::fastest().run(Do(&mut pair, &Step::Insert(from, 100, 0)));
        assert_eq!(pair.shard.homeless.len(), 0);
        assert!(pair.shard.keys <= pair.shard.slots() * 19 / 20);
    }
}

#[test]
fn keys_without_a_slot_are_seen_and_can_be_removed() {
    let mut pair = Pair::new(1, 20);
    // All slots of both blocks are full, and so are those of the other keys there.
    let slots = pair.shard.slots();
    for number in 0..slots + 50 {
        let key = key(number, pair.shard.bits);
        Kernels::fastest().run(Store(&mut pair, key));
    }
    assert_eq!(pair.shard.homeless.len(), 50);
    pair.check();
    Kernels::fastest().run(Do(&mut pair, &Step::Remove(slots + 10, 20)));
    assert_eq!(pair.shard.homeless.len(), 30);
    pair.check();
    Kernels::fastest().run(Do(&mut pair, &Step::MakeRoom(1000)));
    assert_eq!(pair.shard.homeless.len(), 0);
    pair.check();
}

#[test]
fn words_come_back_from_their_places() {
    for bits in [1, 13, 40, 53, 63].map(|bits| KeyBits::new(bits).unwrap()) {
        for slots in [1, 100, 12_345, 1 << 30] {
            let of = |has_stamps| Layout::with_slots(slots, bits, has_stamps);
            for layout in [of(false), of(true)]
                .into_iter()
                .flat_map(|layout| [layout, layout.grown(bits), layout.grown(bits).grown(bits)])
            {
                for word in (0..500).flat_map(|number| key(number, bits).words()) {
                    let place = layout.place(word);
                    assert!(place.block < layout.blocks);
                    let decoder = layout.decoder(place.block, bits);
                    assert_eq!(decoder.word(place.content), Some(word), "{layout:?}");
                }
            }
        }
    }
}

/// Makes room for one key, and inserts it.
struct TryInsert<'a>(&'a mut Pair, u64);

impl Work for TryInsert<'_> {
    type Done = Result<(), Full>;

    #[inline(always)]
    fn by(self, kernel: impl Kernel) -> Result<(), Full> {
        let Self(Pair { shard, arena, model, .. }, number) = self;
        let key = key(number, shard.bits);
        shard.make_room(1, kernel, arena)?;
        shard.insert(key, Stamp::NONE, kernel, arena);
        model.insert(key, Generation::FOREVER);
        Ok(())
    }
}

#[test]
fn a_shard_without_memory_is_full_before_a_key_is_homeless() {
    let mut pair = Pair::new(1, 40);
    // The arena has as many blocks as it reserved.
    let inserted =
        (0..).take_while(|&number| Kernels::fastest().run(TryInsert(&mut pair, number)).is_ok());
    let inserted = inserted.count();
    assert!(inserted > 100_000, "{inserted}");
    assert_eq!(pair.shard.homeless.len(), 0);
    pair.check();
    // After the failed growth, keys can be removed and inserted.
    Kernels::fastest().run(Do(&mut pair, &Step::Remove(0, 1000)));
    for number in 0..900 {
        Kernels::fastest().run(TryInsert(&mut pair, number)).unwrap();
    }
    pair.check();
}

/// A crawl whose pages change: each generation has as many new keys, and some old ones again.
#[test]
fn a_shard_whose_keys_expire_stays_as_large_as_it_is() {
    let mut pair = Pair::in_generation(Some(Generation::new(100)), 1000, 40);
    let mut blocks = Vec::new();
    for round in 0..40_u64 {
        let kernel = Kernels::fastest();
        for part in 0..100 {
            kernel.run(Do(&mut pair, &Step::Insert(round * 20_000 + part * 250, 250, 0)));
            kernel.run(Do(&mut pair, &Step::Sweep(20)));
        }
        kernel.run(Do(&mut pair, &Step::Begin(1)));
        pair.check();
        blocks.push(pair.shard.layouts.second().blocks);
    }
    assert_eq!(blocks[10], blocks[39], "{blocks:?}");
}
