//! Machine that runs a pickle as a program. The machine builds data and never objects: in place of
//! an object it makes [`PickleValue::Opaque`]. It imports nothing and calls nothing.
//!
//! Each opcode takes bounded time and makes a bounded number of values, and a pickle may have at
//! most [`MOST_OPCODES`]. Containers hold the indexes of other containers, so no value is nested. A
//! value that the memo names several times exists only once. Therefore no pickle takes much time or
//! memory.

use super::PickleError;
use super::code::Code;
use super::opcode as op;
use super::value::{Heap, PickleValue, Span};

/// Maximum number of opcodes in a pickle. A request may still have a few hundred thousand values in
/// its `meta`.
const MOST_OPCODES: usize = 1 << 20;

/// Number of values for which the machine keeps memory after a pickle.
const KEPT: usize = 1 << 14;

/// Highest protocol of pickles that the machine knows.
const PROTOCOL: u8 = 5;

#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    stack: Vec<PickleValue>,
    /// Lengths that the stack had at the marks.
    marks: Vec<usize>,
    memo: Vec<Option<PickleValue>>,
    pub(super) heap: Heap,
}

impl Machine {
    /// Runs a pickle and returns its value. The contents of containers stay in the heap until the
    /// next run.
    pub(super) fn run(&mut self, pickle: &[u8]) -> Result<PickleValue, PickleError> {
        self.clear();
        let mut code = Code { bytes: pickle, at: 0 };
        for _ in 0..MOST_OPCODES {
            let at = code.at;
            let opcode = code.byte()?;
            if opcode == op::STOP {
                return self.pop().ok_or(PickleError::Broken { at });
            }
            self.step(opcode, &mut code)?.ok_or(PickleError::Broken { at })?;
        }
        Err(PickleError::TooLong { most: MOST_OPCODES })
    }

    /// Returns the keys and values of the dict that the last run `made`, or was to make.
    pub(super) fn pairs(
        &self,
        made: Option<PickleValue>,
    ) -> impl Iterator<Item = (PickleValue, PickleValue)> {
        let dict = match made.or(self.stack.first().copied()) {
            Some(PickleValue::Dict(dict)) => Some(dict),
            _ => None,
        };
        // In a pickle that is cut off, the keys and values for the dict are between two marks.
        let mark = |index| self.marks.get(index).copied().unwrap_or(self.stack.len());
        let marked = self.stack[mark(0)..mark(1)].chunks_exact(2);
        let marked = marked.map(|pair| (pair[0], pair[1]));
        dict.map(|dict| self.heap.pairs(dict).chain(marked)).into_iter().flatten()
    }

    fn clear(&mut self) {
        self.stack.clear();
        self.marks.clear();
        self.memo.clear();
        self.heap.clear(KEPT);
        self.stack.shrink_to(KEPT);
        self.marks.shrink_to(KEPT);
        self.memo.shrink_to(KEPT);
    }

    /// Runs one opcode. Returns `None` if the opcode cannot be run. Each function here handles
    /// opcodes of one kind, and passes other opcodes to the next function. The most frequent kind
    /// comes first.
    fn step(&mut self, opcode: u8, code: &mut Code<'_>) -> Result<Option<()>, PickleError> {
        let value = match opcode {
            op::SHORT_BINUNICODE => PickleValue::Text(code.counted::<1>()?),
            op::BINUNICODE => PickleValue::Text(code.counted::<4>()?),
            op::BINUNICODE8 => PickleValue::Text(code.counted::<8>()?),
            op::UNICODE => plain(code.line()?, code.bytes),
            op::SHORT_BINBYTES => PickleValue::Bytes(code.counted::<1>()?),
            op::BINBYTES => PickleValue::Bytes(code.counted::<4>()?),
            op::BINBYTES8 => PickleValue::Bytes(code.counted::<8>()?),
            // Text of Python 2, which Python 3 reads as ASCII.
            op::SHORT_BINSTRING => plain(code.counted::<1>()?, code.bytes),
            op::BINSTRING => plain(code.counted::<4>()?, code.bytes),
            op::STRING => match code.line()?.of(code.bytes) {
                [b'\'', .., b'\''] | [b'"', .., b'"'] => PickleValue::Opaque,
                _ => return Ok(None),
            },
            op::BYTEARRAY8 => {
                code.counted::<8>()?;
                PickleValue::Opaque
            }
            other => return self.remember(other, code),
        };
        self.stack.push(value);
        Ok(Some(()))
    }

    /// Runs an opcode that stores a value in the memo or pushes one from it.
    #[inline]
    fn remember(&mut self, opcode: u8, code: &mut Code<'_>) -> Result<Option<()>, PickleError> {
        Ok(match opcode {
            op::MEMOIZE => self.put(self.memo.len(), code.at),
            op::BINPUT => self.put(code.number::<1>()?, code.at),
            op::LONG_BINPUT => self.put(code.number::<4>()?, code.at),
            op::PUT => index(code)?.and_then(|index| self.put(index, code.at)),
            op::BINGET => self.get(code.number::<1>()?),
            op::LONG_BINGET => self.get(code.number::<4>()?),
            op::GET => index(code)?.and_then(|index| self.get(index)),
            other => return self.count(other, code),
        })
    }

    /// Runs an opcode that pushes `None`, a boolean or a number.
    #[inline]
    fn count(&mut self, opcode: u8, code: &mut Code<'_>) -> Result<Option<()>, PickleError> {
        let value = match opcode {
            op::NONE => PickleValue::None,
            op::NEWTRUE => PickleValue::Bool(true),
            op::NEWFALSE => PickleValue::Bool(false),
            op::BININT => PickleValue::Int(i32::from_le_bytes(code.array()?).into()),
            op::BININT1 => PickleValue::Int(code.byte()?.into()),
            op::BININT2 => PickleValue::Int(u16::from_le_bytes(code.array()?).into()),
            op::LONG1 => integer(code.counted::<1>()?.of(code.bytes)),
            op::LONG4 => integer(code.counted::<4>()?.of(code.bytes)),
            op::INT => match code.line()?.of(code.bytes) {
                b"00" => PickleValue::Bool(false),
                b"01" => PickleValue::Bool(true),
                digits => return Ok(decimal(digits).map(|value| self.stack.push(value))),
            },
            op::LONG => {
                let digits = code.line()?.of(code.bytes);
                let digits = digits.strip_suffix(b"L").unwrap_or(digits);
                return Ok(decimal(digits).map(|value| self.stack.push(value)));
            }
            op::FLOAT => {
                let text = std::str::from_utf8(code.line()?.of(code.bytes)).ok();
                let float = text.and_then(|text| text.parse().ok());
                return Ok(float.map(|float| self.stack.push(PickleValue::Float(float))));
            }
            op::BINFLOAT => PickleValue::Float(f64::from_be_bytes(code.array()?)),
            other => return self.frame(other, code),
        };
        self.stack.push(value);
        Ok(Some(()))
    }

    /// Runs an opcode that begins a pickle, a frame or a mark, or that drops values or a mark.
    #[inline]
    fn frame(&mut self, opcode: u8, code: &mut Code<'_>) -> Result<Option<()>, PickleError> {
        Ok(match opcode {
            op::PROTO => match code.byte()? {
                0..=PROTOCOL => Some(()),
                found => return Err(PickleError::Protocol { found }),
            },
            op::FRAME => {
                let fits = code.number::<8>()? <= code.left();
                return if fits { Ok(Some(())) } else { Err(PickleError::Short) };
            }
            op::MARK => {
                self.marks.push(self.stack.len());
                Some(())
            }
            op::POP => self.pop().map(drop).or_else(|| self.marks.pop().map(drop)),
            op::POP_MARK => self.marks.pop().map(|from| self.stack.truncate(from)),
            op::DUP => self.top().map(|top| self.stack.push(top)),
            other => return self.make(other, code),
        })
    }

    /// Runs an opcode that makes a container or an object without values from the stack.
    #[inline]
    fn make(&mut self, opcode: u8, code: &mut Code<'_>) -> Result<Option<()>, PickleError> {
        let value = match opcode {
            op::EMPTY_LIST => PickleValue::List(self.heap.container(&[])),
            op::EMPTY_DICT => PickleValue::Dict(self.heap.container(&[])),
            op::EMPTY_TUPLE => PickleValue::Tuple(self.heap.container(&[])),
            op::EMPTY_SET => PickleValue::Set,
            op::GLOBAL => {
                let (module, name) = (code.line()?, code.line()?);
                global(module.of(code.bytes), name.of(code.bytes))
            }
            op::INST => {
                code.line()?;
                code.line()?;
                let Some(from) = self.marks.pop() else { return Ok(None) };
                self.stack.truncate(from);
                PickleValue::Opaque
            }
            other => return self.combine(other, code),
        };
        self.stack.push(value);
        Ok(Some(()))
    }

    /// Runs an opcode that combines values on the stack.
    fn combine(&mut self, opcode: u8, code: &Code<'_>) -> Result<Option<()>, PickleError> {
        Ok(match opcode {
            op::TUPLE1 => self.tuple(1),
            op::TUPLE2 => self.tuple(2),
            op::TUPLE3 => self.tuple(3),
            op::TUPLE => self.collect(PickleValue::Tuple, |_| true),
            op::LIST => self.collect(PickleValue::List, |_| true),
            op::DICT => self.collect(PickleValue::Dict, are_pairs),
            op::FROZENSET => self.collect(|_| PickleValue::Set, |_| true),
            op::APPEND => self.last(1).and_then(|from| self.add(from, Some(false))),
            op::SETITEM => self.last(2).and_then(|from| self.add(from, Some(true))),
            op::APPENDS => self.marks.pop().and_then(|from| self.add(from, Some(false))),
            op::SETITEMS => self.marks.pop().and_then(|from| self.add(from, Some(true))),
            op::ADDITEMS => self.marks.pop().and_then(|from| self.add(from, None)),
            op::STACK_GLOBAL => self.stack_global(code.bytes),
            op::REDUCE => self.reduce(code.bytes),
            op::BUILD => self.build(),
            op::NEWOBJ => self.last(2).map(|from| self.replace(from, PickleValue::Opaque)),
            op::NEWOBJ_EX => self.last(3).map(|from| self.replace(from, PickleValue::Opaque)),
            op::OBJ => {
                let from = self.marks.pop().filter(|&from| from < self.stack.len());
                from.map(|from| self.replace(from, PickleValue::Opaque))
            }
            _ => return Err(PickleError::Opcode { opcode, at: code.at - 1 }),
        })
    }

    /// Returns the number of values on the stack after the last mark. No opcode takes more values.
    fn marked(&self) -> usize {
        self.stack.len() - self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Option<PickleValue> {
        self.stack.last().copied().filter(|_| self.marked() > 0)
    }

    fn pop(&mut self) -> Option<PickleValue> {
        let top = self.top()?;
        self.stack.pop();
        Some(top)
    }

    /// Returns the position of the topmost `count` values; `None` if the stack has fewer values
    /// after the last mark.
    fn last(&self, count: usize) -> Option<usize> {
        (self.marked() >= count).then(|| self.stack.len() - count)
    }

    /// Replaces the value at the position `from` and all values above it by one value.
    fn replace(&mut self, from: usize, value: PickleValue) {
        self.stack.truncate(from);
        self.stack.push(value);
    }

    /// Stores the top of the stack in the memo. A pickle numbers its memo entries one by one, and
    /// stores each with an opcode. So a valid index is smaller than the position of the opcode.
    /// Larger indexes are refused.
    fn put(&mut self, index: usize, at: usize) -> Option<()> {
        let top = self.top()?;
        if index >= at.min(MOST_OPCODES) {
            return None;
        }
        if index >= self.memo.len() {
            self.memo.resize(index + 1, None);
        }
        self.memo[index] = Some(top);
        Some(())
    }

    fn get(&mut self, index: usize) -> Option<()> {
        let value = self.memo.get(index).copied().flatten()?;
        self.stack.push(value);
        Some(())
    }

    fn tuple(&mut self, count: usize) -> Option<()> {
        let from = self.last(count)?;
        let tuple = PickleValue::Tuple(self.heap.container(&self.stack[from..]));
        self.replace(from, tuple);
        Some(())
    }

    /// Replaces the values after the last mark by one container of them, if it can have them.
    fn collect(
        &mut self,
        container: fn(u32) -> PickleValue,
        can_have: fn(&[PickleValue]) -> bool,
    ) -> Option<()> {
        let from = self.marks.pop()?;
        let values = &self.stack[from..];
        let made = can_have(values).then(|| container(self.heap.container(values)))?;
        self.replace(from, made);
        Some(())
    }

    /// Takes the value at the position `from` and all values above it, and adds them to the
    /// container just below. `pairs` is true for a dict, false for a list and `None` for a set. An
    /// object ignores the values.
    fn add(&mut self, from: usize, pairs: Option<bool>) -> Option<()> {
        let fence = self.marks.last().copied().unwrap_or(0);
        let to = from.checked_sub(1).filter(|&to| to >= fence)?;
        let values = &self.stack[from..];
        match (self.stack[to], pairs) {
            (PickleValue::List(list), Some(false)) => self.heap.extend(list, values),
            (PickleValue::Dict(dict), Some(true)) if are_pairs(values) => {
                self.heap.extend(dict, values);
            }
            (PickleValue::Set, None) | (PickleValue::Opaque, _) => {}
            _ => return None,
        }
        self.stack.truncate(from);
        Some(())
    }

    fn stack_global(&mut self, bytes: &[u8]) -> Option<()> {
        let (name, module) = (self.pop()?, self.pop()?);
        let (PickleValue::Text(name), PickleValue::Text(module)) = (name, module) else {
            return None;
        };
        self.stack.push(global(module.of(bytes), name.of(bytes)));
        Some(())
    }

    /// Runs a call. The only known calls are the calls that write bytes in protocol 2.
    fn reduce(&mut self, bytes: &[u8]) -> Option<()> {
        let (arguments, callable) = (self.pop()?, self.pop()?);
        let PickleValue::Tuple(arguments) = arguments else { return None };
        let made = match (callable, self.heap.values(arguments)) {
            (PickleValue::BytesType, []) => PickleValue::Bytes(Span::EMPTY),
            (PickleValue::Encode, &[PickleValue::Text(text), PickleValue::Text(encoding)])
                if encoding.of(bytes) == b"latin1" =>
            {
                PickleValue::Latin1(text)
            }
            _ => PickleValue::Opaque,
        };
        self.stack.push(made);
        Some(())
    }

    fn build(&mut self) -> Option<()> {
        self.pop()?;
        self.top().filter(|top| *top == PickleValue::Opaque).map(drop)
    }
}

/// Returns true if these values are keys and values in turn, and each key can be one in Python.
fn are_pairs(values: &[PickleValue]) -> bool {
    let is_key = |key| !matches!(key, PickleValue::List(_) | PickleValue::Dict(_));
    values.len().is_multiple_of(2) && values.iter().step_by(2).copied().all(is_key)
}

/// Reads text of protocols 0 and 1. Text with escapes or outside of ASCII becomes opaque.
fn plain(span: Span, bytes: &[u8]) -> PickleValue {
    let is_plain = |byte: &u8| byte.is_ascii() && *byte != b'\\';
    if span.of(bytes).iter().all(is_plain) { PickleValue::Text(span) } else { PickleValue::Opaque }
}

/// Reads an integer in two's complement, the least significant byte first.
fn integer(bytes: &[u8]) -> PickleValue {
    let mut whole = match bytes.last() {
        Some(0x80..) => [0xff; 8],
        _ => [0; 8],
    };
    match whole.get_mut(..bytes.len()) {
        Some(room) => room.copy_from_slice(bytes),
        None => return PickleValue::BigInt,
    }
    PickleValue::Int(i64::from_le_bytes(whole))
}

fn decimal(digits: &[u8]) -> Option<PickleValue> {
    let text = std::str::from_utf8(digits).ok()?;
    let is_whole = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'-' | b'0'..=b'9'));
    is_whole.then(|| text.parse().map_or(PickleValue::BigInt, PickleValue::Int))
}

/// Takes a line with a memo index in decimal.
fn index(code: &mut Code<'_>) -> Result<Option<usize>, PickleError> {
    let digits = std::str::from_utf8(code.line()?.of(code.bytes)).ok();
    Ok(digits.and_then(|digits| digits.parse().ok()))
}

fn global(module: &[u8], name: &[u8]) -> PickleValue {
    match (module, name) {
        (b"_codecs", b"encode") => PickleValue::Encode,
        (b"__builtin__" | b"builtins", b"bytes") => PickleValue::BytesType,
        _ => PickleValue::Opaque,
    }
}
