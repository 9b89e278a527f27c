//! Tests of the division of a block into slots.

use bytemuck::Zeroable;
use proptest::prelude::*;

use super::*;

/// Iterates over all formats, with the number of bits of a stamp.
fn every() -> impl Iterator<Item = (&'static Format, u32)> {
    let without = Format::all(false).map(|format| (format, 0));
    without.chain(Format::all(true).map(|format| (format, STAMP_BITS)))
}

fn mask(format: &Format) -> u8 {
    format.stamp_mask.try_into().unwrap()
}

#[test]
fn slots_fill_a_block_and_do_not_overlap() {
    for (format, stamp_bits) in every() {
        let width = format.width + stamp_bits;
        assert!(format.slots * (width as usize + 1) > BLOCK_BITS, "{format:?}");
        let mut seen = Block::zeroed();
        for slot in 0..format.slots {
            let mut block = Block::zeroed();
            format.put(&mut block, slot, format.mask, Stamp(mask(format)));
            let mut filled = Block::zeroed();
            format.fill(&mut filled, slot, format.mask, Stamp(mask(format)));
            assert_eq!(filled, block, "{format:?}");
            let bits = bytemuck::bytes_of(&block).iter().map(|byte| byte.count_ones());
            assert_eq!(bits.sum::<u32>(), width);
            for (seen, byte) in
                bytemuck::bytes_of_mut(&mut seen).iter_mut().zip(bytemuck::bytes_of(&block))
            {
                assert_eq!(*seen & byte, 0, "{format:?}");
                *seen |= byte;
            }
        }
    }
}

proptest! {
    #[test]
    fn a_slot_has_what_was_put_into_it(
        contents in prop::collection::vec((0..SLOTS_MAX, any::<u64>(), any::<u8>()), 0..50),
    ) {
        for (format, _) in every() {
            let (mut block, mut model) = (Block::zeroed(), [(0, 0); SLOTS_MAX]);
            for &(slot, content, stamp) in contents.iter().filter(|it| it.0 < format.slots) {
                model[slot] = (content & format.mask, stamp & mask(format));
                format.put(&mut block, slot, model[slot].0, Stamp(model[slot].1));
            }
            for (slot, &(content, stamp)) in model.iter().enumerate().take(format.slots) {
                prop_assert_eq!(format.get(&block, slot), content);
                prop_assert_eq!(format.stamp(&block, slot), Stamp(stamp));
            }
        }
    }
}
