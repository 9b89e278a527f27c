//! Names that most commands use: their options and output, the configuration, the folder, Redis,
//! and the filter.

pub(super) use std::io::{self, Write};
pub(super) use std::path::{Path, PathBuf};
pub(super) use std::sync::Arc;
pub(super) use std::time::{Duration, Instant, SystemTime};

pub(super) use anyhow::Context as _;
pub(super) use indicatif::{BinaryBytes, HumanCount};
pub(super) use serde_json::json;
pub(super) use urlseen_engine::engine::Threads;
pub(super) use urlseen_engine::engine::store::Local;
pub(super) use urlseen_engine::item::Options;
pub(super) use urlseen_filter::id::RandomId;
pub(super) use urlseen_filter::{FilterSpec, Parameters, Seed, ShardId};
pub(super) use urlseen_fingerprint::{Fingerprint, FingerprintSpec};
pub(super) use urlseen_redis::filter::opening::{self, Opened, Wanted};
pub(super) use urlseen_redis::link::Link;
pub(super) use urlseen_storage::{AtRest, Head, Header, StorageSpec};

pub(super) use super::Outcome;
pub(super) use super::bar::{Bar, BarAudience};
pub(super) use super::settings::{Folder, Settings, folder_of};
pub(super) use super::start::{
    confirmed, connect, each_partition, find, refuse_if, runtime, usage,
};
pub(super) use super::table::{CRAWL, Rows, answer, done};
pub(super) use super::{migrate, settings, start, status};
pub(super) use crate::admin::printable::{json_line, printable, say, stderr, stdout};
pub(super) use crate::admin::{AdminClient, Checked, ClientError};
pub(super) use crate::config::{Config, FilterPlace, ItemForm, SourceKind, Sources};
pub(super) use crate::pipeline::RunError;
pub(super) use crate::report::{Phase, Status};
