//! Capacity of a filter, in keys.

use std::str::FromStr;

use super::SpecError;
use super::number::{CountError, parse_count};

/// Number of keys up to which a filter keeps its error rate: 1 to [`Capacity::MAX`].
///
/// As text, a capacity can be written as `100000000`, `100_000_000`, `1e8`, `2.5e9` or `100M`. The
/// suffixes `k`, `M`, `G` and `T` are powers of a thousand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capacity(u64);

impl Capacity {
    /// Largest capacity of a filter. At the smallest error rate and with one block for each key,
    /// each part of a shard then has 1.2e9 blocks, whose index fits into 32 bits.
    pub(crate) const MAX: u64 = 1_000_000_000_000;

    /// Checks a number of keys.
    pub fn new(keys: u64) -> Result<Self, SpecError> {
        Self::checked(keys, &keys.to_string())
    }

    /// Checks a number of keys. `shown` is the number as it is written.
    fn checked(keys: u64, shown: &str) -> Result<Self, SpecError> {
        match keys {
            0 => Err(SpecError(format!("capacity {shown} holds no key; give at least 1"))),
            1..=Self::MAX => Ok(Self(keys)),
            _ => Err(SpecError(format!(
                "capacity {shown} is more than the {:e} keys that one filter can index",
                Self::MAX
            ))),
        }
    }

    /// Returns the number of keys.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for Capacity {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        match parse_count(&text.trim().replace('_', "")) {
            Ok(keys) => Self::checked(keys, text),
            Err(CountError::Negative) => Self::checked(0, text),
            Err(CountError::TooLarge) => Self::checked(u64::MAX, text),
            Err(_) => Err(SpecError(format!(
                "capacity {text:?} is not a whole number such as 1e9, 100_000_000 or 10M"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_is_a_count_from_1_to_1e12() {
        assert_eq!(" 1T ".parse().map(Capacity::get), Ok(Capacity::MAX));
        let refused = |text: &str| text.parse::<Capacity>().unwrap_err().to_string();
        assert!(refused("1.5").starts_with("capacity \"1.5\" is not a whole number"));
        for text in ["0", "-5", "0M"] {
            assert_eq!(refused(text), format!("capacity {text} holds no key; give at least 1"));
        }
        for text in ["1000000000001", "1e13", "2T", "99999999999999999999"] {
            assert!(
                refused(text).starts_with(&format!("capacity {text} is more than the 1e12 keys"))
            );
        }
        assert!(Capacity::new(0).is_err());
        assert!(Capacity::new(Capacity::MAX).is_ok());
        let refused = Capacity::new(u64::MAX).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "capacity 18446744073709551615 is more than the 1e12 keys that one filter can index"
        );
    }
}
