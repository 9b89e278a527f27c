//! Body of the section with the samples of the shards.

use std::collections::HashSet;

use super::super::encoding::Fields;
use crate::filter::{ShardId, ShardSample};

/// Bytes of a sample before its words: shard, halvings, number of words, number of wrong ones.
const HEAD: usize = 10;

/// Bit that marks a partial sample, in the byte with the halvings. There are at most 64 halvings.
const PARTIAL: u8 = 0x80;

/// Appends the sample of a shard.
pub(super) fn encode(shard: ShardId, sample: &ShardSample, bytes: &mut Vec<u8>) {
    let number = |words: &HashSet<u64>| u32::try_from(words.len()).expect("a sample is small");
    bytes.push(shard.byte());
    bytes.push(sample.halvings | if sample.is_partial { PARTIAL } else { 0 });
    bytes.extend(number(&sample.asked).to_le_bytes());
    bytes.extend(number(&sample.wrong).to_le_bytes());
    let right = sample.asked.difference(&sample.wrong);
    for word in sample.wrong.iter().chain(right) {
        bytes.extend(word.to_le_bytes());
    }
}

/// Reads samples that were encoded one after the other. Returns `None` if these bytes are not
/// samples.
pub(super) fn decode_all(mut bytes: &[u8]) -> Option<Vec<(ShardId, ShardSample)>> {
    let mut samples = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at_checked(HEAD)?;
        let mut head = Fields(head);
        let (shard, halvings) = (ShardId::kept(head.u8()), head.u8());
        let (asked, wrong) = (head.u32() as usize, head.u32() as usize);
        let (is_partial, halvings) = (halvings & PARTIAL != 0, halvings & !PARTIAL);
        let (words, rest) = rest.split_at_checked(asked.checked_mul(size_of::<u64>())?)?;
        let words: Vec<u64> =
            words.as_chunks().0.iter().map(|it| u64::from_le_bytes(*it)).collect();
        let wrong = words.get(..wrong)?.iter().copied().collect();
        let asked = words.into_iter().collect();
        samples.push((shard, ShardSample { halvings, asked, wrong, is_partial }));
        bytes = rest;
    }
    Some(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_as_they_were_written() {
        let sample = |halvings, asked: &[u64], wrong: &[u64]| ShardSample {
            halvings,
            asked: asked.iter().copied().collect(),
            wrong: wrong.iter().copied().collect(),
            is_partial: halvings > 0,
        };
        let samples = [
            (ShardId::kept(3), sample(0, &[1, 2, u64::MAX], &[2])),
            (ShardId::kept(9), sample(0, &[], &[])),
            (ShardId::kept(255), sample(7, &[5, 6], &[5, 6])),
        ];
        let mut bytes = Vec::new();
        for (shard, sample) in &samples {
            encode(*shard, sample, &mut bytes);
        }
        assert_eq!(decode_all(&bytes), Some(samples.to_vec()));
        // Every cut within a sample is noticed.
        let ends = [34, 44];
        for end in 1..bytes.len() {
            assert_eq!(decode_all(&bytes[..end]).is_some(), ends.contains(&end), "{end}");
        }
        // There are more wrong answers than answers.
        let mut bytes = Vec::new();
        encode(ShardId::kept(3), &sample(0, &[1], &[]), &mut bytes);
        bytes[6] = 2;
        assert_eq!(decode_all(&bytes), None);
    }
}
