//! Values that the configuration, or a record, has for the parameters of a filter, and the
//! parameters of the kinds that exist only in Redis: the settings of their projects.

use std::str::FromStr;
use std::sync::Arc;

use super::kind::{CAPACITY, ERROR_RATE, Kind, KindParameters, size_fields};
use crate::SpecError;
use crate::expire_after::ExpireAfter;
use crate::{Capacity, ErrorRate, Outlook, RedisKind, Seed};

/// Time after which a fingerprint passes again.
pub(crate) const EXPIRE_AFTER: &str = "filter.expire_after";

/// Value of [`EXPIRE_AFTER`] in a filter whose fingerprints do not expire.
const NEVER: &str = "never";

/// Returns the field with the time after which a fingerprint passes again.
pub(crate) fn expire_after_field(time: Option<ExpireAfter>) -> (&'static str, String) {
    (EXPIRE_AFTER, time.map_or(NEVER.to_owned(), |time| time.to_string()))
}

/// Filter in Redis, or the reason why no filter can have these settings.
type Made = Result<Arc<dyn RedisKind>, SpecError>;

/// Parameters of a filter of a kind that exists only in Redis.
#[derive(Debug)]
struct InRedis {
    fields: Vec<(&'static str, String)>,
    filter: Made,
}

impl KindParameters for InRedis {
    fn fields(&self) -> Vec<(&'static str, String)> {
        self.fields.clone()
    }

    fn outlook(&self, keys: u64) -> Result<Outlook, SpecError> {
        Ok(self.filter.clone()?.outlook(keys))
    }

    fn in_redis(&self, _: Seed) -> Option<Made> {
        Some(self.filter.clone())
    }
}

/// Values that the configuration has for a filter, or that are recorded with it.
pub(crate) struct Values<'a>(pub(crate) &'a dyn Fn(&'static str) -> Option<String>);

impl Values<'_> {
    /// Reads one required parameter.
    pub(crate) fn part<T: FromStr>(&self, name: &'static str) -> Result<T, SpecError> {
        let found = (self.0)(name);
        let read = found.as_deref().and_then(|text| text.parse().ok());
        read.ok_or_else(|| SpecError::unreadable(name, found.as_deref()))
    }

    /// Reads one optional parameter.
    pub(crate) fn open<T: FromStr>(&self, name: &'static str) -> Result<Option<T>, SpecError> {
        (self.0)(name).map(|_| self.part(name)).transpose()
    }

    /// Reads the time after which a fingerprint passes again, if fingerprints expire.
    pub(crate) fn expire_after(&self) -> Result<Option<ExpireAfter>, SpecError> {
        let is_never = (self.0)(EXPIRE_AFTER).is_some_and(|text| text == NEVER);
        if is_never { Ok(None) } else { self.open(EXPIRE_AFTER) }
    }

    /// Reads a capacity and an error rate within urlseen's own limits.
    pub(crate) fn size(&self) -> Result<(Capacity, ErrorRate), SpecError> {
        let (capacity, error_rate) = (self.part(CAPACITY)?, self.part(ERROR_RATE)?);
        Ok((Capacity::new(capacity)?, ErrorRate::new(error_rate)?))
    }

    /// Reads a capacity and an error rate. `make` checks the limits of the kind's project.
    pub(crate) fn by_size<F: RedisKind + 'static>(
        &self,
        make: impl FnOnce(u64, f64) -> Result<F, SpecError>,
    ) -> Result<Arc<dyn KindParameters>, SpecError> {
        let (capacity, error_rate) = (self.part(CAPACITY)?, self.part(ERROR_RATE)?);
        let fields = size_fields(capacity, error_rate).into();
        Ok(Self::in_redis(fields, make(capacity, error_rate)))
    }

    /// Reads a whole number for each configuration key of the kind.
    pub(crate) fn by_numbers<F: RedisKind + 'static, const KEYS: usize>(
        &self,
        kind: Kind,
        make: impl FnOnce([u32; KEYS]) -> Result<F, SpecError>,
    ) -> Result<Arc<dyn KindParameters>, SpecError> {
        let (mut numbers, mut fields) = ([0; KEYS], Vec::new());
        for (number, &key) in numbers.iter_mut().zip(kind.keys()) {
            *number = self.part(key)?;
            fields.push((key, number.to_string()));
        }
        Ok(Self::in_redis(fields, make(numbers)))
    }

    /// Makes the parameters of a filter with these fields.
    pub(crate) fn in_redis<F: RedisKind + 'static>(
        fields: Vec<(&'static str, String)>,
        filter: Result<F, SpecError>,
    ) -> Arc<dyn KindParameters> {
        let filter = filter.map(|filter| Arc::new(filter) as Arc<dyn RedisKind>);
        Arc::new(InRedis { fields, filter })
    }
}
