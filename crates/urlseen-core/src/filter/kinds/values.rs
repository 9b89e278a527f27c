//! Values that the configuration, or a record, has for the parameters of a filter.

use std::str::FromStr;

use super::{CAPACITY, ERROR_RATE, Kind, PARTITIONS, SEED};
use crate::filter::spec::{SpecError, part};
use crate::filter::{Capacity, ErrorRate, Seed};
use crate::fingerprint::PartitionCount;

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

    /// Reads a capacity and an error rate within urlseen's own limits.
    pub(super) fn size(&self) -> Result<(Capacity, ErrorRate), SpecError> {
        let (capacity, error_rate) = (self.part(CAPACITY)?, self.part(ERROR_RATE)?);
        Ok((Capacity::new(capacity)?, ErrorRate::new(error_rate)?))
    }
}
