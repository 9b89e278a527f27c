//! Sizing: what a filter of some capacity and error rate takes, and what a crawl of some rate asks
//! of machine, Redis and network.

mod amount;
mod costs;
mod curve;
mod fits;
mod needs;
mod others;
mod rates;
mod sizing;
mod table;
mod text;

pub use amount::{Amount, Bytes, Share};
pub use costs::{DAEMON_BYTES, REDIS_SET_BYTES};
pub use curve::error_rate_plot;
pub use fits::{FitQuestion, Fits};
pub use needs::{Machine, Needs, Traffic, TrafficItem};
pub use others::{Project, allocated};
pub use sizing::Figures;
pub use text::{grouped, size};
