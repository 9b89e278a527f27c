//! Sizing: the memory that a filter takes for a capacity and an error rate.

mod figures;
mod steady;
mod target;

use urlseen_filter::expire_after::ExpireAfter;
use urlseen_filter::{Kind, Parameters, SpecError, number};

pub(crate) use figures::Figures;
pub(crate) use steady::Steady;
pub(crate) use target::{PlanError, Target, amount};

/// Returns the parameters of a filter of this kind, which begins with a capacity and keeps its
/// error rate up to `grow_to`. All parameters that are not arguments have the default values of the
/// project from which the kind comes.
fn parameters(
    kind: Kind,
    [capacity, grow_to]: [u64; 2],
    error_rate: f64,
    expire_after: Option<ExpireAfter>,
) -> Result<Parameters, SpecError> {
    kind.read(&|name| {
        let given = match name {
            "filter.capacity" => Some(capacity.to_string()),
            "filter.grow_to" => Some(grow_to.to_string()),
            "filter.error_rate" => Some(error_rate.to_string()),
            "filter.expire_after" => expire_after.map(|time| time.to_string()),
            _ => None,
        };
        given.or_else(|| kind.usual(name).map(str::to_owned))
    })
}

/// Returns the parameters of all variants of a filter, with the same capacity. If the kind has no
/// variants, returns only `made` itself.
fn variants(made: &Parameters) -> Vec<Parameters> {
    let variants = made.variants();
    if variants.is_empty() { vec![made.clone()] } else { variants }
}

/// Error rates below this value are shown as `<1e-99`.
const NEGLIGIBLE: f64 = 1e-99;

/// Returns a number with commas between groups of three digits, such as `1,000,000`.
pub(crate) fn grouped(number: u64) -> String {
    number::grouped(number).replace('_', ",")
}

/// Returns an amount of memory as text, such as `1.5 GiB`. The unit is the largest binary unit in
/// which the number is at least 1.
pub(crate) fn size(bytes: f64) -> String {
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].into_iter();
    let (mut number, mut unit) = (bytes, units.next().unwrap_or_default());
    for larger in units {
        if number < 1024.0 {
            break;
        }
        (number, unit) = (number / 1024.0, larger);
    }
    format!("{number:.1} {unit}")
}

/// Returns an error rate as text.
pub(super) fn rate_text(rate: f64) -> String {
    if rate == 0.0 {
        "0".to_owned()
    } else if rate < NEGLIGIBLE {
        format!("<{NEGLIGIBLE:.0e}")
    } else {
        format!("{rate:.2e}")
    }
}

/// Returns an expected number of lost URLs as text, in at most 8 columns.
pub(crate) fn lost_text(urls: f64) -> String {
    if urls == 0.0 {
        "0".to_owned()
    } else if !(0.01..999_999.5).contains(&urls) {
        format!("{urls:.1e}")
    } else if urls < 10.0 {
        format!("{urls:.2}")
    } else if urls < 100.0 {
        format!("{urls:.1}")
    } else {
        grouped(number::whole(urls.round()))
    }
}
