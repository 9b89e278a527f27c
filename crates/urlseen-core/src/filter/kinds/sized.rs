//! Parameters of the kinds of other projects: the settings that size their filters.

use std::sync::Arc;

use super::{
    CAPACITY, ERROR_RATE, Kind, KindParameters, Parameters, Values, capacity_field,
    error_rate_field,
};
use crate::filter::RedisKind;
use crate::filter::spec::SpecError;

/// Filter in Redis that settings make, unless they cannot.
pub(super) type Made = Result<Arc<dyn RedisKind>, SpecError>;

/// Keys of a kind that is sized by [`BySize`].
pub(super) const SIZE: &[&str] = &[CAPACITY, ERROR_RATE];

/// Parameters of a kind that takes a capacity and an error rate, within its project's limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct BySize {
    kind: Kind,
    capacity: u64,
    error_rate: f64,
    grows: bool,
    make: fn(u64, f64) -> Made,
}

impl BySize {
    /// Reads the parameters of a filter that `make` makes of its capacity and error rate.
    pub(super) fn read(
        values: &Values<'_>,
        kind: Kind,
        make: fn(u64, f64) -> Made,
    ) -> Result<Self, SpecError> {
        let (capacity, error_rate) = (values.part(CAPACITY)?, values.part(ERROR_RATE)?);
        Ok(Self { kind, capacity, error_rate, grows: false, make })
    }

    /// Makes it a filter that grows past its capacity.
    pub(super) fn growing(self) -> Self {
        Self { grows: true, ..self }
    }
}

impl KindParameters for BySize {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![capacity_field(self.capacity), error_rate_field(self.error_rate)]
    }

    fn grows(&self) -> bool {
        self.grows
    }

    fn in_redis(&self) -> Made {
        (self.make)(self.capacity, self.error_rate)
    }
}

/// Parameters of a kind that takes whole numbers, one for each of its keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByNumbers<const KEYS: usize> {
    kind: Kind,
    numbers: [u32; KEYS],
    make: fn([u32; KEYS]) -> Made,
}

impl<const KEYS: usize> ByNumbers<KEYS> {
    /// Reads the parameters of a filter that `make` makes of the numbers under the kind's keys.
    pub(super) fn read(
        values: &Values<'_>,
        kind: Kind,
        make: fn([u32; KEYS]) -> Made,
    ) -> Result<Self, SpecError> {
        let mut numbers = [0; KEYS];
        for (number, key) in numbers.iter_mut().zip(kind.keys()) {
            *number = values.part(key)?;
        }
        Ok(Self { kind, numbers, make })
    }
}

impl<const KEYS: usize> KindParameters for ByNumbers<KEYS> {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        let keys = self.kind.keys().iter().copied();
        keys.zip(self.numbers.map(|number| number.to_string())).collect()
    }

    fn in_redis(&self) -> Made {
        (self.make)(self.numbers)
    }
}

impl<P: KindParameters + 'static> From<P> for Parameters {
    fn from(parameters: P) -> Self {
        Self::new(parameters)
    }
}
