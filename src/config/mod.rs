//! Configuration. It is read, checked and converted to types before anything starts.
//!
//! ```text
//! defaults < file < environment < --set      later layers override earlier ones
//! ```
//!
//! The layers become one flat map from key to values with their origins. Then the rule of each key
//! takes its value from the map. All problems therefore show together, each with its origin. The
//! caller passes in the environment and the arguments of the process. There are no warnings: an
//! invalid value is refused.
//!
//! Rules such as `[[same]]` can be only in the file: no environment variable can name a list of
//! tables.
//!
//! `config.toml` at the root of the repository documents every key and holds the defaults.
//!
//! Each file imports only files before it: `problem`, `secret`, `partitions`, `value`,
//! `rule_kinds`, `found`, `keys` (the table of keys), `crawl`, `unknown`, `rules`, `layers`,
//! `check`, `load`, `show`.

mod check;
mod crawl;
mod found;
mod keys;
mod layers;
mod load;
mod partitions;
mod problem;
mod rule_kinds;
mod rules;
mod secret;
mod show;
mod unknown;
mod value;

#[cfg(test)]
pub(crate) use keys::KEYS;
pub use layers::Sources;
pub(crate) use layers::{DEFAULT_FILE, NO_FILE};
pub use partitions::PartitionChoice;
pub use problem::{FilePlace, Problems, ValueOrigin};
pub use rule_kinds::{EffectiveRule, Rules};
pub use secret::Secret;
pub(crate) use show::toml_text;
pub use show::{Effective, EffectiveValue};
pub(crate) use value::{host_and_port, is_address};

pub use keys::{Config, Filter, Fingerprint, Serve, Sink, Source};

pub use urlseen_filter::choice::{
    Emit, End, FilterPlace, Fsync, ItemForm, Level, LogFormat, RejectsFull, Rollback, SourceKind,
    WhenFull, choose,
};

pub use urlseen_filter::Kind;
pub use urlseen_redis::protocol::SinkKind;

#[cfg(test)]
mod tests;
