//! Sizing: the memory that a filter takes for a capacity and an error rate.

mod amount;
mod figures;
mod fits;
mod steady;
mod target;
mod text;

use urlseen_core::filter::{Kind, Parameters, SpecError};
use urlseen_engine::config::Config;

pub use amount::{Amount, Bytes};
pub use figures::Figures;
pub use fits::{FitQuestion, Fits};
pub use steady::Steady;
pub use target::{PlanError, Target};
pub use text::{grouped, lost_text, size};

/// Maximum memory of a daemon in addition to its filter, in bytes. It is the bound of its buffers,
/// not a measurement.
pub const DAEMON_BYTES: u64 = 67_108_864;

/// Returns the parameters of a filter of this kind, which keeps its error rate up to the capacity.
/// All parameters that are not arguments have default values. The default is that of the project
/// from which the kind comes, or that of urlseen's configuration if the project has none.
fn parameters(
    kind: Kind,
    capacity: u64,
    error_rate: f64,
    bit: Option<u32>,
) -> Result<Parameters, SpecError> {
    kind.read(&|name| {
        let given = match name {
            "filter.capacity" | "filter.grow_to" => Some(capacity.to_string()),
            "filter.error_rate" => Some(error_rate.to_string()),
            "filter.bit" => bit.map(|bit| bit.to_string()),
            _ => None,
        };
        given.or_else(|| usual(kind, name))
    })
}

/// Returns the default value of a parameter: that of the project from which the kind comes, or that
/// of urlseen's configuration if the project has none.
fn usual(kind: Kind, name: &str) -> Option<String> {
    kind.usual(name).map(str::to_owned).or_else(|| Config::default().filter.part(name))
}

/// Returns the parameters of all variants of a filter, with the same capacity. If the kind has no
/// variants, returns only `made` itself.
fn variants(made: &Parameters) -> Vec<Parameters> {
    let variants = made.variants();
    if variants.is_empty() { vec![made.clone()] } else { variants }
}
