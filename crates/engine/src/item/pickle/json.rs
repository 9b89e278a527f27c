//! Conversion of a pickled request's `meta` to JSON, if JSON can express the `meta` exactly.

use super::PickleError;
use super::value::{Heap, PickleValue};
use urlseen_redis::reject::bounded::{Bounded, TooLong, most_made};

/// Maximum depth of containers within containers.
const DEEPEST: usize = 100;

/// Writer of values as JSON.
pub(super) struct Writer<'a> {
    pickle: &'a [u8],
    heap: &'a Heap,
    /// Text with a maximum length, because JSON repeats a value that the pickle holds once and
    /// names several times.
    json: Bounded,
}

impl<'a> Writer<'a> {
    pub(super) fn new(pickle: &'a [u8], heap: &'a Heap) -> Self {
        Self { pickle, heap, json: Bounded::new(most_made(pickle.len())) }
    }

    /// Writes a dict as JSON. Returns `None` if the dict is empty.
    pub(super) fn meta(mut self, meta: PickleValue) -> Result<Option<Vec<u8>>, PickleError> {
        match meta {
            PickleValue::Dict(dict) if !self.heap.values(dict).is_empty() => {
                self.push(meta, 0)?;
                Ok(Some(self.json.into_bytes()))
            }
            _ => Ok(None),
        }
    }

    fn push(&mut self, value: PickleValue, depth: usize) -> Result<(), PickleError> {
        let unsayable = |found| Err(PickleError::NotJson { found });
        if depth > DEEPEST {
            return unsayable("containers nested more than 100 deep, or in themselves");
        }
        match value {
            PickleValue::None => self.json.push(b"null")?,
            PickleValue::Bool(value) => self.json.push_json(&value)?,
            PickleValue::Int(value) => self.json.push_json(&value)?,
            PickleValue::Float(value) if value.is_finite() => self.json.push_json(&value)?,
            PickleValue::Text(span) => match std::str::from_utf8(span.of(self.pickle)) {
                Ok(text) => self.json.push_json(text)?,
                Err(_) => return unsayable("a str that is not UTF-8"),
            },
            PickleValue::List(list) => {
                self.json.push(b"[")?;
                for (index, &value) in self.heap.values(list).iter().enumerate() {
                    self.separate(index)?;
                    self.push(value, depth + 1)?;
                }
                self.json.push(b"]")?;
            }
            PickleValue::Dict(dict) => {
                self.json.push(b"{")?;
                for (index, (key, value)) in self.heap.pairs(dict).enumerate() {
                    self.separate(index)?;
                    if !matches!(key, PickleValue::Text(_)) {
                        return unsayable("a key that is not a str");
                    }
                    self.push(key, depth + 1)?;
                    self.json.push(b":")?;
                    self.push(value, depth + 1)?;
                }
                self.json.push(b"}")?;
            }
            PickleValue::BigInt => return unsayable("an int of more than 64 bits"),
            PickleValue::Float(_) => return unsayable("a float that is not finite"),
            other => return unsayable(other.kind()),
        }
        Ok(())
    }

    fn separate(&mut self, index: usize) -> Result<(), TooLong> {
        if index > 0 { self.json.push(b",") } else { Ok(()) }
    }
}

impl From<TooLong> for PickleError {
    fn from(_: TooLong) -> Self {
        Self::NotJson { found: "repeated values that exceed the size limit" }
    }
}
