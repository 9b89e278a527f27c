//! Decoding of hex digits.

use wide::{i16x8, u8x16};

use crate::fingerprint::lanes::{Lanes, hex_digits, within};

/// Number of bytes that are decoded at once, from two hex digits for each byte.
const BYTES: usize = 16;

/// Decodes hex digits, two for each byte, into `N` bytes. `N` is at least 16. Returns `None` if a
/// character is not a hex digit.
#[inline]
pub(super) fn decode<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    debug_assert_eq!(text.len(), 2 * N);
    let mut raw = [0; N];
    let (whole, rest) = raw.as_chunks_mut();
    for (bytes, digits) in whole.iter_mut().zip(text.as_chunks().0) {
        *bytes = decode_block(digits)?;
    }
    if !rest.is_empty() {
        // The last block overlaps the one before it, so some digits are decoded twice.
        let last = decode_block(text.last_chunk()?)?;
        rest.copy_from_slice(&last[BYTES - rest.len()..]);
    }
    Some(raw)
}

/// Decodes 32 hex digits into 16 bytes.
#[inline]
fn decode_block(digits: &[u8; 2 * BYTES]) -> Option<[u8; BYTES]> {
    let [first, second] = bytemuck::cast::<_, [Lanes; 2]>(*digits);
    if !(hex_digits(first) & hex_digits(second)).all() {
        return None;
    }
    Some(u8x16::narrow_i16x8(joined(first), joined(second)).to_array())
}

/// Joins sixteen hex digits into eight bytes.
#[inline]
fn joined(digits: Lanes) -> i16x8 {
    // The low four bits of the digit `0` are 0. Those of the letters `A` and `a` are 1, so a letter
    // needs 9 more.
    let nine_for_letters = within(digits, b'A', b'f') & Lanes::splat(9);
    let values = (digits & Lanes::splat(0x0f)) + nine_for_letters;
    // The low byte of each pair holds the first digit, whose value becomes the high half of the
    // result.
    let pairs = i16x8::new(bytemuck::cast::<_, [i16; 8]>(values).map(i16::from_le));
    (pairs << 4 | pairs >> 8) & i16x8::splat(0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_characters_is_read_at_every_place() {
        for high in 0..=255u8 {
            for low in 0..=255u8 {
                let value = std::str::from_utf8(&[high, low])
                    .ok()
                    .filter(|pair| !pair.starts_with('+'))
                    .and_then(|pair| u8::from_str_radix(pair, 16).ok());
                for place in 0..20 {
                    let mut text = *b"0123456789abcdefFEDCBA98765432100f1e2d3c";
                    text[2 * place] = high;
                    text[2 * place + 1] = low;
                    assert_eq!(decode::<20>(&text).map(|raw| raw[place]), value, "{high} {low}");
                }
            }
        }
    }

    #[test]
    fn digests_of_all_lengths_are_decoded_completely() {
        let text = b"00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
        let raw: Vec<u8> = (0..16).chain(0..16).map(|digit| digit * 0x11).collect();
        assert_eq!(decode::<16>(&text[..32]).map(Vec::from).as_deref(), Some(&raw[..16]));
        assert_eq!(decode::<20>(&text[..40]).map(Vec::from).as_deref(), Some(&raw[..20]));
        assert_eq!(decode::<32>(text).map(Vec::from).as_deref(), Some(&raw[..]));
    }
}
