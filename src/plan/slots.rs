//! Chooses the sizes of the slots for [`crate::plan::spill`].
//!
//! Most buffers are chunks of about one size. Larger ones are few: transformed inputs, products and
//! filters of Winograd convolutions, weights, blocks of attention. Steps in a row use the same ones
//! again and again. So a plan has a slot for each large buffer that a stretch of steps uses. The
//! rest of the room is slots for chunks, and two for small buffers. Chunks also use the large slots
//! while these are free.

use crate::plan::ALIGNMENT;
use crate::plan::uses::{Item, Uses};
use crate::tensor::Bytes;

/// Lengths of the stretches that are tried, in steps. Each single step finds slots for its large
/// buffers in any case.
const STRETCHES: [usize; 8] = [32, 24, 16, 12, 8, 6, 4, 2];
/// Fewest slots for chunks.
const LEAST_CHUNKS: u64 = 2;

/// Returns lists of the sizes of slots that take at most `room` bytes together: first those with
/// which least should move. `chunk` is the most bytes of a chunk. Only slots for items that are
/// larger than `most` exceed it. The first list is mostly taken, so each is made when it is asked
/// for.
pub(super) fn choices(uses: &Uses, room: Bytes, chunk: Bytes, most: Bytes) -> impl Iterator<Item = Vec<Bytes>> {
    let limit = chunk.align_up(ALIGNMENT);
    // The largest chunk may be smaller than chunks may be.
    let mut chunk = Bytes(ALIGNMENT);
    for bytes in &uses.bytes {
        if *bytes <= limit {
            chunk = chunk.max(*bytes);
        }
    }
    let used = large(uses, chunk);
    let stretches = STRETCHES.len();
    let mut made: Vec<Vec<Bytes>> = Vec::new();
    let mut before: Option<Vec<Bytes>> = None;
    (0..=2 * stretches).filter_map(move |index| {
        // Last come the sizes that single steps need.
        if let Some(stretch) = STRETCHES.iter().chain(&[1]).nth(made.len()) {
            made.push(ranks(uses, &used, *stretch));
        }
        let mut sizes = match (index / stretches, index % stretches) {
            (0, index) => made[index].clone(),
            // Where the largest items of a stretch find no slots, the smaller ones may.
            (1, index) => {
                let least = made[stretches].iter();
                least.chain(made[index].iter().skip(made[stretches].len())).copied().collect()
            }
            _ => made[stretches].clone(),
        };
        if before.replace(sizes.clone()).as_ref() == Some(&sizes) {
            return None;
        }
        fill(&mut sizes, room, chunk, most).then_some(sizes)
    })
}

/// Adds as many smaller slots to `slots` as `room` has place for. Returns false if there is not
/// enough.
fn fill(slots: &mut Vec<Bytes>, room: Bytes, chunk: Bytes, most: Bytes) -> bool {
    // Norms and biases are small, and would divide larger slots.
    slots.extend([Bytes(chunk.0 / 4).align_up(ALIGNMENT); 2]);
    let Some(left) = room.0.checked_sub(slots.iter().copied().sum::<Bytes>().0) else { return false };
    let (chunks, rest) = (left / chunk.0, left % chunk.0 / ALIGNMENT * ALIGNMENT);
    slots[0].0 += rest.min(most.0.saturating_sub(slots[0].0));
    for _ in 0..chunks {
        slots.push(chunk);
    }
    chunks >= LEAST_CHUNKS
}

/// Returns the uses of items that are larger than a chunk: steps and items, in order of the steps.
fn large(uses: &Uses, chunk: Bytes) -> Vec<(usize, Item)> {
    let mut used = Vec::new();
    for step in 0..uses.steps() {
        for (item, _) in &uses.items[uses.range(step)] {
            if uses.bytes[*item] > chunk {
                used.push((step, *item));
            }
        }
    }
    used
}

/// Returns, for each rank by size, the most bytes of the item that has this rank among those that
/// `stretch` steps use. `used` are the uses that count.
fn ranks(uses: &Uses, used: &[(usize, Item)], stretch: usize) -> Vec<Bytes> {
    let mut most: Vec<Bytes> = Vec::new();
    // The sizes of the items of one stretch, the largest first, and the start of the stretch that
    // counted each item last.
    let (mut sizes, mut counted) = (Vec::new(), vec![usize::MAX; uses.bytes.len()]);
    // A stretch begins at each half of one.
    let half = (stretch / 2).max(1);
    let mut start = 0;
    while start < used.len() {
        let first = used[start].0 / half * half;
        let before = |end: usize| used[start..].iter().take_while(move |(step, _)| *step < end);
        sizes.clear();
        for (_, item) in before(first + stretch) {
            if std::mem::replace(&mut counted[*item], start) != start {
                let size = uses.bytes[*item];
                sizes.insert(sizes.partition_point(|larger| *larger > size), size);
            }
        }
        most.resize(most.len().max(sizes.len()), Bytes(0));
        most.iter_mut().zip(&sizes).for_each(|(most, size)| *most = (*size).max(*most));
        start += before(first + half).count();
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::DeviceLimits;
    use crate::model::config::{Family, LatentSpace};
    use crate::model::networks::decoder;
    use crate::plan::{Output, Plan, PlanOptions, Weights, fuse};
    use crate::tensor::{Size, Storage};

    #[test]
    fn without_large_buffers_there_is_one_list_of_chunks() {
        let config = Family::find("sd15").expect("a published one").config();
        let graph = decoder(&config, Size { width: 8, height: 8 }, LatentSpace::Vae);
        let options = PlanOptions::new(Storage::F32, Output::Rgba8);
        let plan = Plan::of(&fuse::fuse(&graph, 1.0), &DeviceLimits::webgpu_default(), &options).expect("a plan");
        let uses = Uses::new(&plan, &[], &plan.buffers, Weights::Device);
        let (room, chunk) = (Bytes(64 << 20), Bytes(1 << 20));
        let lists: Vec<_> = choices(&uses, room, chunk, Bytes(1 << 28)).collect();
        let [sizes] = &lists[..] else { panic!("{lists:?}") };
        let taken = sizes.iter().copied().sum::<Bytes>();
        assert!(taken <= room && room.0 - taken.0 < chunk.0, "{taken} of {room}");
    }
}
