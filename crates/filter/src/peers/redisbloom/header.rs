//! Header, the first chunk of a dump: the parameters of the filter, without its bits. Its numbers
//! are packed and little endian.
//!
//! ```text
//! at  bytes
//!  0      8  items in all layers
//!  8      4  number of layers
//! 12      4  options
//! 16      4  growth: factor of the capacity from one layer to the next
//! 20     53  each layer:
//!  0      8    bytes, a multiple of 8
//!  8      8    bits: 8 times the bytes
//! 16      8    items
//! 24      8    error rate, floating point
//! 32      8    bits an item, floating point
//! 40      4    hashes
//! 44      8    capacity in items
//! 52      1    0, or e if the hashes are taken modulo 2^e
//! ```

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;

use crate::peers::redisbloom::filter::Filter;
use crate::peers::redisbloom::layer::{self, Layer};
use crate::peers::redisbloom::{ChunkError, FormatError};

/// Numbers before the records of the layers. The header is little endian, and urlseen is built only
/// for little-endian machines. So the bytes need no conversion.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, packed)]
struct Head {
    size: u64,
    layers: u32,
    options: u32,
    growth: u32,
}

/// Parameters of a layer without its bits, as in its record.
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, packed)]
pub(crate) struct Shape {
    /// Length in bytes, a multiple of 8 below 2^60.
    pub(crate) bytes: u64,
    pub(crate) bits: u64,
    /// Number of items in the layer.
    pub(crate) size: u64,
    pub(crate) error_rate: f64,
    pub(crate) bits_per_item: f64,
    pub(crate) hashes: u32,
    pub(crate) capacity: u64,
    /// Exponent of a power of 2: the hashes are taken modulo this power. 0 if they are taken modulo
    /// the number of bits.
    pub(crate) power: u8,
}

const HEAD: usize = size_of::<Head>();
const LAYER: usize = size_of::<Shape>();
/// Number of bytes that a server with its own hash seed adds after the records of the layers.
const SEED: usize = 16;

/// The options of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Options(pub(crate) u32);

impl Options {
    /// Flag: layers have no more bits than they need.
    const EXACT: u32 = 1;
    /// Flag: hashes have 64 bits.
    pub(crate) const WIDE: u32 = 4;
    /// Flag: the filter does not grow.
    const FIXED: u32 = 8;

    /// Options of a growing filter, in all versions since 2.2.
    const SCALING: Self = Self(Self::EXACT | Self::WIDE);
    /// Options of a filter reserved with `NONSCALING`.
    const NONSCALING: Self = Self(Self::EXACT | Self::WIDE | Self::FIXED);

    /// Returns the options of a filter with this expansion; 0 stands for no growth.
    pub(crate) fn of(expansion: u32) -> Self {
        if expansion == 0 { Self::NONSCALING } else { Self::SCALING }
    }

    /// Returns true if each new layer rounds its number of bits up to a power of two, as in early
    /// versions.
    pub(crate) fn is_rounded(self) -> bool {
        self.0 & Self::EXACT == 0
    }

    /// Returns true if the filter does not grow.
    pub(crate) fn is_fixed(self) -> bool {
        self.0 & Self::FIXED != 0
    }
}

impl Filter {
    /// Reads the header of a filter whose layers take at most `limit` bytes. The layers have no
    /// bits yet.
    pub(crate) fn of_header(data: &[u8], limit: u64) -> Result<Self, ChunkError> {
        let at = |offset: usize, problem| ChunkError { chunk: 0, offset: offset as u64, problem };
        let length = at(data.len().min(HEAD), FormatError::HeaderLength { found: data.len() });
        let Some((head, records)) = data.split_first_chunk::<HEAD>() else {
            return Err(length);
        };
        let Head { size, layers: count, options, growth } = bytemuck::must_cast(*head);
        let (records, rest) = records.as_chunks::<LAYER>();
        let records: &[Shape] = bytemuck::cast_slice(records.as_flattened());
        if count == 0 || records.len() as u64 != u64::from(count) {
            return Err(length);
        }
        match rest.len() {
            0 => {}
            SEED => return Err(at(data.len() - SEED, FormatError::Seeded)),
            _ => return Err(length),
        }
        if options & !(Options::EXACT | Options::FIXED) != Options::WIDE {
            let found = format!("{options:#x}");
            let allowed = "filters have 0x4, and may have 0x1 and 0x8";
            return Err(at(12, FormatError::Field { field: "options", found, allowed }));
        }
        let (mut layers, mut items, mut bytes) = (Vec::with_capacity(records.len()), 0_u64, 0_u64);
        for (number, &record) in records.iter().enumerate() {
            let start = HEAD + number * LAYER;
            let layer =
                read_layer(record).map_err(|(field, problem)| at(start + field, problem))?;
            bytes = bytes
                .checked_add(layer.shape.bytes)
                .filter(|&bytes| bytes <= limit)
                .ok_or_else(|| at(start, FormatError::TooLarge { limit }))?;
            items = items.saturating_add(layer.shape.size);
            layers.push(Arc::new(layer));
        }
        if items != size {
            let found = size.to_string();
            let allowed = "it is the sum of the layers' items";
            return Err(at(0, FormatError::Field { field: "number of items", found, allowed }));
        }
        let (options, spare) = (Options(options), VecDeque::new());
        Ok(Self { size, options, growth, layers, spare, limit })
    }

    /// Returns the bytes of the filter's header.
    pub(crate) fn header(&self) -> Vec<u8> {
        // The number of layers is below 2^32: each layer takes at least 8 bytes.
        #[allow(clippy::cast_possible_truncation)]
        let layers = self.layers.len() as u32;
        let head = Head { size: self.size, layers, options: self.options.0, growth: self.growth };
        let mut data = bytemuck::bytes_of(&head).to_vec();
        for layer in &self.layers {
            data.extend(bytemuck::bytes_of(&layer.shape));
        }
        data
    }
}

/// Reads the record of a layer. An error has the offset of the invalid field in the record.
fn read_layer(shape: Shape) -> Result<Layer, (usize, FormatError)> {
    let Shape { bytes, bits, size, error_rate, bits_per_item, hashes, capacity, power } = shape;
    let check = |holds: bool, at: usize, field, found: &dyn Display, allowed| {
        if holds {
            return Ok(());
        }
        Err((at, FormatError::Field { field, found: found.to_string(), allowed }))
    };
    let sound = bytes > 0 && bytes % 8 == 0 && bytes < 1 << 60;
    check(sound, 0, "bytes of a layer", &bytes, "they are a multiple of 8 below 2^60")?;
    check(bits == bytes * 8, 8, "bits of a layer", &bits, "they are 8 times the bytes")?;
    let rate = error_rate > 0.0 && error_rate < 1.0;
    let found = format_args!("{error_rate:e}");
    check(rate, 24, "error rate", &found, "it lies between 0 and 1")?;
    // The server's machine may compute a logarithm that differs in the last digit.
    let near = (bits_per_item / layer::bits_per_item(error_rate) - 1.0).abs() < 1e-9;
    let found = format_args!("{bits_per_item:e}");
    check(near, 32, "bits an item", &found, "they are -ln(error rate) / ln(2)^2")?;
    #[allow(clippy::float_cmp)]
    let best = f64::from(hashes) == layer::hashes(bits_per_item);
    let allowed = "it is ln(2) times the bits an item, rounded up";
    check(best, 40, "number of hashes", &hashes, allowed)?;
    check(capacity > 0, 44, "capacity of a layer", &capacity, "it is 1 or more")?;
    let room = size <= capacity;
    check(room, 16, "items of a layer", &size, "they are no more than its capacity")?;
    let reached = power == 0 || power < 64 && 1 << power <= bits;
    let allowed = "it is 0, or an exponent e below 64 for which 2^e is at most the number of bits";
    check(reached, 52, "power of two", &power, allowed)?;
    Ok(Layer { shape, ones: 0, bits: Vec::new() })
}
