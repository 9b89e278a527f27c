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

/// Containers of a pickle and their contents. Their memory is used again for the next pickle.
#[derive(Debug, Clone, Default)]
pub(super) struct Heap {
    containers: Vec<Vec<PickleValue>>,
    /// Number of the containers that the present pickle has. The others are free.
    used: usize,
    /// Number of values for which all containers have memory.
    room: usize,
}

impl Heap {
    /// Empties the heap for the next pickle. Frees the memory of more than `most` values or
    /// containers.
    pub(super) fn clear(&mut self, most: usize) {
        self.used = 0;
        if self.room.max(self.containers.len()) > most {
            *self = Self::default();
        }
    }

    /// Makes a new container.
    pub(super) fn container(&mut self, values: &[PickleValue]) -> u32 {
        let container = self.used;
        self.used += 1;
        match self.containers.get_mut(container) {
            Some(free) => free.clear(),
            None => self.containers.push(Vec::new()),
        }
        // The limit on opcodes also bounds the number of containers.
        let container = u32::try_from(container).expect("fewer than opcodes");
        self.extend(container, values);
        container
    }

    pub(super) fn extend(&mut self, container: u32, values: &[PickleValue]) {
        let container = &mut self.containers[container as usize];
        let before = container.capacity();
        container.extend_from_slice(values);
        self.room += container.capacity() - before;
    }

    /// Returns the contents of a container, in order.
    pub(super) fn values(&self, container: u32) -> &[PickleValue] {
        &self.containers[container as usize]
    }

    /// Iterates over the keys and values of a dict in the order in which the pickle set them. If a
    /// key is repeated, its last value counts.
    pub(super) fn pairs(&self, dict: u32) -> impl Iterator<Item = (PickleValue, PickleValue)> {
        self.values(dict).chunks_exact(2).map(|pair| (pair[0], pair[1]))
    }
}
