//! Search in bytes, in steps of sixteen bytes.
//!
//! A predicate is a function from `Lanes`, sixteen bytes, to `Lanes`. The predicate *marks* bytes:
//! in the result, the lane of a marked byte is 255, and all other lanes are 0. Predicates consist
//! of `equal`, `within` and bit operations.
//!
//! The searched texts are short. So an inlined search with vectors of sixteen bytes, which every
//! processor has, is faster than a call to a search with wider vectors.

use wide::u8x16;

/// Vector of sixteen bytes.
pub(crate) type Lanes = u8x16;

const LANES: usize = 16;

/// Marks the bytes that equal `byte`: their lanes in the result are 255, all others 0.
#[inline]
pub fn equal(lanes: Lanes, byte: u8) -> Lanes {
    lanes.simd_eq(u8x16::splat(byte))
}

/// Marks the bytes that equal one of `bytes`.
#[inline]
pub(crate) fn one_of<const N: usize>(lanes: Lanes, bytes: [u8; N]) -> Lanes {
    bytes.into_iter().fold(u8x16::ZERO, |found, byte| found | equal(lanes, byte))
}

/// Marks the bytes from `first` to `last`, both included.
#[inline]
pub(crate) fn within(lanes: Lanes, first: u8, last: u8) -> Lanes {
    let above = lanes - u8x16::splat(first);
    above.min(u8x16::splat(last - first)).simd_eq(above)
}

/// Marks the bytes that are hex digits of either case.
#[inline]
pub fn hex_digits(lanes: Lanes) -> Lanes {
    within(lanes, b'0', b'9') | within(lanes, b'A', b'F') | within(lanes, b'a', b'f')
}

/// Returns the position of the first byte that satisfies the predicate.
#[inline]
pub fn position(bytes: &[u8], is: impl Fn(Lanes) -> Lanes) -> Option<usize> {
    let first = |chunk| Some(is(u8x16::new(chunk)).to_bitmask()).filter(|&marks| marks != 0);
    let place = |start: usize, marks: u32| start + marks.trailing_zeros() as usize;
    let (chunks, rest) = bytes.as_chunks();
    for (number, &chunk) in chunks.iter().enumerate() {
        if let Some(marks) = first(chunk) {
            return Some(place(number * LANES, marks));
        }
    }
    match bytes.last_chunk() {
        // The last chunk overlaps the chunk before it. This does no harm, because the predicate
        // marks no byte of that chunk.
        Some(&last) => first(last).map(|marks| place(bytes.len() - LANES, marks)),
        None => first(filled(rest)).map(|marks| place(0, marks)).filter(|&at| at < rest.len()),
    }
}

/// Returns true if at least one byte satisfies the predicate.
#[inline]
pub fn any(bytes: &[u8], is: impl Fn(Lanes) -> Lanes) -> bool {
    position(bytes, is).is_some()
}

/// Returns true if `next` directly follows `one` anywhere in the bytes.
#[inline]
pub(crate) fn any_pair(bytes: &[u8], [one, next]: [u8; 2]) -> bool {
    let Some((_, behind)) = bytes.split_first() else { return false };
    let pairs = |ones, others| {
        (equal(u8x16::new(ones), one) & equal(u8x16::new(others), next)).to_bitmask() != 0
    };
    let ones = &bytes[..behind.len()];
    match (ones.last_chunk(), behind.last_chunk()) {
        (Some(&last), Some(&last_behind)) => {
            let chunks = ones.as_chunks().0.iter().zip(behind.as_chunks().0);
            chunks.into_iter().any(|(&ones, &behind)| pairs(ones, behind))
                || pairs(last, last_behind)
        }
        _ => bytes.windows(2).any(|pair| pair == [one, next]),
    }
}

/// Returns the given bytes, which are fewer than sixteen, followed by zeros.
#[inline]
fn filled(bytes: &[u8]) -> [u8; LANES] {
    let mut chunk = [0; LANES];
    chunk[..bytes.len()].copy_from_slice(bytes);
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_match_is_found_at_any_position() {
        for filler in [0, b'a'] {
            let is_other = |lanes| !equal(lanes, filler);
            for length in 0..70 {
                let mut bytes = vec![filler; length];
                assert_eq!(position(&bytes, is_other), None);
                assert!(!any(&bytes, is_other));
                for at in (0..length).rev() {
                    bytes[at] = 0x80 + u8::try_from(at).unwrap();
                    assert_eq!(position(&bytes, is_other), Some(at));
                    assert!(any(&bytes, is_other));
                    assert!(any(&bytes, |lanes| equal(lanes, bytes[at])));
                }
            }
        }
    }

    #[test]
    fn pairs_are_found_at_any_position() {
        for length in 0..70 {
            let mut bytes = vec![b'.'; length];
            bytes.extend_from_slice(b"/a/");
            assert!(!any_pair(&bytes, *b"/."), "{length}");
            for at in 0..length.saturating_sub(1) {
                bytes[at] = b'/';
                assert!(any_pair(&bytes, *b"/."), "{at} of {length}");
                bytes[at] = b'.';
            }
        }
        for short in [&b""[..], b"/", b"."] {
            assert!(!any_pair(short, *b"/."));
        }
    }

    #[test]
    fn a_range_includes_both_of_its_ends() {
        for (first, last) in [(b'a', b'c'), (0, 255), (7, 7), (0x7f, 0x80)] {
            for byte in 0..=255u8 {
                let found = any(&[byte], |lanes| within(lanes, first, last));
                assert_eq!(found, (first..=last).contains(&byte), "{byte} {first} {last}");
            }
        }
    }
}
