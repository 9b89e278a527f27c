//! A filter in Redis: its parameters, the scripts that judge, and opening it.

pub mod definition;
pub mod judge;
#[cfg(feature = "link")]
pub mod opening;
