//! What a pickle holds, as far as anybody here wants to know.

/// Where in the pickle something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    pub(super) const EMPTY: Self = Self { start: 0, end: 0 };

    #[inline]
    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end as usize]
    }
}

/// A value. What is in a container is found through its number: a value costs nothing to copy, and
/// one that a pickle names again and again is there once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PickleValue {
    None,
    Bool(bool),
    Int(i64),
    /// One of more than 64 bits.
    BigInt,
    Float(f64),
    /// UTF-8, if it is what Python writes.
    Text(Span),
    Bytes(Span),
    /// Bytes as protocol 2 has them: text in which each character stands for a byte.
    Latin1(Span),
    List(u32),
    /// Its cells are keys and values, one after the other.
    Dict(u32),
    Tuple(u32),
    Set,
    /// The function `_codecs.encode`, by which protocol 2 writes bytes.
    Encode,
    /// The type `bytes`, which protocol 2 calls to have none.
    BytesType,
    /// An object, or what makes one. Nobody looks into it.
    Opaque,
}

impl PickleValue {
    /// What it is, for a message.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "a bool",
            Self::Int(_) | Self::BigInt => "an int",
            Self::Float(_) => "a float",
            Self::Text(_) => "a str",
            Self::Bytes(_) | Self::Latin1(_) => "bytes",
            Self::List(_) => "a list",
            Self::Dict(_) => "a dict",
            Self::Tuple(_) => "a tuple",
            Self::Set => "a set",
            Self::Encode | Self::BytesType | Self::Opaque => "an object",
        }
    }
}

/// The containers of a pickle, and what is in them: chains of cells in one list.
#[derive(Debug, Default)]
pub(super) struct Heap {
    chains: Vec<Chain>,
    cells: Vec<Cell>,
}

#[derive(Debug, Clone, Copy)]
struct Chain {
    first: u32,
    last: u32,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    value: PickleValue,
    next: u32,
}

/// Where a chain ends.
const END: u32 = u32::MAX;

impl Heap {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.chains.clear();
        self.cells.clear();
    }

    /// Gives back the memory that a large pickle took.
    pub(super) fn shrink(&mut self, most: usize) {
        self.chains.shrink_to(most);
        self.cells.shrink_to(most);
    }

    /// A new container.
    pub(super) fn container(&mut self, values: &[PickleValue]) -> u32 {
        let container = number(self.chains.len());
        self.chains.push(Chain { first: END, last: END });
        self.extend(container, values);
        container
    }

    pub(super) fn extend(&mut self, container: u32, values: &[PickleValue]) {
        let chain = &mut self.chains[container as usize];
        for &value in values {
            let at = number(self.cells.len());
            self.cells.push(Cell { value, next: END });
            match chain.last {
                END => chain.first = at,
                last => self.cells[last as usize].next = at,
            }
            chain.last = at;
        }
    }

    pub(super) fn is_empty(&self, container: u32) -> bool {
        self.chains[container as usize].first == END
    }

    /// What is in a container, in order.
    pub(super) fn values(&self, container: u32) -> impl Iterator<Item = PickleValue> {
        let mut next = self.chains[container as usize].first;
        std::iter::from_fn(move || {
            let cell = self.cells.get(next as usize)?;
            next = cell.next;
            Some(cell.value)
        })
    }

    /// The keys and values of a dict, in the order in which they were set: one that is repeated is
    /// what it was set to last.
    pub(super) fn pairs(&self, dict: u32) -> impl Iterator<Item = (PickleValue, PickleValue)> {
        let mut values = self.values(dict);
        std::iter::from_fn(move || Some((values.next()?, values.next()?)))
    }
}

/// There are fewer cells and containers than a pickle may have opcodes.
fn number(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than opcodes")
}
