//! Hex digits, and the bytes that they stand for.

use crate::lanes::{Lanes, hex_digits, within};

/// How many digits are read at once.
const DIGITS: usize = 16;

/// Two hex digits a byte into `N` bytes, at least 8; `None` if any character is not a hex digit.
pub(super) fn decode<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    debug_assert_eq!(text.len(), 2 * N);
    let mut raw = [0; N];
    for (eight, digits) in raw.as_chunks_mut().0.iter_mut().zip(text.as_chunks().0) {
        *eight = decode_sixteen(*digits)?;
    }
    // Where the length is no multiple of sixteen, some are read again.
    if N % (DIGITS / 2) != 0 {
        *raw.last_chunk_mut()? = decode_sixteen(*text.last_chunk()?)?;
    }
    Some(raw)
}

/// The bytes that sixteen hex digits stand for.
#[inline]
fn decode_sixteen(digits: [u8; DIGITS]) -> Option<[u8; DIGITS / 2]> {
    let digits = Lanes::new(digits);
    if !hex_digits(digits).all() {
        return None;
    }
    // The low bits of the digit 0 are 0, those of the letters `a` and `A` are 1.
    let nine_for_letters = within(digits, b'A', b'f') & Lanes::splat(9);
    let values = (digits & Lanes::splat(0x0f)) + nine_for_letters;
    let values = values.to_array();
    Some(std::array::from_fn(|pair| values[2 * pair] << 4 | values[2 * pair + 1]))
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
    fn all_lengths_are_read_to_their_end() {
        let text = b"00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
        let raw: Vec<u8> = (0..16).chain(0..16).map(|digit| digit * 0x11).collect();
        assert_eq!(decode::<16>(&text[..32]).map(Vec::from).as_deref(), Some(&raw[..16]));
        assert_eq!(decode::<20>(&text[..40]).map(Vec::from).as_deref(), Some(&raw[..20]));
        assert_eq!(decode::<32>(text).map(Vec::from).as_deref(), Some(&raw[..]));
    }
}
