//! Integration tests: the built program with real servers, and rules for the source files.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails at once")]
#![allow(clippy::format_collect, reason = "the text of a test need not be made fast")]

mod admin;
mod archive;
mod connect;
mod corpus;
mod daemon;
mod fingerprint;
mod importing;
mod imports;
mod library;
mod pages;
mod partitions;
mod pickles;
mod pipe;
mod preflight;
mod redisbloom;
mod rejects;
mod releases;
mod replay;
mod serve;
mod start_urls;
mod tidy;
mod transcripts;
mod trouble;
mod union;
mod util;
