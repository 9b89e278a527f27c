//! Items that the simulation feeds. Most are URLs, some pass unchecked, and some cannot be read.

use super::wire::Word;

/// Number of different items in a run.
pub(super) const ITEMS: u32 = 80;

/// Treatment that an item must get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    /// The item is emitted once, and again after it was forgotten.
    Filtered,
    /// The item is emitted as often as it is fed.
    Unfiltered,
    /// The item is rejected as often as it is fed.
    Rejected,
}

/// Returns the item of this number.
pub(super) fn item(number: u32) -> Word {
    let url = format!("http://a/{number}");
    match treatment(number) {
        Treatment::Rejected => format!("{{{number}"),
        Treatment::Unfiltered => format!(r#"{{"url": "{url}", "dont_filter": true}}"#),
        Treatment::Filtered if number.is_multiple_of(3) => {
            format!(r#"{{"url": "{url}", "priority": {number}}}"#)
        }
        Treatment::Filtered => url,
    }
    .into()
}

pub(super) fn treatment(number: u32) -> Treatment {
    match number % 16 {
        7 => Treatment::Unfiltered,
        11 => Treatment::Rejected,
        _ => Treatment::Filtered,
    }
}

/// Returns the numbers of all items that the filter tests.
pub(super) fn filtered() -> Vec<u32> {
    (0..ITEMS).filter(|&number| treatment(number) == Treatment::Filtered).collect()
}

/// Returns the score of an item in a sorted set: its negative priority.
pub(super) fn score(number: u32) -> f64 {
    let is_scored = treatment(number) == Treatment::Filtered && number.is_multiple_of(3);
    if is_scored { -f64::from(number) } else { 0.0 }
}
