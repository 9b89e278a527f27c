//! Payloads of the kind valkey-bloom, compared with those of the crates that valkey-bloom uses.

use urlseen_fingerprint::Fingerprint;

use super::*;
use crate::{Capacity, ErrorRate};

/// Layer of valkey-bloom, as its source defines it.
#[derive(serde::Serialize, serde::Deserialize)]
struct Theirs {
    #[serde(
        serialize_with = "bloomfilter::serialize",
        deserialize_with = "bloomfilter::deserialize"
    )]
    bloom: bloomfilter::Bloom<[u8]>,
    num_items: i64,
    capacity: i64,
}

/// Adds texts by the rules of valkey-bloom, and returns the payload of `BF.LOAD`.
fn theirs(capacity: u32, error_rate: f64, expansion: u32, texts: &[String]) -> Vec<u8> {
    let layer = |index: u32| {
        let (rate, capacity) =
            (error_rate * 0.5_f64.powi(index.cast_signed()), capacity * expansion.pow(index));
        let bloom = bloomfilter::Bloom::new_for_fp_rate_with_seed(capacity as usize, rate, &SEED);
        Theirs { bloom: bloom.unwrap(), num_items: 0, capacity: capacity.into() }
    };
    let mut layers = vec![layer(0)];
    for text in texts.iter().map(String::as_bytes) {
        if layers.iter().any(|layer| layer.bloom.check(text)) {
            continue;
        }
        if layers.last().unwrap().num_items == layers.last().unwrap().capacity {
            layers.push(layer(u32::try_from(layers.len()).unwrap()));
        }
        let last = layers.last_mut().unwrap();
        last.bloom.set(text);
        last.num_items += 1;
    }
    let object = (expansion, error_rate, 0.5_f64, false, layers);
    [vec![1], bincode::serialize(&object).unwrap()].concat()
}

fn ours(capacity: u32, error_rate: f64, expansion: u32) -> (Reservation, Box<dyn FilterKind>) {
    let (capacity, error_rate) = (Capacity::new(capacity.into()), ErrorRate::new(error_rate));
    let (capacity, error_rate) = (capacity.unwrap(), error_rate.unwrap());
    let size = Reservation { capacity, error_rate, expansion };
    (size, size.build(Seed::new(0)).unwrap().unwrap())
}

#[test]
fn payloads_are_those_of_the_crates_that_valkey_bloom_uses() {
    for (capacity, error_rate, expansion, keys) in
        [(100, 0.01, 2, 1_000), (1_000, 1e-6, 0, 900), (7, 0.1, 4, 500), (500, 1e-9, 1, 501)]
    {
        let keys: Vec<_> = (0..keys)
            .map(|key: u32| {
                Fingerprint::Raw20([&key.to_be_bytes()[..]; 5].concat().try_into().unwrap())
            })
            .collect();
        let texts: Vec<_> = keys.iter().map(ToString::to_string).collect();
        let (size, mut filter) = ours(capacity, error_rate, expansion);
        let key_hashes: Vec<_> =
            keys.iter().map(|key| size.hasher(Seed::new(0)).key_hash(key)).collect();
        filter.insert(&key_hashes).unwrap();
        let saved = filter.save(ShardId::WHOLE, Vec::new());
        let mut bytes = Vec::new();
        saved.write(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, saved.len());
        assert_eq!(bytes, theirs(capacity, error_rate, expansion, &texts), "{size:?}");
        let (_, mut loaded) = ours(capacity, error_rate, expansion);
        loaded.load(ShardId::WHOLE, saved.keys(), saved.len(), &mut &bytes[..]).unwrap();
        assert_eq!(loaded.gauge().fill(), filter.gauge().fill());
        bytes[30] ^= 1;
        let refused = loaded.load(ShardId::WHOLE, saved.keys(), saved.len(), &mut &bytes[..]);
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
