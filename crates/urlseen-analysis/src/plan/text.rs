//! Numbers as text, for tables.

use urlseen_core::filter::number;

/// Error rates below this value are shown as `<1e-99`.
const NEGLIGIBLE: f64 = 1e-99;

/// Returns a number with commas between groups of three digits, such as `1,000,000`.
pub fn grouped(number: u64) -> String {
    number::grouped(number).replace('_', ",")
}

/// Returns an amount of memory as text, such as `1.5 GiB`. The unit is the largest binary unit in
/// which the number is at least 1.
pub fn size(bytes: f64) -> String {
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
pub fn lost_text(urls: f64) -> String {
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
