//! Kind of Redisson's `RBloomFilter`, with the codec `StringCodec` or `ByteArrayCodec`.
//!
//! ```text
//! m = floor(-n ln p / (ln 2)^2)         bits, for n keys at error rate p; at most 2^32 - 2
//! k = max(1, round(m / n ln 2))         hashes
//! h1, h2 = HighwayHash-128 (text) under a fixed key
//! bit i  (h & (2^63 - 1)) mod m; h is h1 at first, then h2 or h1 is added in turn
//! key    NAME, and the hash {NAME}:config, or NAME:config if NAME has a brace
//! ```
//!
//! Each call of Redisson compares the fields of the hash with its own parameters, and fails if they
//! differ.

use highway::{HighwayHash, HighwayHasher, Key};

use crate::SpecError;
use crate::kinds::kind::{IN_REDIS, Kind, Registered};
use crate::number::whole;
use crate::peers::bit_strings::{BitPosition, BitStrings, Place};
use crate::redis_kind::Record;

pub(crate) const KIND: Kind =
    Kind(&Registered { name: NAME, read: |values| values.by_size(layout), ..IN_REDIS });

const NAME: &str = "redisson";

/// Maximum number of bits of a filter in Redisson.
const LARGEST: u64 = 4_294_967_294;

/// Fixed key of `HighwayHash`.
const KEY: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xf39c_c060_5ced_c834, 0x1082_276b_f3a2_7251, 0xf86c_6a11_d0c1_8e95];

/// Computes the layout for a capacity in keys (`expectedInsertions`) and an error rate
/// (`falseProbability`).
///
/// # Errors
/// The capacity is 0, the error rate is not between 0 and 1, or Redisson refuses the size.
fn layout(capacity: u64, error_rate: f64) -> Result<BitStrings, SpecError> {
    SpecError::check_size(NAME, capacity, error_rate)?;
    let (keys, ln_2) = (capacity as f64, std::f64::consts::LN_2);
    let bits = -keys * error_rate.ln() / (ln_2 * ln_2);
    if !(bits >= 1.0 && bits < (LARGEST + 1) as f64) {
        let allowed = format!("a filter has 1 to {LARGEST} bits");
        return Err(SpecError::of_size(NAME, capacity, error_rate, allowed));
    }
    let m = whole(bits);
    let k = u32::try_from(whole(m as f64 / keys * ln_2 + 0.5).max(1)).expect("at most 1100");
    let record = Record {
        key: String::new(),
        fields: vec![
            ("size", m.to_string()),
            ("hashIterations", k.to_string()),
            ("expectedInsertions", capacity.to_string()),
            // `to_string` writes no exponent.
            ("falseProbability", error_rate.to_string()),
        ],
        // Size and hashes.
        fixed: 2,
    };
    Ok(BitStrings { record: Some(record), ..BitStrings::new(m, k, PLACE) })
}

const PLACE: Place = |layout, text, positions| {
    let [first, second] = HighwayHasher::new(Key(KEY)).hash128(text);
    let mut hash = first;
    positions.extend((0..layout.hashes).map(|index| {
        // The position is below 2^32.
        #[allow(clippy::cast_possible_truncation)]
        let bit = ((hash & (u64::MAX >> 1)) % layout.m) as u32;
        hash = hash.wrapping_add(if index % 2 == 0 { second } else { first });
        BitPosition { string: 0, bit }
    }));
    Ok(())
};

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::RedisKind;

    /// Compares size, record and bits with the output of `scripts/data/kinds`, which computes them
    /// independently.
    #[test]
    fn bits_are_those_of_the_oracle() {
        let file = include_str!("../../../../tests/vectors/kinds.jsonl");
        let lines = file.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut filters = 0;
        for line in lines.filter(|line| line["kind"] == NAME) {
            let (capacity, rate) = (line["capacity"].as_u64(), line["error_rate"].as_f64());
            let layout = layout(capacity.unwrap(), rate.unwrap()).unwrap();
            assert_eq!(
                (layout.m, layout.hashes.into()),
                (line["size"].as_u64().unwrap(), line["hashes"].as_u64().unwrap())
            );
            let record = layout.record("f").unwrap();
            assert_eq!(record.key, "{f}:config");
            for (name, value) in record.fields {
                assert_eq!(line["config"][name], value, "{name}");
            }
            for (text, bits) in line["items"].as_object().unwrap() {
                let mut positions = Vec::new();
                layout.push_positions(text.as_bytes(), &mut positions).unwrap();
                let found: Vec<_> = positions.iter().map(|it| it.bit).collect();
                assert_eq!(*bits, serde_json::json!(found), "{text:?} of {layout:?}");
            }
            filters += 1;
        }
        assert_eq!(filters, 6);
    }

    #[test]
    fn sizes_that_redisson_refuses_are_refused() {
        for (capacity, rate) in [(0, 0.1), (1, 0.0), (1, 1.0), (1, 0.9), (200_000_000, 1e-8)] {
            assert!(layout(capacity, rate).is_err(), "{capacity} {rate}");
        }
        let record = layout(1000, 0.01).unwrap().record("a{b}").unwrap();
        assert_eq!(record.key, "a{b}:config");
    }
}
