//! Integration tests: the built binary against real servers, and the rules of the sources.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails right there")]
#![allow(clippy::format_collect, reason = "the text of a test need not be made fast")]

mod admin;
mod archive;
mod cli;
mod connect;
mod daemon;
mod explain;
mod extensions;
mod fingerprint;
mod harness;
mod importing;
mod imports;
mod layouts;
mod library;
mod links;
mod pages;
mod pickles;
mod pipe;
mod preflight;
mod redisbloom;
mod rejects;
mod replay;
mod serve;
mod start_urls;
mod terminal;
mod tidy;
mod trouble;
mod union;
mod util;
