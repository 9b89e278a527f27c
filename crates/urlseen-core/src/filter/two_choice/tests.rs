//! Compares shards with a set of keys, by every kernel.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::contents::Contents;
use super::super::layout::{KeyBits, Layout};
use super::super::{Arena, Kernel, Kernels, Work};
use super::*;

/// Shard, and the set that it must equal.
struct Pair {
    shard: Shard,
    arena: Arena,
    model: BTreeSet<Key>,
}

/// Operation on a shard and on its model.
#[derive(Debug, Clone)]
enum Step {
    /// Insert this many keys from this one on.
    Insert(u64, u64),
    /// Remove this many keys from this one on.
    Remove(u64, u64),
    /// Make room for this many keys.
    MakeRoom(u64),
}

/// Does a step with a kernel, and tests all keys in the range of the step.
struct Do<'a>(&'a mut Pair, &'a Step);

impl Work for Do<'_> {
    type Done = ();

    #[inline(always)]
    fn by(self, kernel: impl Kernel) {
        let Self(Pair { shard, arena, model }, step) = self;
        match *step {
            Step::Insert(from, count) => {
                for number in from..from + count {
                    let key = key(number, shard.bits);
                    shard.make_room(1, kernel, arena).unwrap();
                    shard.insert(key, kernel, arena);
                    model.insert(key);
                }
            }
            Step::Remove(from, count) => {
                for number in from..from + count {
                    shard.remove(key(number, shard.bits), arena);
                    model.remove(&key(number, shard.bits));
                }
            }
            Step::MakeRoom(keys) => shard.make_room(keys, kernel, arena).unwrap(),
        }
        for number in (0..6000).step_by(7) {
            let key = key(number, shard.bits);
            let probe = shard.probe(key, arena);
            assert_eq!(
                shard.has(key, &probe, kernel, arena.blocks()),
                model.contains(&key),
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
        let Self(Pair { shard, arena, model }, key) = self;
        let probe = shard.probe(key, arena);
        shard.store(key, &probe, kernel, arena);
        shard.keys += 1;
        assert!(model.insert(key));
    }
}

impl Pair {
    fn new(slots: u64, bits: u32) -> Self {
        let mut arena = Arena::reserve(1 << 16, 1, 1 << 10).unwrap();
        let shard = Shard::with_slots(slots, KeyBits::new(bits).unwrap(), &mut arena).unwrap();
        Self { shard, arena, model: BTreeSet::new() }
    }

    /// Checks that the shard has exactly the keys of the set.
    fn check(&self) {
        let Self { shard, arena, model } = self;
        assert_eq!(shard.keys(), model.len() as u64);
        let keys: Vec<_> = shard.iter(arena).collect();
        assert_eq!(keys.len(), model.len(), "no key has two slots");
        assert_eq!(&keys.into_iter().collect::<BTreeSet<_>>(), model);
        let copy: Contents = shard.copy(arena, vec![7]);
        assert_eq!(&copy.iter().collect::<BTreeSet<_>>(), model);
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
        4 => range().prop_map(|(from, count)| Step::Insert(from, count)),
        2 => range().prop_map(|(from, count)| Step::Remove(from, count)),
        1 => (0..1000_u64).prop_map(Step::MakeRoom),
    ];
    prop::collection::vec(step, 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// With few bits, different keys fall together.
    #[test]
    fn a_shard_has_exactly_the_keys_of_a_set(
        bits in 10..=KeyBits::MAX,
        slots in 1..2000_u64,
        steps in steps(),
    ) {
        for kernel in Kernels::all() {
            let mut pair = Pair::new(slots, bits);
            for step in &steps {
                kernel.run(Do(&mut pair, step));
                pair.check();
            }
        }
    }
}

#[test]
fn a_shard_grows_through_all_formats_and_loses_no_key() {
    let mut pair = Pair::new(1, 50);
    let mut formats = BTreeSet::new();
    for from in (0..200_000).step_by(500) {
        Kernels::fastest().run(Do(&mut pair, &Step::Insert(from, 500)));
        formats.insert(pair.shard.layouts.first().format.slots());
        if from % 20_000 == 0 {
            pair.check();
        }
    }
    pair.check();
    assert!(formats.len() >= 4, "{formats:?}");
}

#[test]
fn no_key_is_homeless_while_a_shard_grows_by_itself() {
    let mut pair = Pair::new(20_000, 40);
    for from in (0..300_000).step_by(100) {
        Kernels::fastest().run(Do(&mut pair, &Step::Insert(from, 100)));
        assert_eq!(pair.shard.homeless.len(), 0);
        assert!(pair.shard.keys() <= pair.shard.slots() * 19 / 20);
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
            let layout = Layout::with_slots(slots, bits);
            for layout in [layout, layout.grown(bits), layout.grown(bits).grown(bits)] {
                for word in (0..500).flat_map(|number| key(number, bits).words()) {
                    let place = layout.place(word);
                    assert!(place.block < layout.blocks);
                    assert_eq!(layout.word(place, bits), Some(word), "{layout:?}");
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
        let Self(Pair { shard, arena, model }, number) = self;
        let key = key(number, shard.bits);
        shard.make_room(1, kernel, arena)?;
        shard.insert(key, kernel, arena);
        model.insert(key);
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
