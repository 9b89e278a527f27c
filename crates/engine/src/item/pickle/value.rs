//! Values of a pickle, with the content that a request needs.

/// Range of bytes in the pickle.
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

/// Value in a pickle. A container is an index into the heap, so a copy of a value is cheap. A
/// container that a pickle names several times exists once.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) enum PickleValue {
    #[default]
    None,
    Bool(bool),
    Int(i64),
    /// Integer of more than 64 bits.
    BigInt,
    Float(f64),
    /// Text, in UTF-8 if Python wrote it.
    Text(Span),
    Bytes(Span),
    /// Bytes as protocol 2 writes them: text in which each character stands for a byte.
    Latin1(Span),
    List(u32),
    /// Dict whose cells are keys and values in turn.
    Dict(u32),
    Tuple(u32),
    Set,
    /// Function `_codecs.encode`, which protocol 2 calls to write bytes.
    Encode,
    /// Type `bytes`, which protocol 2 calls to write empty bytes.
    BytesType,
    /// Object, or a value from which Python would make an object. The content is never read.
    Opaque,
}

impl PickleValue {
    /// Returns the type of the value in words, for a message.
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

/// Containers of a pickle and their contents, as chains of cells in one list.
#[derive(Debug, Clone, Default)]
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

/// Index that stands for the end of a chain.
const END: u32 = u32::MAX;

impl Heap {
    /// Empties the heap for the next pickle. Keeps memory for at most `most` values.
    pub(super) fn clear(&mut self, most: usize) {
        self.chains.clear();
        self.cells.clear();
        self.chains.shrink_to(most);
        self.cells.shrink_to(most);
    }

    /// Makes a new container.
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

    /// Iterates over the contents of a container, in order.
    pub(super) fn values(&self, container: u32) -> impl Iterator<Item = PickleValue> {
        let mut next = self.chains[container as usize].first;
        std::iter::from_fn(move || {
            let cell = self.cells.get(next as usize)?;
            next = cell.next;
            Some(cell.value)
        })
    }

    /// Iterates over the keys and values of a dict in the order in which the pickle set them. If a
    /// key is repeated, its last value counts.
    pub(super) fn pairs(&self, dict: u32) -> impl Iterator<Item = (PickleValue, PickleValue)> {
        let mut values = self.values(dict);
        std::iter::from_fn(move || Some((values.next()?, values.next()?)))
    }
}

/// Converts an index. The limit on opcodes also bounds the number of cells and containers.
fn number(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than opcodes")
}
