//! What is remembered of the filter beyond this process.

mod log;

pub use log::{Log, Logged, Volatile};
