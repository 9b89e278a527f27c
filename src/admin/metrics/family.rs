//! Metrics with their labels and values.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use urlseen_core::storage::Histogram;

/// Name and value of a label.
pub(super) type Label = (&'static str, String);

/// Metrics in the order in which they were added. In the text, all values of a metric follow its
/// description.
#[derive(Debug, Default)]
pub(super) struct Families(Vec<Family>);

/// A metric, with its values and their labels.
#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    values: Vec<(Vec<Label>, Value)>,
}

/// Value of a metric of some type.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value {
    Counter(u64),
    /// Counter of seconds that is not a whole number.
    Seconds(f64),
    Gauge(u64),
    /// Gauge that is not a whole number.
    Real(f64),
    Histogram(Histogram),
    /// Metric whose labels are the information.
    Info,
}

impl Value {
    fn kind(self) -> MetricType {
        match self {
            Self::Counter(_) | Self::Seconds(_) => MetricType::Counter,
            Self::Gauge(_) | Self::Real(_) => MetricType::Gauge,
            Self::Histogram(_) => MetricType::Histogram,
            Self::Info => MetricType::Info,
        }
    }

    fn encode(self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Counter(value) => ConstCounter::new(value).encode(encoder),
            Self::Seconds(value) => ConstCounter::new(value).encode(encoder),
            Self::Gauge(value) => ConstGauge::new(value).encode(encoder),
            Self::Real(value) => ConstGauge::new(value).encode(encoder),
            Self::Histogram(histogram) => {
                let (sum, count) = (histogram.sum().as_secs_f64(), histogram.count());
                let buckets = histogram.buckets();
                encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
            }
            Self::Info => Ok(()),
        }
    }
}

impl Families {
    /// Adds a value to the metric of this name.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: Vec<Label>,
        value: Value,
    ) {
        let Self(families) = self;
        let known = families.iter().position(|family| family.name == name);
        let known = known.unwrap_or_else(|| {
            families.push(Family { name, help, values: Vec::new() });
            families.len() - 1
        });
        families[known].values.push((labels, value));
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Family { name, help, values } in &self.0 {
            let kind = values.first().map_or(MetricType::Unknown, |(_, value)| value.kind());
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            if let [(labels, value)] = &values[..]
                && labels.is_empty()
            {
                value.encode(family)?;
                continue;
            }
            for (labels, value) in values {
                match value {
                    Value::Info => family.encode_info(labels)?,
                    value => value.encode(family.encode_family(labels)?)?,
                }
            }
        }
        Ok(())
    }
}
