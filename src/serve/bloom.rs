//! Options of RedisBloom's commands. They change nothing, because the configuration defines the
//! filter. Options that RedisBloom refuses are refused with its messages.

use super::command::wrong_arity;
use super::reply::Reply;
use urlseen_core::filter::Fill;

/// Bytes that RedisBloom adds to the bits when it reports a filter's size: for the filter, and for
/// each layer.
const OVERHEAD: [u64; 2] = [32, 64];

/// Field in the reply to `BF.INFO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Capacity,
    Size,
    Filters,
    Items,
    Expansion,
}

impl Field {
    /// All fields, in the order of the reply.
    pub(super) const ALL: [Self; 5] =
        [Self::Capacity, Self::Size, Self::Filters, Self::Items, Self::Expansion];

    /// Name of the field in the reply.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Capacity => "Capacity",
            Self::Size => "Size",
            Self::Filters => "Number of filters",
            Self::Items => "Number of items inserted",
            Self::Expansion => "Expansion rate",
        }
    }
}

/// Reads the optional field after the key of `BF.INFO`.
pub(super) fn field(words: &[&[u8]]) -> Result<Option<Field>, Reply> {
    let [word] = words else {
        return if words.is_empty() { Ok(None) } else { Err(wrong_arity("bf.info")) };
    };
    let names = ["capacity", "size", "filters", "items", "expansion"];
    let named =
        names.iter().zip(Field::ALL).find(|(it, _)| word.eq_ignore_ascii_case(it.as_bytes()));
    match named {
        Some((_, field)) => Ok(Some(field)),
        None => Err(Reply::error("Invalid information value")),
    }
}

/// Builds the reply to `BF.INFO` for one field or all.
pub(super) fn info(
    field: Option<Field>,
    fill: Fill,
    expansion: Option<u32>,
) -> Vec<(Reply, Reply)> {
    let value = |field| match field {
        Field::Capacity => Reply::count(fill.capacity),
        Field::Size if fill.layers == 0 => Reply::count(fill.bytes),
        Field::Size => {
            let [filter, layer] = OVERHEAD;
            Reply::count(filter + layer * fill.layers as u64 + fill.bytes)
        }
        Field::Filters => Reply::count(fill.layers.max(1) as u64),
        Field::Items => Reply::count(fill.keys),
        Field::Expansion => expansion.map_or(Reply::Null, |factor| Reply::count(factor.into())),
    };
    let fields = Field::ALL.into_iter().filter(|each| field.is_none_or(|only| only == *each));
    fields.map(|each| (Reply::Simple(each.title()), value(each))).collect()
}

/// Checks the options after the key of `BF.RESERVE`.
pub(super) fn reserve(words: &[&[u8]]) -> Result<(), Reply> {
    let [rate, capacity, options @ ..] = words else { return Err(wrong_arity("bf.reserve")) };
    error_rate(rate)?;
    self::capacity(capacity)?;
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if option.eq_ignore_ascii_case(b"expansion") {
            let value = options.next().ok_or_else(|| Reply::error("ERR no expansion"))?;
            expansion(value)?;
        }
        // RedisBloom ignores unknown options here. NONSCALING has no value.
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
    let rate = text(word).and_then(|text| text.parse::<f64>().ok());
    match rate {
        None => Err(Reply::error("ERR bad error rate")),
        Some(rate) if rate > 0.0 && rate < 1.0 => Ok(()),
        Some(_) => Err(Reply::error("ERR (0 < error rate range < 1) ")),
    }
}

fn capacity(word: &[u8]) -> Result<(), Reply> {
    match number(word) {
        None => Err(Reply::error("ERR bad capacity")),
        Some(1..) => Ok(()),
        Some(_) => Err(Reply::error("ERR (capacity should be larger than 0)")),
    }
}

fn expansion(word: &[u8]) -> Result<(), Reply> {
    match number(word) {
        None => Err(Reply::error("ERR bad expansion")),
        Some(1..) => Ok(()),
        Some(_) => Err(Reply::error("ERR expansion should be greater or equal to 1")),
    }
}

fn number(word: &[u8]) -> Option<i64> {
    text(word)?.parse().ok()
}

fn text(word: &[u8]) -> Option<&str> {
    std::str::from_utf8(word).ok()
}
