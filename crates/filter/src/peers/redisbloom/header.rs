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

use std::fmt::Display;
use std::io;
use std::sync::Arc;

use crate::peers::redisbloom::filter::Filter;
use crate::peers::redisbloom::layer::Layer;
use crate::peers::redisbloom::parameters::{self, LayerParameters, Options};
use crate::peers::redisbloom::refused;

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

const HEAD: usize = size_of::<Head>();
const LAYER: usize = size_of::<LayerParameters>();
/// Number of bytes that a server with its own hash seed adds after the records of the layers.
const SEED: usize = 16;

impl Filter {
    /// Reads the header of a filter whose layers take at most `limit` bytes. The layers have no
    /// bits yet.
    pub(crate) fn of_header(data: &[u8], limit: u64) -> io::Result<Self> {
        // An iterator is a signed number: 1 plus a number of bytes.
        let limit = limit.min(i64::MAX as u64 - 1);
        let at = |offset: usize, problem: String| {
            refused(io::ErrorKind::InvalidData, 0, offset as u64, problem)
        };
        let found = data.len();
        let wrong_length = || {
            let problem = format!(
                "the header has {found} bytes; a header has 20, plus 53 for each layer, and 1 \
                 layer or more"
            );
            at(found.min(HEAD), problem)
        };
        let (head, records) = data.split_first_chunk::<HEAD>().ok_or_else(wrong_length)?;
        let Head { size, layers: count, options, growth } = bytemuck::must_cast(*head);
        let (records, rest) = records.as_chunks::<LAYER>();
        let records: &[LayerParameters] = bytemuck::cast_slice(records.as_flattened());
        if records.len() as u64 != u64::from(count) || !matches!(rest.len(), 0 | SEED) {
            return Err(wrong_length());
        }
        let &first = records.first().ok_or_else(wrong_length)?;
        if !rest.is_empty() {
            let problem = "16 bytes follow the layers: the server hashes with a bf-hash-seed of \
                           its own, and only filters without one can be read";
            return Err(at(found - SEED, problem.to_owned()));
        }
        if options & !(Options::EXACT | Options::FIXED) != Options::WIDE {
            let allowed = "filters have 0x4, and may have 0x1 and 0x8";
            return Err(at(12, format!("the options is {options:#x}; {allowed}")));
        }
        let (mut layers, mut items, mut bytes) = (Vec::with_capacity(records.len()), 0_u64, 0_u64);
        for (number, &record) in records.iter().enumerate() {
            let start = HEAD + number * LAYER;
            let layer =
                read_layer(record).map_err(|(field, problem)| at(start + field, problem))?;
            bytes = bytes.saturating_add(layer.parameters.bytes);
            if bytes > limit {
                let problem = format!(
                    "the layers take more than {limit} bytes, the limit that is set for \
                             them"
                );
                return Err(at(start, problem));
            }
            items = items.saturating_add(layer.parameters.size);
            layers.push(Arc::new(layer));
        }
        if items != size {
            let allowed = "it is the sum of the layers' items";
            return Err(at(0, format!("the number of items is {size}; {allowed}")));
        }
        let (options, first) = (Options(options), LayerParameters { size: 0, ..first });
        let (used, gauge) = (layers.len(), Arc::default());
        Ok(Self { size, options, growth, first, layers, used, limit, gauge })
    }

    /// Returns the bytes of the filter's header.
    pub(crate) fn header(&self) -> Vec<u8> {
        // The number of layers is below 2^32: each layer takes at least 8 bytes.
        #[allow(clippy::cast_possible_truncation)]
        let layers = self.used as u32;
        let head = Head { size: self.size, layers, options: self.options.0, growth: self.growth };
        let mut data = bytemuck::bytes_of(&head).to_vec();
        for layer in &self.layers[..self.used] {
            data.extend(bytemuck::bytes_of(&layer.parameters));
        }
        data
    }
}

/// Reads the record of a layer. An error has the offset of the invalid field in the record.
fn read_layer(record: LayerParameters) -> Result<Layer, (usize, String)> {
    let LayerParameters { bytes, bits, size, error_rate, bits_per_item, hashes, capacity, power } =
        record;
    let check = |holds: bool, at: usize, field: &str, found: &dyn Display, allowed: &str| {
        if holds {
            return Ok(());
        }
        Err((at, format!("the {field} is {found}; {allowed}")))
    };
    let sound = bytes > 0 && bytes % 8 == 0 && bytes < 1 << 60;
    check(sound, 0, "bytes of a layer", &bytes, "they are a multiple of 8 below 2^60")?;
    check(bits == bytes * 8, 8, "bits of a layer", &bits, "they are 8 times the bytes")?;
    let rate = error_rate > 0.0 && error_rate < 1.0;
    let found = format_args!("{error_rate:e}");
    check(rate, 24, "error rate", &found, "it lies between 0 and 1")?;
    // The server's machine may compute a logarithm that differs in the last digit.
    let near = (bits_per_item / parameters::bits_per_item(error_rate) - 1.0).abs() < 1e-9;
    let found = format_args!("{bits_per_item:e}");
    check(near, 32, "bits an item", &found, "they are -ln(error rate) / ln(2)^2")?;
    #[allow(clippy::float_cmp)]
    let best = f64::from(hashes) == parameters::hashes(bits_per_item);
    let allowed = "it is ln(2) times the bits an item, rounded up";
    check(best, 40, "number of hashes", &hashes, allowed)?;
    check(capacity > 0, 44, "capacity of a layer", &capacity, "it is 1 or more")?;
    let room = size <= capacity;
    check(room, 16, "items of a layer", &size, "they are no more than its capacity")?;
    let reached = power == 0 || power < 64 && 1 << power <= bits;
    let allowed = "it is 0, or an exponent e below 64 for which 2^e is at most the number of bits";
    check(reached, 52, "power of two", &power, allowed)?;
    Ok(Layer { parameters: record, ones: 0, bits: Vec::new() })
}
