//! Error of parameters with which no filter can be made.

use std::fmt::Display;

/// Reason why no filter can have some parameters, or why they cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub(crate) String);

impl SpecError {
    /// Makes the error of a part that is missing, or whose text cannot be read.
    pub fn unreadable(name: &str, found: Option<&str>) -> Self {
        Self(found.map_or_else(
            || format!("{name} is missing"),
            |found| format!("{name} cannot be {found:?}"),
        ))
    }

    /// Makes the error of a setting that is impossible in a layout.
    pub(crate) fn of_setting(
        layout: &'static str,
        setting: &'static str,
        found: impl Display,
        allowed: impl Display,
    ) -> Self {
        Self(format!("the layout {layout} cannot have {setting} {found}: {allowed}"))
    }

    /// Makes the error for a capacity that a layout cannot have at this error rate.
    pub(crate) fn of_size(
        layout: &'static str,
        capacity: u64,
        error_rate: f64,
        allowed: impl Display,
    ) -> Self {
        let found = format!("{capacity} at the error rate {error_rate:e}");
        Self::of_setting(layout, "the capacity", found, allowed)
    }

    /// Refuses a capacity of 0, and an error rate that is not between 0 and 1.
    pub(crate) fn check_size(
        layout: &'static str,
        capacity: u64,
        error_rate: f64,
    ) -> Result<(), Self> {
        if capacity == 0 {
            return Err(Self::of_setting(layout, "the capacity", capacity, "it is 1 or more"));
        }
        if error_rate > 0.0 && error_rate < 1.0 {
            return Ok(());
        }
        Err(Self::of_setting(layout, "the error rate", error_rate, "it lies between 0 and 1"))
    }
}
