//! Names that several commands use: their options and output, the configuration, the folder,
//! Redis, and the filter.

pub(super) use std::collections::{BTreeMap, VecDeque};
pub(super) use std::fmt::Display;
pub(super) use std::fs::{self, File};
pub(super) use std::io::{self, BufWriter, IsTerminal, Write};
pub(super) use std::path::{Path, PathBuf};
pub(super) use std::sync::Arc;
pub(super) use std::time::{Duration, Instant, SystemTime};

pub(super) use crate::analysis::{Input, SampleFit};
pub(super) use anyhow::{Context as _, anyhow, bail};
pub(super) use base64::Engine as _;
pub(super) use base64::engine::general_purpose::STANDARD;
pub(super) use indicatif::{BinaryBytes, HumanCount};
pub(super) use redis::cmd;
pub(super) use serde::Serialize;
pub(super) use serde_json::{Value, json};
pub(super) use tracing::{info, warn};
pub(super) use urlseen_engine::engine::store::{Keeping, Local};
pub(super) use urlseen_engine::engine::{EngineError, Threads, query};
pub(super) use urlseen_engine::flow::driver::{Flow, Progress};
pub(super) use urlseen_engine::flow::import::{ImportFormat, Origin};
pub(super) use urlseen_engine::flow::input;
pub(super) use urlseen_engine::item::{Form, Identity, ItemSummary, Options, Reader, bare_url};
pub(super) use urlseen_filter::expire_after::ExpireAfter;
pub(super) use urlseen_filter::id::RandomId;
pub(super) use urlseen_filter::{Capacity, ErrorRate, FilterSpec, Kind, Parameters};
pub(super) use urlseen_filter::{SHARDS, Seed, ShardId, SpecError};
pub(super) use urlseen_fingerprint::canonical::CanonicalForm;
pub(super) use urlseen_fingerprint::{Algorithm, Fingerprint, FingerprintSpec, Fingerprinter};
pub(super) use urlseen_redis::RedisAddress;
pub(super) use urlseen_redis::error::LinkError;
pub(super) use urlseen_redis::filter::opening::{self, Opened, RedisOpenError, Wanted};
pub(super) use urlseen_redis::link::Link;
pub(super) use urlseen_redis::preflight::preflight;
pub(super) use urlseen_redis::protocol::Leased;
pub(super) use urlseen_storage::{
    AtRest, Folder, Head, Header, LiveFilter as _, Rebase, StorageSpec, Target,
};

pub(super) use super::Outcome;
pub(super) use super::bar::{Bar, BarAudience};
pub(super) use super::moving::NewFolder;
pub(super) use super::records::RecordOptions;
pub(super) use super::settings::{FolderOptions, Settings, daemon_of, folder_of, word};
pub(super) use super::start::{confirmed, connect, each_crawl, find, refuse_if, runtime, usage};
pub(super) use super::status::span;
pub(super) use super::table::{COMPARED, CRAWL, Rows, SUMMARY, answer, done, filled, paced};
pub(super) use super::{migrate, moving, settings, start, status};
pub(super) use crate::admin::printable::{json_line, printable, say, stderr, stdout};
pub(super) use crate::admin::telemetry::Console;
pub(super) use crate::admin::{AdminClient, Checked, ClientError, ItemText, View};
pub(super) use crate::config::{Config, FilterPlace, ItemForm, NO_FILE, SourceKind, Sources};
pub(super) use crate::pipeline::RunError;
pub(super) use crate::pipeline::shutdown::{self, Stop};
pub(super) use crate::report::{ByRule, Counts, FATES, HeldStatus, Phase, Status, Statuses};
