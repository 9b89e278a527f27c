//! Values that the configuration, or a record, has for the parameters of a filter.

use std::str::FromStr;

use super::{CAPACITY, ERROR_RATE, Kind, PARTITIONS, SEED};
use crate::filter::expire_after::ExpireAfter;
use crate::filter::spec::{SpecError, part};
use crate::filter::{Capacity, ErrorRate, Seed};
use crate::fingerprint::PartitionCount;

/// Time after which a fingerprint passes again.
pub(super) const EXPIRE_AFTER: &str = "filter.expire_after";

/// Value of [`EXPIRE_AFTER`] in a filter whose fingerprints do not expire.
const NEVER: &str = "never";

/// Returns the field with the time after which a fingerprint passes again.
pub(super) fn expire_after_field(time: Option<ExpireAfter>) -> (&'static str, String) {
    (EXPIRE_AFTER, time.map_or(NEVER.to_owned(), |time| time.to_string()))
}

/// Values that the configuration has for a filter of one kind.
pub(super) struct Values<'a> {
    pub(super) kind: Kind,
    pub(super) value: &'a dyn Fn(&'static str) -> Option<String>,
}

impl Values<'_> {
    /// Reads one required parameter.
    pub(super) fn part<T: FromStr>(&self, name: &'static str) -> Result<T, SpecError> {
        part(&self.value, name)
    }

    /// Reads one optional parameter.
    pub(super) fn open<T: FromStr>(&self, name: &'static str) -> Result<Option<T>, SpecError> {
        (self.value)(name).map(|_| self.part(name)).transpose()
    }

    pub(super) fn seed(&self) -> Result<Option<Seed>, SpecError> {
        Ok(self.open(SEED)?.map(Seed::new))
    }

    pub(super) fn partitions(&self) -> Result<PartitionCount, SpecError> {
        Ok(self.open(PARTITIONS)?.unwrap_or_default())
    }

    /// Reads the time after which a fingerprint passes again, if fingerprints expire.
    pub(super) fn expire_after(&self) -> Result<Option<ExpireAfter>, SpecError> {
        let is_never = (self.value)(EXPIRE_AFTER).is_some_and(|text| text == NEVER);
        if is_never { Ok(None) } else { self.open(EXPIRE_AFTER) }
    }

    /// Reads a capacity and an error rate within urlseen's own limits.
    pub(super) fn size(&self) -> Result<(Capacity, ErrorRate), SpecError> {
        let (capacity, error_rate) = (self.part(CAPACITY)?, self.part(ERROR_RATE)?);
        Ok((Capacity::new(capacity)?, ErrorRate::new(error_rate)?))
    }
}
