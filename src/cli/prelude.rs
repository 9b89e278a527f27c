//! Names that most commands use: their options and output, the configuration, and Redis.

pub(super) use std::io::{self, Write};

pub(super) use anyhow::Context as _;
pub(super) use indicatif::{BinaryBytes, HumanCount};
pub(super) use serde_json::json;

pub(super) use super::Outcome;
pub(super) use super::bar::{Bar, BarAudience};
pub(super) use super::rows::{CRAWL, Rows, answer, done};
pub(super) use super::settings::{Folder, Settings, folder_of};
pub(super) use super::start::{confirmed, connect, each_partition, find, runtime, usage};
pub(super) use super::{migrate, settings, start, status};
pub(super) use crate::admin::printable::{json_line, printable, say, stderr, stdout};
pub(super) use crate::config::{Config, FilterPlace, ItemForm, SourceKind, Sources};
