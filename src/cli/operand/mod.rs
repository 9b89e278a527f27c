//! A filter that commands compare or unite: in a storage folder, a snapshot, a dump or Redis. It is
//! only read, page by page.

mod local;
mod redis;

use std::path::Path;

use indicatif::BinaryBytes;
use urlseen_analysis::{Cells, Form, Ones, Totals};
use urlseen_core::filter::native::Native;
use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::filter::{Geometry, Parameters, SHARDS, ShardId, memory};
use urlseen_core::storage::ShardReader;
use urlseen_engine::config::Config;

use super::settings::Settings;
use super::start::UsageError;
pub(super) use local::redisbloom;
pub(super) use redis::{Address, RedisOperand, exact};

/// How many bytes of a filter are read at once.
const PAGE: u64 = 4 << 20;

/// Stands in the help of what takes filters.
const NOTATION: &str = "\
A filter is a storage folder, a file `snapshot-…` in one, a dump of RedisBloom (urlseen export \
--redisbloom-file), or a key in Redis: its URL, `#`, and the key, as in \
redis://127.0.0.1:6379/0#demo:filter or unix:///run/redis.sock#demo:filter. What a filter in Redis \
was made for is recorded there; for one of another project it is taken from the configuration. \
A password comes from URLSEEN_REDIS_PASSWORD.";

/// Adds the notation of filters to the long help of a command, before its exit statuses.
pub(super) fn grammar(command: clap::Command) -> clap::Command {
    let foot = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    command.after_long_help(format!("{NOTATION}\n\n{foot}"))
}

/// A filter to be read.
pub(super) struct Operand {
    /// Where it is, and what of it is read, for people.
    pub(super) what: String,
    /// What its bits depend on.
    pub(super) form: Form,
    /// What a folder with such a filter records, where it can be in one.
    pub(super) made: Option<Parameters>,
    /// A configuration that it fits.
    pub(super) config: Config,
    pub(super) source: Source,
}

/// Where bits come from.
pub(super) enum Source {
    /// A folder or a snapshot with a native filter, and the shard that was read last.
    Shards(Box<ShardReader>, Option<(ShardId, Vec<u8>)>),
    /// A filter of RedisBloom, in memory, and what of it is to pass once more.
    Whole(Box<Filter>, Vec<u128>),
    /// Strings, or a set.
    Redis(Box<RedisOperand>),
}

/// A part of a filter: a shard, a layer or a string.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) number: u32,
    pub(super) bytes: u64,
    /// Bytes at the begin that tell nothing of how many keys there are.
    pub(super) crowded: u64,
    pub(super) cells: Cells,
}

impl Operand {
    /// Opens what `text` names.
    pub(super) fn open(text: &str, settings: &Settings) -> anyhow::Result<Self> {
        if text.contains("://") {
            return redis::open(text, settings);
        }
        local::open(Path::new(text), settings)
    }

    /// What was forgotten in it and has not passed again: how many.
    pub(super) fn tombstones(&self) -> usize {
        match &self.source {
            Source::Shards(reader, _) => reader.tombstones().len(),
            Source::Whole(_, forgotten) => forgotten.len(),
            Source::Redis(_) => 0,
        }
    }

    /// Its parts.
    pub(super) fn parts(&self) -> Vec<Part> {
        match &self.source {
            Source::Shards(reader, _) => reader.header().native().map_or_else(Vec::new, shards),
            Source::Whole(filter, _) => (0..)
                .zip(filter.layers())
                .map(|(number, layer)| Part {
                    number,
                    bytes: layer.bits() / 8,
                    crowded: 0,
                    cells: Cells::string(layer.reach(), layer.hashes().into()),
                })
                .collect(),
            Source::Redis(redis) => redis.parts(),
        }
    }

    /// Reads bytes of a part. Parts come in order.
    pub(super) fn read(&mut self, part: Part, offset: u64, length: u64) -> anyhow::Result<Vec<u8>> {
        let index = |at: u64| usize::try_from(at).expect("what is in memory is that short");
        let range = || index(offset)..index(offset + length);
        Ok(match &mut self.source {
            Source::Shards(reader, last) => {
                let shard = ShardId::all().nth(part.number as usize).expect("one of 256");
                match last {
                    Some((read, bytes)) if *read == shard => bytes[range()].to_vec(),
                    _ => {
                        let mut bytes = reader.read(shard)?.save(shard, Vec::new()).into_buffer();
                        // Nothing is saved of a shard without bits.
                        bytes.resize(index(part.bytes), 0);
                        last.insert((shard, bytes)).1[range()].to_vec()
                    }
                }
            }
            Source::Whole(filter, _) => {
                filter.layers()[part.number as usize].bytes()[range()].to_vec()
            }
            Source::Redis(redis) => redis.read(part.number, offset, index(length))?,
        })
    }
}

/// The parts of a native filter.
fn shards(native: Native) -> Vec<Part> {
    let geometry = native.geometry();
    let cells = Cells::shard(geometry);
    let bytes = geometry.shard_bits() / 8;
    // 256 of them.
    #[allow(clippy::cast_possible_truncation)]
    let numbers = 0..SHARDS as u32;
    numbers.map(|number| Part { number, bytes, crowded: 0, cells }).collect()
}

/// Refuses two filters whose bits do not mean the same.
pub(super) fn check(a: &Operand, b: &Operand) -> anyhow::Result<()> {
    if a.form.agrees_with(&b.form) {
        return Ok(());
    }
    Err(UsageError(format!(
        "the filters were made for something else each, and their bits mean different things. A is \
         {}, B is {}; what differs is marked:\n{}\nThe seed is drawn for each filter: those that \
         are to be compared are made with the same, filter.seed or --seed",
        a.what,
        b.what,
        a.form.side_by_side(&b.form)
    ))
    .into())
}

/// Reads both, page by page, and counts; `visit` gets each page of both.
pub(super) fn walk(
    a: &mut Operand,
    b: &mut Operand,
    mut progress: impl FnMut(u64, u64),
    mut visit: impl FnMut(Part, u64, &[u8], &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<(Totals, Ones)> {
    let parts = a.parts();
    let all: u64 = parts.iter().map(|part| part.bytes).sum();
    let (mut done, mut totals, mut sum) = (0, Totals::default(), Ones::default());
    for part in parts {
        let mut ones = Ones::default();
        let mut offset = 0;
        while offset < part.bytes {
            let length = PAGE.min(part.bytes - offset);
            let (of_a, of_b) = (a.read(part, offset, length)?, b.read(part, offset, length)?);
            // They are within the first page.
            let crowded = if offset == 0 { part.crowded } else { 0 };
            let from = usize::try_from(crowded.min(length)).unwrap_or(0);
            ones.add(&of_a[from..], &of_b[from..]);
            visit(part, offset, &of_a, &of_b)?;
            offset += length;
            done += length;
            progress(done, all);
        }
        totals.add(&part.cells, ones);
        sum += ones;
    }
    Ok((totals, sum))
}

/// Refuses where there is not so much memory.
pub(super) fn check_memory(bytes: u64, what: &str) -> anyhow::Result<()> {
    match memory::available() {
        Some(available) if available.bytes < bytes => anyhow::bail!(
            "{what} takes {} of memory, and {} are available: filters of RedisBloom are read \
             whole. Give the process more memory",
            BinaryBytes(bytes),
            BinaryBytes(available.bytes)
        ),
        _ => Ok(()),
    }
}

/// What of the form is the same wherever a native filter is.
fn divide(form: &mut Form, geometry: Geometry) {
    let (blocks, bits) = (geometry.blocks().get(), geometry.bits_per_block());
    form.set("k", geometry.k());
    form.set("bits", geometry.bits());
    let division = format!("{blocks} blocks of {} with {bits} bits", geometry.blocks_per_part());
    form.set("the division of the filter's bits", division);
}

/// What the bits of a filter of RedisBloom depend on.
fn layers(form: &mut Form, filter: &Filter) {
    form.set("filter.kind", "redisbloom");
    for (number, layer) in (0..).zip(filter.layers()) {
        let (bits, hashes, capacity) = (layer.bits(), layer.hashes(), layer.capacity());
        form.set(layer_name(number), format!("{bits} bits, {hashes} hashes, for {capacity}"));
    }
}

fn layer_name(number: u32) -> String {
    format!("layer {number}")
}
