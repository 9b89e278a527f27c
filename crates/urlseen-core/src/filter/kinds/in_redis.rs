//! Parameters of the kinds that exist only in Redis: the settings of their projects.

use std::sync::Arc;

use super::{CAPACITY, ERROR_RATE, Kind, KindParameters, Parameters, Values, size_fields};
use crate::filter::RedisKind;
use crate::filter::spec::SpecError;

/// Filter in Redis, or the reason why no filter can have these settings.
type Made = Result<Arc<dyn RedisKind>, SpecError>;

/// Parameters of a filter of a kind that exists only in Redis.
#[derive(Debug)]
struct InRedis {
    kind: Kind,
    fields: Vec<(&'static str, String)>,
    filter: Made,
}

impl KindParameters for InRedis {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        self.fields.clone()
    }

    fn in_redis(&self) -> Made {
        self.filter.clone()
    }
}

impl Values<'_> {
    /// Reads a capacity and an error rate. `make` checks the limits of the kind's project.
    pub(super) fn by_size<F: RedisKind + 'static>(
        &self,
        make: impl FnOnce(u64, f64) -> Result<F, SpecError>,
    ) -> Result<Parameters, SpecError> {
        let (capacity, error_rate) = (self.part(CAPACITY)?, self.part(ERROR_RATE)?);
        let fields = size_fields(capacity, error_rate).into();
        Ok(self.in_redis(fields, make(capacity, error_rate)))
    }

    /// Reads a whole number for each configuration key of the kind.
    pub(super) fn by_numbers<F: RedisKind + 'static, const KEYS: usize>(
        &self,
        make: impl FnOnce([u32; KEYS]) -> Result<F, SpecError>,
    ) -> Result<Parameters, SpecError> {
        let (mut numbers, mut fields) = ([0; KEYS], Vec::new());
        for (number, &key) in numbers.iter_mut().zip(self.kind.keys()) {
            *number = self.part(key)?;
            fields.push((key, number.to_string()));
        }
        Ok(self.in_redis(fields, make(numbers)))
    }

    /// Makes the parameters of a filter with these fields.
    pub(super) fn in_redis<F: RedisKind + 'static>(
        &self,
        fields: Vec<(&'static str, String)>,
        filter: Result<F, SpecError>,
    ) -> Parameters {
        let filter = filter.map(|filter| Arc::new(filter) as Arc<dyn RedisKind>);
        Parameters::new(InRedis { kind: self.kind, fields, filter })
    }
}
