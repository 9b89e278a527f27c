//! Figures of a filter, for each kind: bits, hashes, memory and error rates.

use std::io::{self, Write};

use serde::Serialize;
use urlseen_filter::{Capacity, ErrorRate, Geometry, Kind, Outlook, Parameters, SpecError};

use super::target::{PlanError, Planned, Target};
use super::{grouped, lost_text, rate_text, size, variants};

/// Fill levels at which the error rate of each kind is shown, in percent of capacity.
const PERCENT: [u64; 4] = [50, 100, 150, 200];

/// Fill levels that the table shows. It has no room for all of them.
const TABLE_PERCENT: [u64; 3] = [50, 100, 200];

/// Fill levels at which the error rate of urlseen's own kind is shown, in percent of capacity.
const GROWTH_PERCENT: [u64; 7] = [50, 80, 100, 125, 150, 200, 300];

/// Figures of all kinds for one capacity, and one error rate or number of lost URLs.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    capacity: u64,
    /// Error rate of urlseen's own kind.
    error_rate: f64,
    /// Largest permitted number of lost URLs, if it sets the error rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_urls: Option<f64>,
    optimum: Optimum,
    kinds: Vec<Row>,
    growth: Vec<RateRow>,
}

/// Theoretical optimum: a plain Bloom filter without blocks.
#[derive(Debug, Serialize)]
struct Optimum {
    k: f64,
    bits_per_key: f64,
    bytes: f64,
}

/// Figures of a kind, or of one variant of it.
#[derive(Debug, Serialize)]
struct Row {
    kind: &'static str,
    /// Name of the variant, if the kind can divide its bits in several ways.
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
    /// True for the default kind, and if a filter of this kind is built in this variant.
    chosen: bool,
    #[serde(flatten)]
    filled: Option<Filled>,
    /// Reason why the kind cannot have this capacity and error rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

/// Figures of a full filter: it holds as many keys as its capacity.
#[derive(Debug, Serialize)]
struct Filled {
    strings: usize,
    k: u32,
    bits: u64,
    /// Minimum and maximum of the memory, in bytes.
    bytes: [u64; 2],
    bits_per_key: f64,
    /// The requested error rate, for kinds that accept one.
    asked: Option<f64>,
    error_rates: Vec<RateRow>,
    /// Expected number of URLs that the whole crawl loses.
    lost_urls: f64,
    /// True if the filter never reports an unseen fingerprint as seen.
    #[serde(skip)]
    is_exact: bool,
    /// For comparison, the error rate of a full filter of urlseen's own kind with as many bits as
    /// this filter. The field is never below the smallest error rate that urlseen accepts. `None`
    /// if urlseen's own kind needs more bits.
    native_error_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// Error rate at some number of keys.
#[derive(Debug, Serialize)]
struct RateRow {
    percent: u64,
    keys: u64,
    error_rate: f64,
}

impl RateRow {
    fn of(parameters: &Parameters, capacity: u64, percent: u64) -> Result<Self, SpecError> {
        let keys = (capacity * percent).div_ceil(100);
        Ok(Self { percent, keys, error_rate: parameters.outlook(keys)?.error_rate })
    }
}

impl Figures {
    /// Computes the figures of all kinds.
    ///
    /// # Errors
    /// No filter of urlseen's own kind exists for these values.
    pub(crate) fn of(capacity: Capacity, target: Target) -> Result<Self, PlanError> {
        let keys = capacity.get();
        let Planned { parameters: own, error_rate } = target.plan(Kind::NATIVE, capacity)?;
        let rate = error_rate.get();
        let bits_per_key = error_rate.optimal_bits_per_key();
        let bytes = bits_per_key * keys as f64 / 8.0;
        let growth = GROWTH_PERCENT.iter().map(|&percent| RateRow::of(&own, keys, percent));
        Ok(Self {
            capacity: keys,
            error_rate: rate,
            lost_urls: match target {
                Target::ErrorRate(_) => None,
                Target::Lost(most) => Some(most),
            },
            optimum: Optimum { k: -rate.log2(), bits_per_key, bytes },
            kinds: Kind::all().flat_map(|kind| rows(kind, capacity, target)).collect(),
            growth: growth.collect::<Result<_, _>>()?,
        })
    }

    /// Prints the figures as tables.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { optimum: Optimum { k, bits_per_key, bytes }, kinds, growth, .. } = self;
        let (keys, error_rate) = (grouped(self.capacity), self.error_rate);
        match self.lost_urls {
            None => writeln!(out, "{keys} keys at error rate {error_rate:e}\n")?,
            Some(most) => writeln!(
                out,
                "{keys} keys, at most {most} lost in the whole crawl; native at error rate \
                 {error_rate:e}\n"
            )?,
        }
        write!(out, "{:<24} {:>3} {:>8} {:>10}", "kind", "k", "bits/key", "memory")?;
        for percent in TABLE_PERCENT {
            write!(out, " {:>8}", format!("{percent} %"))?;
        }
        writeln!(out, " {:>8}", "lost")?;
        for row in kinds {
            row.print_rates(out)?;
        }
        let memory = size(*bytes);
        writeln!(out, "{:<24} {k:>3.0} {bits_per_key:>8.1} {memory:>10}", "textbook optimum")?;
        writeln!(
            out,
            "error rates are computed for filters that hold these percentages of {keys} keys\n\
             lost: expected number of the {keys} URLs that the whole crawl loses"
        )?;
        writeln!(out, "\n{:>11} {:>22} {:>11}", "of capacity", "keys", "error rate")?;
        for RateRow { percent, keys, error_rate } in growth {
            let rate = format!("{error_rate:.2e}");
            writeln!(out, "{:>11} {:>22} {rate:>11}", format!("{percent} %"), grouped(*keys))?;
        }
        self.print_bits(out)
    }

    /// Prints the bits of each kind, and the error rate of urlseen's own kind with the same number
    /// of bits.
    fn print_bits(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "\n{:<24} {:>7} {:>17} {:>19} {:>9} {:>17}",
            "filter", "strings", "bits written to", "memory", "asked for", "native, same bits"
        )?;
        let filters = || self.kinds.iter().filter(|row| row.variant.is_none());
        let filled = || filters().filter_map(|row| Some((row.kind, row.filled.as_ref()?)));
        for (kind, filled) in filled() {
            filled.print_bits(kind, out)?;
        }
        for (kind, Filled { warning, .. }) in filled() {
            if let Some(warning) = warning {
                writeln!(out, "\n{kind}: {warning}")?;
            }
        }
        writeln!(
            out,
            "\nCauses of the error rates, and counted error rates: docs/design/layouts.md"
        )
    }
}

/// Returns the rows of a kind, one for each of its variants.
fn rows(kind: Kind, capacity: Capacity, target: Target) -> Vec<Row> {
    let keys = capacity.get();
    let row = |variant, chosen, found: Result<Filled, PlanError>| {
        let refused = found.as_ref().err().map(ToString::to_string);
        Row { kind: kind.short(), variant, chosen, filled: found.ok(), refused }
    };
    let made = match target.plan(kind, capacity) {
        Ok(planned) => planned.parameters,
        Err(error) => return vec![row(None, false, Err(error))],
    };
    let rows = variants(&made).into_iter().enumerate().map(|(index, parameters)| {
        let variant = parameters.variant();
        let is_default = kind == Kind::TWO_CHOICE;
        let chosen = is_default || variant.is_some() && variant == made.variant();
        let make =
            |rate| Ok(variants(&super::parameters(kind, [keys; 2], rate, None)?).remove(index));
        let planned = target.plan_with(kind, keys, make);
        row(variant, chosen, planned.and_then(|planned| Filled::of(&planned, keys)))
    });
    rows.collect()
}

impl Row {
    fn print_rates(&self, out: &mut impl Write) -> io::Result<()> {
        let name = match &self.variant {
            Some(variant) => format!("{}, {variant}", self.kind),
            None => self.kind.to_owned(),
        };
        let Some(filled) = &self.filled else {
            return writeln!(out, "{name:<24} {}", self.refused.as_deref().unwrap_or_default());
        };
        let Filled { k, bits_per_key, bytes, error_rates, lost_urls, .. } = filled;
        let k = if *k == 0 { String::new() } else { k.to_string() };
        let memory = size(bytes[0] as f64);
        write!(out, "{name:<24} {k:>3} {bits_per_key:>8.1} {memory:>10}")?;
        for RateRow { error_rate, .. } in
            error_rates.iter().filter(|row| TABLE_PERCENT.contains(&row.percent))
        {
            write!(out, " {:>8}", rate_text(*error_rate))?;
        }
        write!(out, " {:>8}", lost_text(*lost_urls))?;
        let mark = match self.chosen {
            true if self.variant.is_none() => "  <- the default kind",
            true => "  <- this division is chosen",
            false => "",
        };
        writeln!(out, "{mark}")
    }
}

impl Filled {
    fn of(planned: &Planned, capacity: u64) -> Result<Self, PlanError> {
        let Planned { parameters, error_rate } = planned;
        let full = parameters.outlook(capacity)?;
        let Outlook { strings, bits, hashes: k, bytes, warning, .. } = full;
        let rates = PERCENT.iter().map(|&percent| RateRow::of(parameters, capacity, percent));
        // A set of keys has no bits.
        let as_many = if bits == 0 { bytes[0] } else { bits / 8 };
        let native = Geometry::fitting(as_many, capacity);
        Ok(Self {
            strings,
            k,
            bits,
            bytes,
            bits_per_key: bytes[0] as f64 * 8.0 / capacity as f64,
            asked: parameters
                .kind()
                .keys()
                .contains(&"filter.error_rate")
                .then(|| error_rate.get()),
            error_rates: rates.collect::<Result<_, _>>()?,
            lost_urls: parameters.lost_urls(capacity)?,
            is_exact: parameters.is_exact(),
            native_error_rate: native.map(|(_, rate)| rate.max(ErrorRate::MIN)),
            warning,
        })
    }

    fn print_bits(&self, kind: &str, out: &mut impl Write) -> io::Result<()> {
        let [least, most] = self.bytes.map(|bytes| size(bytes as f64));
        let memory = if least == most { least } else { format!("{least} - {most}") };
        let strings = match self.bits {
            0 if self.is_exact => format!("{:<25}", "  a set, exact"),
            0 => format!("{:<25}", "  a set of short hashes"),
            bits => format!("{:>7} {:>17}", self.strings, grouped(bits)),
        };
        let asked = self.asked.map_or_else(|| "-".to_owned(), |rate| format!("{rate:e}"));
        let native = match self.native_error_rate {
            None => "-".to_owned(),
            Some(native) if native <= ErrorRate::MIN => format!("< {:e}", ErrorRate::MIN),
            Some(native) => rate_text(native),
        };
        writeln!(out, "{kind:<24} {strings} {memory:>19} {asked:>9} {native:>17}")
    }
}
