//! Metrics with their labels and values, and their text in the two formats that Prometheus reads.

use std::fmt::{self, Write as _};

use axum::http::{HeaderMap, header};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use urlseen_filter::histogram::Histogram;

/// Name and value of a label.
type Label = (&'static str, String);

/// Metrics in the order in which they were added. In the text, all values of a metric follow its
/// description.
#[derive(Debug, Default)]
pub(super) struct Families {
    all: Vec<Family>,
    /// Labels of all values that are added next.
    pub(super) labels: Vec<Label>,
}

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
    pub(super) fn counter(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.add(name, help, Vec::new(), Value::Counter(value));
    }

    pub(super) fn gauge(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.add(name, help, Vec::new(), Value::Gauge(value));
    }

    /// Adds a gauge that is not a whole number.
    pub(super) fn real(&mut self, name: &'static str, help: &'static str, value: f64) {
        self.add(name, help, Vec::new(), Value::Real(value));
    }

    /// Adds one value for each value of a label.
    pub(super) fn family<'a>(
        &mut self,
        name: &'static str,
        help: &'static str,
        label: &'static str,
        values: impl IntoIterator<Item = (&'a str, Value)>,
    ) {
        for (of, value) in values {
            self.add(name, help, vec![(label, of.to_owned())], value);
        }
    }

    /// Adds a value to the metric of this name.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        help: &'static str,
        mut labels: Vec<Label>,
        value: Value,
    ) {
        labels.extend_from_slice(&self.labels);
        let families = &mut self.all;
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
        for Family { name, help, values } in &self.all {
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

/// Prefix of the names of all metrics, except those of the process.
const PREFIX: &str = "urlseen";

/// Media type of `OpenMetrics`.
const OPEN_METRICS: &str = "application/openmetrics-text";

/// Text format of the metrics, which a client selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::admin) enum Format {
    /// `OpenMetrics` 1.0, which Prometheus asks for.
    OpenMetrics,
    /// Prometheus text format 0.0.4.
    Text,
}

impl Format {
    /// Chooses the format that a client accepts: `OpenMetrics` if the client names it, otherwise
    /// the Prometheus text format, which every client reads.
    pub(in crate::admin) fn accepted(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::ACCEPT).iter();
        let mut ranges =
            values.filter_map(|value| value.to_str().ok()).flat_map(|it| it.split(','));
        let names_it = ranges.any(|range| {
            let mut parts = range.split(';').map(str::trim);
            parts.next().is_some_and(|media| media.eq_ignore_ascii_case(OPEN_METRICS))
                && !parts.any(is_refusal)
        });
        if names_it { Self::OpenMetrics } else { Self::Text }
    }

    /// Returns the content type of the text.
    pub(in crate::admin) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Writes the metrics of the process and those of urlseen.
    pub(super) fn write(self, process: Families, own: Families) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process));
        registry.sub_registry_with_prefix(PREFIX).register_collector(Box::new(own));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        match self {
            Self::OpenMetrics => Ok(text),
            Self::Text => to_text(&text),
        }
    }
}

/// Returns true if a parameter of a media range is the weight 0, with which a client refuses the
/// media type.
fn is_refusal(parameter: &str) -> bool {
    let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
    weight.and_then(|weight| weight.parse::<f32>().ok()) == Some(0.0)
}

/// Rewrites `OpenMetrics` as Prometheus text. The samples are the same. The text format has no type
/// `info` and no end mark, and describes a counter by the name of its samples.
fn to_text(open: &str) -> Result<String, fmt::Error> {
    let (mut text, mut help) = (String::with_capacity(open.len()), "");
    for line in open.lines() {
        let described = |prefix| line.strip_prefix(prefix).and_then(|it: &str| it.split_once(' '));
        if let Some((_, said)) = described("# HELP ") {
            help = said;
        } else if let Some((name, kind)) = described("# TYPE ") {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                kind => ("", kind),
            };
            writeln!(text, "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}")?;
        } else if line != "# EOF" {
            writeln!(text, "{line}")?;
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_names_openmetrics_gets_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
                          version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, format) in [
            (prometheus, Format::OpenMetrics),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("text/plain, Application/OpenMetrics-Text ; q=0.1", Format::OpenMetrics),
            ("application/openmetrics-text;q=0, text/plain", Format::Text),
            ("application/openmetrics-text; q=0.000", Format::Text),
            ("text/plain;version=0.0.4", Format::Text),
            ("*/*", Format::Text),
            ("", Format::Text),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]);
            assert_eq!(Format::accepted(&headers), format, "{accept}");
        }
        assert_eq!(Format::accepted(&HeaderMap::new()), Format::Text);
    }

    #[test]
    fn the_text_format_describes_samples_by_their_names() {
        let open = "# HELP a Is \\\\ a.\n# TYPE a counter\na_total 1\n\
                    # HELP b B.\n# TYPE b info\nb_info{c=\"# EOF\"} 1\n\
                    # HELP d D.\n# TYPE d gauge\nd 0.5\n# EOF\n";
        let text = "# HELP a_total Is \\\\ a.\n# TYPE a_total counter\na_total 1\n\
                    # HELP b_info B.\n# TYPE b_info gauge\nb_info{c=\"# EOF\"} 1\n\
                    # HELP d D.\n# TYPE d gauge\nd 0.5\n";
        assert_eq!(to_text(open).unwrap(), text);
    }
}
