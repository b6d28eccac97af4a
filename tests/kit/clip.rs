//! Clips `[1, c, t, h, w]`, and the parts in which they run.

use wgvae::model::blocks::Part;
use wgvae::model::graph::Graph;
use wgvae::plan::turns::Turn;
use wgvae::{HostTensor, Latents, Size};

/// Returns width and height of a frame.
pub fn size_of_frame(clip: &HostTensor) -> Size {
    let [width, height] = [4, 3].map(|axis| u32::try_from(clip.shape[axis]).unwrap());
    Size { width, height }
}

/// Returns frames `range` of a clip `[1, c, t, h, w]`, as parts take them: `[t, c, h, w]`. Beyond
/// its end, the last frame is repeated.
pub fn frames_of(clip: &HostTensor, range: std::ops::Range<usize>) -> Vec<f32> {
    let [_, channels, count, height, width] = clip.shape[..] else { panic!("{:?} is no clip", clip.shape) };
    let plane = height * width;
    let planes = range.flat_map(|frame| (0..channels).map(move |channel| channel * count + frame.min(count - 1)));
    planes.flat_map(|index| clip.data[index * plane..][..plane].to_vec()).collect()
}

/// Returns a clip as latents, with one image for each frame.
pub fn latents_of(clip: &HostTensor) -> Latents {
    let [_, channels, count, height, width] = clip.shape[..] else { panic!("{:?} is no clip", clip.shape) };
    Latents::new(HostTensor { shape: vec![count, channels, height, width], data: frames_of(clip, 0..count) }).unwrap()
}

/// Returns a clip's parts: `first` frames, and then `step` frames at a time, the last part filled
/// up.
pub fn parts(count: usize, first: usize, step: usize) -> impl Iterator<Item = (Part, std::ops::Range<usize>)> {
    let next = (first..count).step_by(step).map(move |start| (Part::Next, start..start + step));
    std::iter::once((Part::First, 0..first)).chain(next)
}

/// Returns the parts of a clip of `count` frames as [`parts`] does, with their turns, and `after`
/// parts without frames.
pub fn turns(
    count: usize,
    (first, step): (usize, usize),
    after: u32,
) -> impl Iterator<Item = (Turn, Part, Option<std::ops::Range<usize>>)> {
    let fed = parts(count, first, step).map(|(part, range)| (part, Some(range)));
    let latents = parts(count, first, step).count() as u64;
    let all = fed.chain((0..after).map(|_| (Part::Next, None)));
    (0..).zip(all).map(move |(index, (part, range))| {
        let turn = Turn { part: index, latents: (index >= latents).then_some(latents) };
        (turn, part, range)
    })
}

/// Returns the number of parts after that of the last latent.
pub fn parts_after(graph: &Graph) -> u32 {
    graph.shape(graph.nodes.last().unwrap().output).delay()
}
