//! The `meta` of a pickled request as JSON, where JSON says just the same.

use super::super::start_url::push_text;
use super::PickleError;
use super::value::{Heap, Value};

/// How deep containers may be nested.
const DEEPEST: usize = 100;

/// How much longer than the pickle the JSON may be: what a pickle names again stands in JSON again,
/// and again in whatever that is in.
const LONGER: usize = 64;
/// How much longer in any case.
const LEEWAY: usize = 1 << 16;

/// What writes a value.
pub(super) struct Writer<'a> {
    pickle: &'a [u8],
    heap: &'a Heap,
    json: Vec<u8>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(pickle: &'a [u8], heap: &'a Heap) -> Self {
        Self { pickle, heap, json: Vec::new() }
    }

    /// The JSON of a dict; nothing where nothing is in it.
    pub(super) fn meta(mut self, meta: Value) -> Result<Option<Vec<u8>>, PickleError> {
        match meta {
            Value::Dict(dict) if !self.heap.is_empty(dict) => {
                self.push(meta, 0)?;
                Ok(Some(self.json))
            }
            _ => Ok(None),
        }
    }

    fn push(&mut self, value: Value, depth: usize) -> Result<(), PickleError> {
        let unsayable = |found| Err(PickleError::NotJson { found });
        if self.json.len() > LONGER * self.pickle.len() + LEEWAY {
            return unsayable("more than fits, as the same again and again");
        }
        if depth > DEEPEST {
            return unsayable("containers nested more than 100 deep, or in themselves");
        }
        match value {
            Value::None => self.json.extend_from_slice(b"null"),
            Value::Bool(value) => {
                self.json.extend_from_slice(if value { b"true" } else { b"false" });
            }
            Value::Int(value) => {
                self.json.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
            }
            Value::Float(value) if value.is_finite() => {
                serde_json::to_writer(&mut self.json, &value).expect("memory takes it");
            }
            Value::Text(span) => match std::str::from_utf8(span.of(self.pickle)) {
                Ok(text) => push_text(text, &mut self.json),
                Err(_) => return unsayable("a str that is not UTF-8"),
            },
            Value::List(list) => {
                self.json.push(b'[');
                for (index, value) in self.heap.values(list).enumerate() {
                    self.separate(index);
                    self.push(value, depth + 1)?;
                }
                self.json.push(b']');
            }
            Value::Dict(dict) => {
                self.json.push(b'{');
                for (index, (key, value)) in self.heap.pairs(dict).enumerate() {
                    self.separate(index);
                    if !matches!(key, Value::Text(_)) {
                        return unsayable("a key that is no str");
                    }
                    self.push(key, depth + 1)?;
                    self.json.push(b':');
                    self.push(value, depth + 1)?;
                }
                self.json.push(b'}');
            }
            Value::BigInt => return unsayable("an int of more than 64 bits"),
            Value::Float(_) => return unsayable("a float that is not finite"),
            other => return unsayable(other.kind()),
        }
        Ok(())
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.json.push(b',');
        }
    }
}
