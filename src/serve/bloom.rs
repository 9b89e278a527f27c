//! Options of RedisBloom's commands. The options have no effect, because the configuration defines
//! the filter. If RedisBloom would refuse an option, the server refuses it with the same message.

use std::str::FromStr;

use super::reply::{Reply, Version, wrong_arity};
use urlseen_filter::Fill;

/// Bytes that RedisBloom adds to the size of the bits when it reports the size of a filter: first
/// the number for the filter, then the number for each layer.
const OVERHEAD: [u64; 2] = [32, 64];

/// Field of `BF.INFO`: its word in the command, its name in the reply, and a function that computes
/// its value from the fill of the filter.
pub(super) type Field = (&'static str, &'static str, fn(&Fill) -> Reply);

/// All fields of `BF.INFO`, in the order of the reply.
const FIELDS: [Field; 5] = [
    ("capacity", "Capacity", |fill| Reply::count(fill.capacity)),
    ("size", "Size", size),
    ("filters", "Number of filters", |fill| Reply::count(fill.layers.max(1) as u64)),
    ("items", "Number of items inserted", |fill| Reply::count(fill.keys)),
    ("expansion", "Expansion rate", |fill| match fill.expansion {
        0 => Reply::Null,
        expansion => Reply::count(expansion.into()),
    }),
];

/// Returns the memory of the filter, as RedisBloom counts it.
fn size(fill: &Fill) -> Reply {
    let [filter, layer] = OVERHEAD;
    let overhead = if fill.layers == 0 { 0 } else { filter + layer * fill.layers as u64 };
    Reply::count(overhead + fill.bytes)
}

/// Builds the reply to `BF.INFO` for one field or all.
pub(super) fn info(field: Option<Field>, fill: &Fill, version: Version) -> Reply {
    let entry = |(_, name, value): Field| (Reply::Simple(name), value(fill));
    match field {
        // As in RedisBloom, the reply is the value without the name.
        Some((.., value)) if version == Version::Resp2 => Reply::Array(vec![value(fill)]),
        Some(field) => Reply::Map(vec![entry(field)]),
        None => Reply::Map(FIELDS.map(entry).into()),
    }
}

/// Reads the optional field after the key of `BF.INFO`.
pub(super) fn field(words: &[&[u8]]) -> Result<Option<Field>, Reply> {
    let [word] = words else {
        return if words.is_empty() { Ok(None) } else { Err(wrong_arity("bf.info")) };
    };
    let named = FIELDS.into_iter().find(|(name, ..)| word.eq_ignore_ascii_case(name.as_bytes()));
    named.map(Some).ok_or_else(|| Reply::error("Invalid information value"))
}

/// Checks the options after the key of `BF.RESERVE`.
pub(super) fn reserve(words: &[&[u8]]) -> Result<(), Reply> {
    let [rate, capacity, options @ ..] = words else { return Err(wrong_arity("bf.reserve")) };
    if options.len() > 3 {
        return Err(wrong_arity("bf.reserve"));
    }
    error_rate(rate)?;
    self::capacity(capacity)?;
    // RedisBloom ignores unknown options here.
    let place = |name: &[u8]| options.iter().position(|option| option.eq_ignore_ascii_case(name));
    let Some(place_of_expansion) = place(b"expansion") else { return Ok(()) };
    let value = options.get(place_of_expansion + 1);
    expansion(value.ok_or_else(|| Reply::error("ERR no expansion"))?)?;
    if place(b"nonscaling").is_some() {
        return Err(Reply::error("Nonscaling filters cannot expand"));
    }
    Ok(())
}

/// Reads the options after the key of `BF.INSERT`, and returns the members.
pub(super) fn insert<'a>(words: &[&'a [u8]]) -> Result<Vec<&'a [u8]>, Reply> {
    let mut words = words.iter();
    while let Some(option) = words.next() {
        let is = |name: &str| option.eq_ignore_ascii_case(name.as_bytes());
        let mut value = || words.next().ok_or_else(|| wrong_arity("bf.insert"));
        if is("items") {
            let items: Vec<&[u8]> = words.copied().collect();
            return if items.is_empty() { Err(wrong_arity("bf.insert")) } else { Ok(items) };
        } else if is("error") {
            error_rate(value()?)?;
        } else if is("capacity") {
            capacity(value()?)?;
        } else if is("expansion") {
            expansion(value()?)?;
        } else if !is("nocreate") && !is("nonscaling") {
            return Err(Reply::error("ERR unknown argument received"));
        }
    }
    Err(wrong_arity("bf.insert"))
}

fn error_rate(word: &[u8]) -> Result<(), Reply> {
    match number::<f64>(word) {
        None => Err(Reply::error("ERR bad error rate")),
        Some(rate) if rate > 0.0 && rate < 1.0 => Ok(()),
        Some(_) => Err(Reply::error("ERR (0 < error rate range < 1) ")),
    }
}

fn capacity(word: &[u8]) -> Result<(), Reply> {
    positive(word, "ERR bad capacity", "ERR (capacity should be larger than 0)")
}

fn expansion(word: &[u8]) -> Result<(), Reply> {
    positive(word, "ERR bad expansion", "ERR expansion should be greater or equal to 1")
}

/// Checks that a word is an integer of at least 1. `no_number` and `too_small` are the error
/// replies.
fn positive(word: &[u8], no_number: &str, too_small: &str) -> Result<(), Reply> {
    // Redis's integers have no sign `+` and no leading zero.
    match number::<i64>(word).filter(|number| number.to_string().as_bytes() == word) {
        None => Err(Reply::error(no_number)),
        Some(1..) => Ok(()),
        Some(_) => Err(Reply::error(too_small)),
    }
}

fn number<T: FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}
