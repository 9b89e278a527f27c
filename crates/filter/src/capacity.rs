//! Capacity of a filter, in keys.

use std::str::FromStr;

use super::number::{CountError, parse_count};

/// Number of keys up to which a filter keeps its error rate: 1 to [`Capacity::MAX`].
///
/// As text, a capacity can be written as `100000000`, `100_000_000`, `1e8`, `2.5e9` or `100M`. The
/// suffixes `k`, `M`, `G` and `T` are powers of a thousand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capacity(u64);

/// Reason why a capacity is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// The number of keys is 0 or negative.
    #[error("capacity {0} holds no key; give at least 1")]
    None(String),
    /// The number of keys is over [`Capacity::MAX`].
    #[error(
        "capacity {0} is more than the {max:e} keys that one filter can index",
        max = Capacity::MAX
    )]
    TooLarge(String),
    /// The text is not a whole number in any of the accepted forms.
    #[error("capacity {0:?} is not a whole number such as 1e9, 100_000_000 or 10M")]
    NotANumber(String),
}

impl Capacity {
    /// Largest capacity of a filter. At the smallest error rate and with one block for each key,
    /// each part of a shard then has 1.2e9 blocks, whose index fits into 32 bits.
    pub(crate) const MAX: u64 = 1_000_000_000_000;

    /// Checks a number of keys.
    pub fn new(keys: u64) -> Result<Self, CapacityError> {
        match keys {
            0 => Err(CapacityError::None(keys.to_string())),
            1..=Self::MAX => Ok(Self(keys)),
            _ => Err(CapacityError::TooLarge(keys.to_string())),
        }
    }

    /// Returns the number of keys.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for Capacity {
    type Err = CapacityError;

    fn from_str(text: &str) -> Result<Self, CapacityError> {
        match parse_count(&text.trim().replace('_', "")) {
            Ok(0) | Err(CountError::Negative) => Err(CapacityError::None(text.into())),
            Ok(keys) => Self::new(keys).map_err(|_| CapacityError::TooLarge(text.into())),
            Err(CountError::TooLarge) => Err(CapacityError::TooLarge(text.into())),
            Err(_) => Err(CapacityError::NotANumber(text.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_is_a_count_from_1_to_1e12() {
        assert_eq!(" 1T ".parse().map(Capacity::get), Ok(Capacity::MAX));
        assert_eq!("1.5".parse::<Capacity>(), Err(CapacityError::NotANumber("1.5".into())));
        for text in ["0", "-5", "0M"] {
            assert_eq!(text.parse::<Capacity>(), Err(CapacityError::None(text.into())));
        }
        for text in ["1000000000001", "1e13", "2T", "99999999999999999999"] {
            assert_eq!(text.parse::<Capacity>(), Err(CapacityError::TooLarge(text.into())));
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
