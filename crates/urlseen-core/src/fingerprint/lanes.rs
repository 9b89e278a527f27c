//! Searching bytes, sixteen at a time.
//!
//! A question is asked of sixteen bytes at once: a function from [`Lanes`] to lanes that are 255
//! where it is answered with yes and 0 where not, made of [`equal`], [`within`] and bit operations.
//! The texts here are short, so that a search that the compiler puts where it is needed, with
//! vectors that every processor has, is faster than a call to one with wider vectors.

use wide::u8x16;

/// Sixteen bytes.
pub(crate) type Lanes = u8x16;

const LANES: usize = 16;

/// Which lanes are `byte`.
#[inline]
pub fn equal(lanes: Lanes, byte: u8) -> Lanes {
    lanes.simd_eq(u8x16::splat(byte))
}

/// Which lanes are one of `bytes`.
#[inline]
pub(crate) fn one_of<const N: usize>(lanes: Lanes, bytes: [u8; N]) -> Lanes {
    bytes.into_iter().fold(u8x16::ZERO, |found, byte| found | equal(lanes, byte))
}

/// Which lanes are one of the bytes from `first` to `last`.
#[inline]
pub(crate) fn within(lanes: Lanes, first: u8, last: u8) -> Lanes {
    let above = lanes - u8x16::splat(first);
    above.min(u8x16::splat(last - first)).simd_eq(above)
}

/// Which lanes are hex digits, of either case.
#[inline]
pub fn hex_digits(lanes: Lanes) -> Lanes {
    within(lanes, b'0', b'9') | within(lanes, b'A', b'F') | within(lanes, b'a', b'f')
}

/// Where the first byte is of which `is` holds.
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
        // It holds of none of those that are asked again.
        Some(&last) => first(last).map(|marks| place(bytes.len() - LANES, marks)),
        None => first(filled(rest)).map(|marks| place(0, marks)).filter(|&at| at < rest.len()),
    }
}

/// Whether `is` holds of any byte.
#[inline]
pub fn any(bytes: &[u8], is: impl Fn(Lanes) -> Lanes) -> bool {
    position(bytes, is).is_some()
}

/// Whether `one` is anywhere with `next` right behind it.
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

/// Fewer than sixteen bytes, and zeros.
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
    fn the_first_byte_is_found_wherever_it_is() {
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
    fn pairs_are_found_wherever_they_are() {
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
    fn both_ends_are_within() {
        for (first, last) in [(b'a', b'c'), (0, 255), (7, 7), (0x7f, 0x80)] {
            for byte in 0..=255u8 {
                let found = any(&[byte], |lanes| within(lanes, first, last));
                assert_eq!(found, (first..=last).contains(&byte), "{byte} {first} {last}");
            }
        }
    }
}
