//! Metrics with their labels and values, and their text in the two formats that Prometheus reads.

use std::fmt::{Display, Write as _};

use axum::http::{HeaderMap, header};
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
    /// Returns the type of the metric, and what its samples have behind its name.
    fn kind(self) -> (&'static str, &'static str) {
        match self {
            Self::Counter(_) | Self::Seconds(_) => ("counter", "_total"),
            Self::Gauge(_) | Self::Real(_) => ("gauge", ""),
            Self::Histogram(_) => ("histogram", ""),
            Self::Info => ("info", "_info"),
        }
    }

    /// Writes the samples of a value.
    fn write(self, name: &str, labels: &[Label], text: &mut String) {
        match self {
            Self::Counter(value) | Self::Gauge(value) => sample(name, labels, value, text),
            Self::Seconds(value) | Self::Real(value) => {
                sample(name, labels, decimal(value), text);
            }
            Self::Info => sample(name, labels, 1, text),
            Self::Histogram(histogram) => {
                let sum = histogram.sum().as_secs_f64();
                sample(&format!("{name}_sum"), labels, decimal(sum), text);
                sample(&format!("{name}_count"), labels, histogram.count(), text);
                let mut up_to = 0;
                for (bound, count) in histogram.buckets() {
                    up_to += count;
                    let is_last = bound == f64::INFINITY;
                    let le = if is_last { "+Inf".to_owned() } else { decimal(bound) };
                    let labels = [&[("le", le)], labels].concat();
                    sample(&format!("{name}_bucket"), &labels, up_to, text);
                }
            }
        }
    }
}

/// Formats a number that is not an integer. Only a very small or large one has an exponent.
fn decimal(value: f64) -> String {
    let is_usual = value == 0.0 || (1e-6..1e21).contains(&value.abs());
    let end = if value.fract() == 0.0 { ".0" } else { "" };
    if is_usual { format!("{value}{end}") } else { format!("{value:e}") }
}

/// Writes one line: the value of a metric with these labels.
fn sample(name: &str, labels: &[Label], value: impl Display, text: &mut String) {
    text.push_str(name);
    for (place, (label, value)) in labels.iter().enumerate() {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let before = if place == 0 { '{' } else { ',' };
        text.extend([&format!("{before}{label}=\""), &value, "\""]);
    }
    let end = if labels.is_empty() { "" } else { "}" };
    let _ = writeln!(text, "{end} {value}");
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

/// Prefix of the names of all metrics, except those of the process.
const PREFIX: &str = "urlseen_";

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

    /// Writes the metrics of the process and those of urlseen. The text format has no type `info`
    /// and no end mark, and describes a counter by the name of its samples.
    pub(super) fn write(self, process: &Families, own: &Families) -> String {
        let mut text = String::new();
        let families = process.all.iter().map(|it| ("", it));
        for (prefix, family) in families.chain(own.all.iter().map(|it| (PREFIX, it))) {
            let Family { name, help, values } = family;
            let (kind, suffix) = values[0].1.kind();
            let samples = format!("{prefix}{name}{suffix}");
            let described = match self {
                Self::OpenMetrics => &samples[..samples.len() - suffix.len()],
                Self::Text => &samples,
            };
            let is_info = kind == "info" && self == Self::Text;
            let kind = if is_info { "gauge" } else { kind };
            let _ = writeln!(text, "# HELP {described} {help}\n# TYPE {described} {kind}");
            for (labels, value) in values {
                value.write(&samples, labels, &mut text);
            }
        }
        if self == Self::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }
}

/// Returns true if a parameter of a media range is the weight 0, with which a client refuses the
/// media type.
fn is_refusal(parameter: &str) -> bool {
    let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
    weight.and_then(|weight| weight.parse::<f32>().ok()) == Some(0.0)
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
    fn numbers_have_a_point_or_an_exponent() {
        let numbers = [0.0, 12.0, 0.25, 1e-6, 1.5e-7, 1e20, 1e21].map(decimal);
        let written =
            ["0.0", "12.0", "0.25", "0.000001", "1.5e-7", &format!("1{:020}.0", 0), "1e21"];
        assert_eq!(numbers, written);
    }

    #[test]
    fn the_text_format_describes_samples_by_their_names() {
        let mut families = Families::default();
        families.add("a", "Is a", Vec::new(), Value::Counter(1));
        families.add("b", "B", vec![("c", "\\ \"\n# EOF".to_owned())], Value::Info);
        families.add("d", "D", vec![("e", String::new()), ("f", String::new())], Value::Real(0.5));
        let open = "# HELP urlseen_a Is a\n# TYPE urlseen_a counter\nurlseen_a_total 1\n\
                    # HELP urlseen_b B\n# TYPE urlseen_b info\n\
                    urlseen_b_info{c=\"\\\\ \\\"\\n# EOF\"} 1\n\
                    # HELP urlseen_d D\n# TYPE urlseen_d gauge\nurlseen_d{e=\"\",f=\"\"} 0.5\n";
        let text = open.replace("HELP urlseen_a", "HELP urlseen_a_total");
        let text = text.replace("TYPE urlseen_a", "TYPE urlseen_a_total");
        let text = text.replace("HELP urlseen_b", "HELP urlseen_b_info");
        let text = text.replace("TYPE urlseen_b info", "TYPE urlseen_b_info gauge");
        let none = Families::default();
        assert_eq!(Format::OpenMetrics.write(&none, &families), format!("{open}# EOF\n"));
        assert_eq!(Format::Text.write(&none, &families), text);
    }
}
