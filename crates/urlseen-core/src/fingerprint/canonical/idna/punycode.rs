//! Encoder for Punycode (RFC 3492).

const BASE: u32 = 36;
const SKEW: u32 = 38;
const FIRST_BIAS: u32 = 72;
const FIRST_DAMP: u32 = 700;
const DAMP: u32 = 2;

/// Smallest and largest threshold (`tmin`, `tmax`).
const MIN: u32 = 1;
const MAX: u32 = 26;

/// Appends the encoding of a label of at most 63 letters. At that length no number overflows.
pub(super) fn push_encoded(label: &str, out: &mut String) {
    let start = out.len();
    out.extend(label.chars().filter(char::is_ascii));
    let mut written = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    let mut first = true;
    if written > 0 {
        out.push('-');
    }
    let mut bias = FIRST_BIAS;
    let mut delta = 0;
    // All letters below this one are already written.
    let mut next = 0x80;
    while let Some(letter) = label.chars().map(u32::from).filter(|&letter| letter >= next).min() {
        delta += (letter - next) * (written + 1);
        for other in label.chars().map(u32::from) {
            if other < letter {
                delta += 1;
            } else if other == letter {
                push_number(delta, bias, out);
                written += 1;
                bias = adapted(delta, written, first);
                first = false;
                delta = 0;
            }
        }
        delta += 1;
        next = letter + 1;
    }
}

/// Appends a number in digits whose weight depends on `bias` (RFC 3492, section 3.3).
fn push_number(mut number: u32, bias: u32, out: &mut String) {
    let mut position = BASE;
    loop {
        let threshold = position.saturating_sub(bias).clamp(MIN, MAX);
        if number < threshold {
            out.push(digit(number));
            return;
        }
        number -= threshold;
        out.push(digit(threshold + number % (BASE - threshold)));
        number /= BASE - threshold;
        position += BASE;
    }
}

/// Returns the bias for the next number (RFC 3492, section 3.4).
fn adapted(delta: u32, written: u32, first: bool) -> u32 {
    let mut delta = delta / if first { FIRST_DAMP } else { DAMP };
    delta += delta / written;
    let mut bias = 0;
    while delta > (BASE - MIN) * MAX / 2 {
        delta /= BASE - MIN;
        bias += BASE;
    }
    bias + (BASE - MIN + 1) * delta / (delta + SKEW)
}

/// Digit of a value: `a` to `z`, then `0` to `9`.
fn digit(value: u32) -> char {
    char::from_digit((value + 10) % BASE, BASE).unwrap_or_default()
}
