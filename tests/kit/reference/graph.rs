//! Definition of a graph's result: every operation in f64, by loops over its definition.
//!
//! This code knows nothing about plans. Tensors are `[h, w, frames, c]`; the input and the output
//! are planar, `[frames, c, h, w]`.

use std::collections::BTreeMap;

use wgvae::HostTensor;
use wgvae::config::Packing;
use wgvae::model::graph::{
    Activation, Border, Conv2d, Doubling, Ending, Graph, GraphNode, Op, PastFrames, PixelNormKind, Regroup, Shape,
    Sight, Transform, WINDOW, Weight, WeightSlice,
};
use wgvae::plan::turns::Turn;

/// Tensors of a file, by their names in diffusers' spelling.
pub type Weights = BTreeMap<String, HostTensor>;

/// States of earlier parts of a clip: the past frames that each convolution reads, by its name.
pub type States = BTreeMap<String, Tensor>;

/// Tensor `[h, w, frames, c]`.
#[derive(Debug, Clone)]
pub struct Tensor {
    height: usize,
    width: usize,
    frames: usize,
    channels: usize,
    data: Vec<f64>,
}

/// Returns the output of `graph` for `input`, with the weights of a file.
pub fn evaluate(graph: &Graph, weights: &Weights, input: &[f32]) -> Vec<f64> {
    evaluate_and_measure(graph, weights, input).0
}

/// Returns the output of a part of a clip, with the states of earlier parts. After the last latents
/// there is no `input`, and zeros take its place.
pub fn evaluate_part(
    graph: &Graph,
    weights: &Weights,
    input: Option<&[f32]>,
    turn: Turn,
    states: &mut States,
) -> Vec<f64> {
    let Shape { height, width, channels, .. } = graph.shapes[0];
    let zeros = vec![0.0; size(height * width * channels)];
    planar(tensors(graph, weights, input.unwrap_or(&zeros), turn, states).last().expect("an output"))
}

/// Returns the output, and the largest magnitude of any tensor on the way.
pub fn evaluate_and_measure(graph: &Graph, weights: &Weights, input: &[f32]) -> (Vec<f64>, f64) {
    let tensors = tensors(graph, weights, input, Turn::default(), &mut States::new());
    let values = tensors.iter().flat_map(|tensor| &tensor.data);
    let largest = values.fold(0.0_f64, |most, value| most.max(value.abs()));
    (planar(tensors.last().expect("an output")), largest)
}

fn tensors(graph: &Graph, weights: &Weights, input: &[f32], turn: Turn, states: &mut States) -> Vec<Tensor> {
    let mut tensors: Vec<Tensor> = Vec::new();
    for node in &graph.nodes {
        let inputs: Vec<&Tensor> = node.inputs.iter().map(|id| &tensors[id.0]).collect();
        let tensor = if node.op == Op::Window {
            window(&node.name, graph.shape(node.inputs[0]), inputs[0], turn, states)
        } else {
            run(node, graph.shape(node.output), &inputs, weights, input, states)
        };
        let Shape { frames, height, width, channels, .. } = graph.shape(node.output);
        assert_eq!(
            [tensor.frames, tensor.height, tensor.width, tensor.channels],
            [frames, height, width, channels].map(size),
            "{}",
            node.name
        );
        assert_eq!(node.output.0, tensors.len(), "{} is out of order", node.name);
        tensors.push(tensor);
    }
    tensors
}

fn run(
    node: &GraphNode,
    shape: Shape,
    inputs: &[&Tensor],
    weights: &Weights,
    input: &[f32],
    states: &mut States,
) -> Tensor {
    let weight = |part: &str| values(&weights[&format!("{}.{part}", node.name)]);
    match (&node.op, inputs) {
        (Op::Input(transform), []) => read(transform, shape, input),
        (Op::Conv2d(conv), [x]) => over_frames(conv, &node.name, size(shape.channels), x, weights, states),
        (Op::GroupNorm { groups, eps }, [x]) => {
            group_norm(x, size(*groups), f64::from(*eps), &weight("weight"), &weight("bias"))
        }
        (Op::PixelNorm(PixelNormKind::Gamma), [x]) => pixel_norm(x, 1e-12, 0.0, &weight("gamma")),
        (Op::PixelNorm(PixelNormKind::Affine), [x]) => {
            let bias = weight("bias");
            with_channels(&pixel_norm(x, 0.0, 1e-5, &weight("weight")), |channel, value| value + bias[channel])
        }
        (Op::PixelNorm(PixelNormKind::Plain), [x]) => pixel_norm(x, 0.0, 1e-8, &vec![1.0; x.channels]),
        (Op::Activate(Activation::Silu), [x]) => map(x, |value| value / (1.0 + (-value).exp())),
        (Op::Activate(Activation::Relu), [x]) => map(x, |value| value.max(0.0)),
        (Op::Keep { by, frames }, [x]) => {
            let last = (x.frames - size(*frames)..x.frames).map(|frame| x.frame(frame));
            states.insert(by.clone(), Tensor::of_frames(&last.collect::<Vec<_>>()));
            (*x).clone()
        }
        (Op::Double(doubling), [x]) => double(*doubling, x),
        (Op::Add, [residual, branch]) => add(residual, branch),
        (Op::Regroup(kind), [x]) => regroup(*kind, shape, x),
        (Op::Regroup(kind), [x, sum]) => add(&regroup(*kind, shape, x), sum),
        (Op::Gate, [x]) => gate(x),
        (Op::LinearAttention { head_dim }, inputs) => linear_attention(inputs, size(*head_dim)),
        (Op::Attention(Sight::Own), [query, key, value]) => attention(query, key, value),
        (Op::Attention(sight), [query, key, value]) => {
            let [keys, values] = [("keys", key), ("values", value)].map(|(what, own)| {
                let state = format!("{} ({what})", node.name);
                let earlier = states.remove(&state).filter(|_| *sight == Sight::UpToOwn);
                let frames = earlier.iter().flat_map(|all| (0..all.frames).map(|frame| all.frame(frame)));
                let seen = Tensor::of_frames(&frames.chain([(*own).clone()]).collect::<Vec<_>>());
                states.insert(state, seen.clone());
                seen
            });
            attention_of_frame(query, &keys, &values)
        }
        (Op::Output(ending), [x]) => finish(*ending, x),
        (op, inputs) => panic!("{op:?} with {} inputs", inputs.len()),
    }
}

/// Returns the frames of `x`, whose shape is `shape`, with those before them. Beyond the ends of
/// the clip are copies of its first and last frame; frames that no part needs are zeros.
fn window(name: &str, shape: Shape, x: &Tensor, turn: Turn, states: &mut States) -> Tensor {
    let (count, own) = (i64::from(shape.frames), i64::from(shape.first));
    let first = own + i64::try_from(turn.part).unwrap() * count;
    let end = turn.latents.map_or(i64::MAX, |latents| (i64::try_from(latents).unwrap() - 1) * count + 1);
    let before = i64::from(WINDOW);
    let frame = |index: i64| {
        let place = index.clamp(0, end - 1) - first;
        let past = states.get(name).filter(|_| (-before..0).contains(&place));
        match (usize::try_from(place), past) {
            (Ok(place), _) if place < x.frames => x.frame(place),
            (Err(_), Some(past)) => past.frame(usize::try_from(place + before).unwrap()),
            _ => Tensor::zeros(x.size(), 1, x.channels),
        }
    };
    let window = Tensor::of_frames(&(first - before..first + count).map(frame).collect::<Vec<_>>());
    let last = window.frames - size(WINDOW)..window.frames;
    states.insert(name.to_owned(), Tensor::of_frames(&last.map(|frame| window.frame(frame)).collect::<Vec<_>>()));
    window
}

impl Tensor {
    fn zeros([height, width]: [usize; 2], frames: usize, channels: usize) -> Self {
        Self { height, width, frames, channels, data: vec![0.0; height * width * frames * channels] }
    }

    fn size(&self) -> [usize; 2] {
        [self.height, self.width]
    }

    fn at(&self, row: usize, column: usize, frame: usize) -> usize {
        ((row * self.width + column) * self.frames + frame) * self.channels
    }

    fn pixel(&self, row: usize, column: usize, frame: usize) -> &[f64] {
        &self.data[self.at(row, column, frame)..][..self.channels]
    }

    fn pixel_mut(&mut self, row: usize, column: usize, frame: usize) -> &mut [f64] {
        let at = self.at(row, column, frame);
        &mut self.data[at..][..self.channels]
    }

    /// Returns one frame.
    fn frame(&self, frame: usize) -> Self {
        let pixels = self.data.chunks(self.frames * self.channels);
        let data = pixels.flat_map(|pixel| pixel[frame * self.channels..][..self.channels].to_vec()).collect();
        Self { data, frames: 1, ..*self }
    }

    /// Joins frames in order.
    fn of_frames(frames: &[Self]) -> Self {
        let mut all = Self::zeros(frames[0].size(), frames.len(), frames[0].channels);
        for (index, frame) in frames.iter().enumerate() {
            for pixel in 0..all.height * all.width {
                let at = (pixel * all.frames + index) * all.channels;
                all.data[at..][..all.channels].copy_from_slice(&frame.data[pixel * all.channels..][..all.channels]);
            }
        }
        all
    }

    /// Applies `of` to each frame.
    fn each_frame(&self, of: impl Fn(&Self) -> Self) -> Self {
        Self::of_frames(&(0..self.frames).map(|frame| of(&self.frame(frame))).collect::<Vec<_>>())
    }
}

fn read(transform: &Transform, shape: Shape, input: &[f32]) -> Tensor {
    let mut tensor = Tensor::zeros([shape.height, shape.width].map(size), size(shape.frames), size(shape.channels));
    let patch = size(transform.patch);
    let planes = transform.factor.len();
    let (rows, columns) = (tensor.height / patch, tensor.width / patch);
    assert_eq!(input.len(), tensor.data.len(), "values of the input");
    if transform.packing == Packing::Unpacked {
        return read_unpacked(transform, tensor, input);
    }
    for (index, &value) in input.iter().enumerate() {
        let (column, row, plane) = (index % columns, index / columns % rows, index / columns / rows);
        let (frame, channel) = (plane / planes, plane % planes);
        let scaled = f64::from(transform.factor[channel]) * f64::from(value) + f64::from(transform.offset[channel]);
        let value = if transform.squash { 3.0 * (scaled / 3.0).tanh() } else { scaled };
        let squares = patch * patch;
        let (own, place) = match transform.packing {
            Packing::ByPlace => (channel % (planes / squares), channel / (planes / squares)),
            Packing::ByChannel | Packing::Unpacked => (channel / squares, channel % squares),
        };
        tensor.pixel_mut(row * patch + place / patch, column * patch + place % patch, frame)[own] = value;
    }
    tensor
}

/// Reads an input without packing: its pixels are at the tensor's positions. Its factors, however,
/// are given for patches in the channels.
fn read_unpacked(transform: &Transform, mut tensor: Tensor, input: &[f32]) -> Tensor {
    let patch = size(transform.patch);
    for (index, &value) in input.iter().enumerate() {
        let (column, row, channel) =
            (index % tensor.width, index / tensor.width % tensor.height, index / tensor.width / tensor.height);
        let factor = channel * patch * patch + row % patch * patch + column % patch;
        let scaled = f64::from(transform.factor[factor]) * f64::from(value) + f64::from(transform.offset[factor]);
        tensor.pixel_mut(row, column, 0)[channel] = scaled;
    }
    tensor
}

/// Computes a convolution over `x` and its past frames, and keeps the frames for the next part.
fn over_frames(
    conv: &Conv2d,
    name: &str,
    channels: usize,
    x: &Tensor,
    weights: &Weights,
    states: &mut States,
) -> Tensor {
    let own = (0..x.frames).map(|frame| x.frame(frame));
    let past: Vec<Tensor> = match conv.time {
        None => Vec::new(),
        Some(time) => match time.past {
            PastFrames::Window => Vec::new(),
            PastFrames::Copies => (0..time.before()).map(|_| x.frame(0)).collect(),
            PastFrames::Kept => (0..size(time.before()))
                .map(|frame| {
                    states.get(name).map_or(Tensor::zeros(x.size(), 1, x.channels), |state| state.frame(frame))
                })
                .collect(),
        },
    };
    let seen: Vec<Tensor> = past.into_iter().chain(own).collect();
    if let Some(time) = conv.time.filter(|time| time.kept() > 0) {
        states.insert(name.to_owned(), Tensor::of_frames(&seen[seen.len() - size(time.kept())..]));
    }
    let phases = size(conv.phases);
    let (taps, stride) = conv.time.map_or((1, 1), |time| (size(time.taps), size(time.stride)));
    let seen_by_one = x.channels / size(conv.groups) * taps * size(conv.window.side).pow(2);
    let filters = taken(&conv.weight, weights, channels * phases * seen_by_one);
    let bias = taken(&conv.bias, weights, channels * phases);
    let mut frames = Vec::new();
    for first in (0..=seen.len() - taps).step_by(stride) {
        let mut sum = convolution(conv, &in_tap(&filters, conv, taps, 0), &bias, &seen[first]);
        for tap in 1..taps {
            let part =
                convolution(conv, &in_tap(&filters, conv, taps, tap), &vec![0.0; bias.len()], &seen[first + tap]);
            sum = add(&sum, &part);
        }
        // The channels consist of phases one after the other; each phase becomes a frame.
        frames.extend((0..phases).map(|phase| {
            let pixels = sum.data.chunks(sum.channels);
            let data = pixels.flat_map(|pixel| pixel[phase * channels..][..channels].to_vec()).collect();
            Tensor { data, channels, ..sum }
        }));
    }
    Tensor::of_frames(&frames)
}

/// Returns the place that is read in place of `from`, both counted from one before the first of
/// `extent`.
fn mirrored(from: usize, extent: usize) -> usize {
    match from {
        0 => 2,
        _ if from == extent + 1 => extent - 1,
        _ => from,
    }
}

/// Returns one tap in time of a filter `[c_out, c_in, taps, side, side]`.
fn in_tap(filter: &[f64], conv: &Conv2d, taps: usize, tap: usize) -> Vec<f64> {
    let area = size(conv.window.side).pow(2);
    let filters = filter.chunks(taps * area);
    filters.flat_map(|filter| filter[tap * area..][..area].to_vec()).collect()
}

/// Computes a convolution of one frame.
fn convolution(conv: &Conv2d, filter: &[f64], bias: &[f64], x: &Tensor) -> Tensor {
    let c_out = bias.len();
    let (side, stride) = (size(conv.window.side), size(conv.window.stride));
    let before = match conv.window.border {
        Border::Around | Border::Mirror | Border::Copies | Border::Opposite => side / 2,
        Border::After => 0,
    };
    let after = match conv.window.border {
        Border::Around | Border::Mirror | Border::Copies | Border::Opposite => side / 2,
        Border::After => 1,
    };
    let extent = |extent: usize| (extent + before + after - side) / stride + 1;
    let filter = by_output(filter, c_out);
    let mut y = Tensor::zeros(x.size().map(extent), 1, c_out);
    for row in 0..y.height {
        for column in 0..y.width {
            let sums = y.pixel_mut(row, column, 0);
            sums.copy_from_slice(bias);
            for (tap, (dy, dx)) in (0..side).flat_map(|dy| (0..side).map(move |dx| (dy, dx))).enumerate() {
                let [from_row, from_column] =
                    [(row * stride + dy, x.height), (column * stride + dx, x.width)].map(|(from, extent)| {
                        match conv.window.border {
                            Border::Mirror => mirrored(from, extent),
                            Border::Copies => from.clamp(1, extent),
                            Border::Opposite => (from + extent - 1) % extent + 1,
                            Border::Around | Border::After => from,
                        }
                    });
                let inside = (before..before + x.height).contains(&from_row)
                    && (before..before + x.width).contains(&from_column);
                if !inside {
                    continue;
                }
                let groups = size(conv.groups);
                let (group_in, group_out) = (x.channels / groups, c_out / groups);
                for (channel, &value) in x.pixel(from_row - before, from_column - before, 0).iter().enumerate() {
                    let factors = &filter[(channel % group_in * side * side + tap) * c_out..][..c_out];
                    let own = channel / group_in * group_out..(channel / group_in + 1) * group_out;
                    sums[own.clone()].iter_mut().zip(&factors[own]).for_each(|(sum, factor)| *sum += value * factor);
                }
            }
        }
    }
    y
}

/// Transposes `[c_out, rest]` to `[rest, c_out]`.
fn by_output(filter: &[f64], c_out: usize) -> Vec<f64> {
    let rest = filter.len() / c_out;
    (0..filter.len()).map(|index| filter[index % c_out * rest + index / c_out]).collect()
}

/// Returns the `count` values of a weight's take from its tensor.
fn taken(weight: &Weight, weights: &Weights, count: usize) -> Vec<f64> {
    let stored = || &weights.get(&weight.name).unwrap_or_else(|| panic!("no tensor {}", weight.name)).data;
    let stored = || stored().iter().map(|value| f64::from(*value)).collect::<Vec<f64>>();
    let taken = match weight.take {
        WeightSlice::All | WeightSlice::Filled { .. } => stored(),
        WeightSlice::Tap { taps, index } => in_time(weight, weights, taps, |frames| frames[size(index)]),
        WeightSlice::SumOfTaps { taps } => in_time(weight, weights, taps, |frames| frames.iter().sum()),
        WeightSlice::Rows { start, block, step, of, summed } => {
            let stored = match summed {
                1 => stored(),
                taps => in_time(weight, weights, taps, |frames| frames.iter().sum()),
            };
            let row = stored.len() / size(of);
            let rows = (0..size(of))
                .filter(|index| index.checked_sub(size(start)).is_some_and(|index| index % size(step) < size(block)));
            rows.flat_map(|index| stored[index * row..][..row].to_vec()).collect()
        }
        WeightSlice::Frames { frames, parts, block } => {
            let [frames, parts, block] = [frames, parts, block].map(size);
            let stored = stored();
            let row = stored.len() / (frames * parts * block);
            let rows = (0..frames).flat_map(|frame| {
                (0..parts).flat_map(move |part| (0..block).map(move |c| (part * frames + frame) * block + c))
            });
            rows.flat_map(|index| stored[index * row..][..row].to_vec()).collect()
        }
        WeightSlice::Inputs { start, count: groups, of } => {
            let [start, groups, of] = [start, groups, of].map(size);
            let stored = stored();
            let tensor = &weights[&weight.name];
            let group = stored.len() / tensor.shape[0] / of;
            let rows = stored.chunks(group * of);
            let sum = |row: &[f64], at: usize| (start..start + groups).map(|index| row[index * group + at]).sum();
            rows.flat_map(|row| (0..group).map(|at| sum(row, at)).collect::<Vec<f64>>()).collect()
        }
        WeightSlice::InputTaps { taps, latest_first } => {
            let (stored, taps) = (stored(), size(taps));
            let shape = &weights[&weight.name].shape;
            let (c_out, c_in) = (shape[0], shape[1] / taps);
            let area = stored.len() / (c_out * shape[1]);
            let group = |tap: usize| if latest_first { taps - 1 - tap } else { tap };
            let filters = (0..c_out).flat_map(|out| (0..c_in).map(move |input| (out, input)));
            let places = filters
                .flat_map(|(out, input)| (0..taps).map(move |tap| ((out * taps + group(tap)) * c_in + input) * area));
            places.flat_map(|at| stored[at..][..area].to_vec()).collect()
        }
        WeightSlice::Zeros => vec![0.0; count],
        WeightSlice::Ones => vec![1.0; count],
        WeightSlice::Transform => panic!("the transform of the input is no weight of a convolution"),
    };
    assert_eq!(taken.len(), count, "values taken of {}", weight.name);
    taken
}

/// Reduces all `taps` in time of each position of a filter `[c_out, c_in, taps, h, w]` to one
/// value, by `of`.
fn in_time(weight: &Weight, weights: &Weights, taps: u32, of: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let tensor = &weights[&weight.name];
    let [c_out, c_in, stored_taps, height, width] = tensor.shape[..] else { panic!("shape of {}", weight.name) };
    assert_eq!(stored_taps, size(taps), "taps of {}", weight.name);
    let area = height * width;
    let place = |index: usize| {
        let (filter, place) = (index / area, index % area);
        let frames = (0..stored_taps).map(|tap| f64::from(tensor.data[(filter * stored_taps + tap) * area + place]));
        of(&frames.collect::<Vec<f64>>())
    };
    (0..c_out * c_in * area).map(place).collect()
}

fn group_norm(x: &Tensor, groups: usize, eps: f64, weight: &[f64], bias: &[f64]) -> Tensor {
    x.each_frame(|x| group_norm_of_frame(x, groups, eps, weight, bias))
}

fn group_norm_of_frame(x: &Tensor, groups: usize, eps: f64, weight: &[f64], bias: &[f64]) -> Tensor {
    let each = x.channels / groups;
    let mut moments = vec![(0.0, 0.0); groups];
    for (index, value) in x.data.iter().enumerate() {
        moments[index % x.channels / each].0 += value;
    }
    #[expect(clippy::cast_precision_loss, reason = "small tensors")]
    let count = (each * x.height * x.width) as f64;
    moments.iter_mut().for_each(|(mean, _)| *mean /= count);
    for (index, value) in x.data.iter().enumerate() {
        let (mean, variance) = &mut moments[index % x.channels / each];
        *variance += (value - *mean).powi(2) / count;
    }
    with_channels(x, |channel, value| {
        let (mean, variance) = moments[channel / each];
        (value - mean) / (variance + eps).sqrt() * weight[channel] + bias[channel]
    })
}

fn pixel_norm(x: &Tensor, least: f64, eps: f64, gamma: &[f64]) -> Tensor {
    #[expect(clippy::cast_precision_loss, reason = "few channels")]
    let root = (x.channels as f64).sqrt();
    let lengths: Vec<f64> = x
        .data
        .chunks(x.channels)
        .map(|pixel| (pixel.iter().map(|v| v * v).sum::<f64>() + eps * root * root).sqrt())
        .collect();
    let data = x
        .data
        .iter()
        .enumerate()
        .map(|(index, value)| value / lengths[index / x.channels].max(least) * root * gamma[index % x.channels]);
    Tensor { data: data.collect(), ..*x }
}

fn double(doubling: Doubling, x: &Tensor) -> Tensor {
    x.each_frame(|x| double_frame(doubling, x))
}

fn double_frame(doubling: Doubling, x: &Tensor) -> Tensor {
    let channels = match doubling {
        Doubling::Nearest => x.channels,
        Doubling::Shuffle => x.channels / 4,
    };
    let mut y = Tensor::zeros(x.size().map(|extent| extent * 2), 1, channels);
    for row in 0..y.height {
        for column in 0..y.width {
            let from = x.pixel(row / 2, column / 2, 0);
            let first = match doubling {
                Doubling::Nearest => 0,
                Doubling::Shuffle => (row % 2 * 2 + column % 2) * channels,
            };
            y.pixel_mut(row, column, 0).copy_from_slice(&from[first..][..channels]);
        }
    }
    y
}

fn add(residual: &Tensor, branch: &Tensor) -> Tensor {
    let data = residual.data.iter().zip(&branch.data).map(|(left, right)| left + right).collect();
    Tensor { data, ..*residual }
}

/// Moves places into channels, takes means, and copies channels.
fn regroup(kind: Regroup, shape: Shape, x: &Tensor) -> Tensor {
    let mut y = Tensor::zeros([shape.height, shape.width].map(size), size(shape.frames), size(shape.channels));
    if let Some(down) = kind.row {
        for (row, column, _, channel) in positions(x) {
            let (right, target) = (channel / y.channels, channel % y.channels);
            y.pixel_mut(row * 2 + size(down), column * 2 + right, 0)[target] = x.pixel(row, column, 0)[channel];
        }
        return y;
    }
    let (first, read) = kind.read(u32::try_from(x.frames).unwrap());
    let read = Tensor::of_frames(&(first..first + read).map(|frame| x.frame(size(frame))).collect::<Vec<_>>());
    let x = &read;
    let (side, frames) = (size(kind.side()), size(kind.frames));
    let copies = kind.copies(u32::try_from(x.channels).unwrap(), shape.channels);
    let larger = if copies { y.channels } else { x.channels };
    // The channel and the place of number `index` of all places of all channels.
    let place = |index: usize| {
        let places = frames * side * side;
        let (channel, place) =
            if kind.by_place { (index % larger, index / larger) } else { (index / places, index % places) };
        let (down, right) =
            if kind.by_column { (place % side, place / side % side) } else { (place / side % side, place % side) };
        (channel, place / (side * side), down, right)
    };
    let missing = size(kind.missing);
    if copies {
        let copies = y.channels * frames * side * side / x.channels;
        for (row, column, frame, channel) in positions(x) {
            for copy in 0..copies {
                let index = if kind.tiled { copy * x.channels + channel } else { channel * copies + copy };
                let (target, time, down, right) = place(index);
                if let Some(time) = (frame * frames + time).checked_sub(missing) {
                    y.pixel_mut(row * side + down, column * side + right, time)[target] =
                        x.pixel(row, column, frame)[channel];
                }
            }
        }
        return y;
    }
    let count = x.channels * frames * side * side / y.channels;
    #[expect(clippy::cast_precision_loss, reason = "few numbers")]
    let all = count as f64;
    for (row, column, frame, channel) in positions(&y.clone()) {
        let numbers =
            (channel * count..(channel + 1) * count).map(place).map(|(source, time, down, right)| {
                match (frame * frames + time).checked_sub(missing) {
                    Some(time) => x.pixel(row * side + down, column * side + right, time)[source],
                    None if kind.repeats_first => x.pixel(row * side + down, column * side + right, 0)[source],
                    None => 0.0,
                }
            });
        y.pixel_mut(row, column, frame)[channel] = numbers.sum::<f64>() / all;
    }
    y
}

/// Lists row, column, frame and channel of each number.
fn positions(x: &Tensor) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let (width, frames, channels) = (x.width, x.frames, x.channels);
    (0..x.data.len()).map(move |at| {
        let (pixel, frame) = (at / channels / frames, at / channels % frames);
        (pixel / width, pixel % width, frame, at % channels)
    })
}

fn gate(x: &Tensor) -> Tensor {
    let mut y = Tensor::zeros(x.size(), x.frames, x.channels / 2);
    for (x, y) in x.data.chunks(x.channels).zip(y.data.chunks_mut(x.channels / 2)) {
        let (values, gates) = x.split_at(y.len());
        y.iter_mut().zip(values).zip(gates).for_each(|((y, value), gate)| *y = value * gate / (1.0 + (-gate).exp()));
    }
    y
}

fn linear_attention(inputs: &[&Tensor], head_dim: usize) -> Tensor {
    let heads: Vec<usize> = inputs.iter().map(|input| input.channels / (3 * head_dim)).collect();
    let mut y = Tensor::zeros(inputs[0].size(), 1, heads.iter().sum::<usize>() * head_dim);
    let mut first = 0;
    for (input, heads) in inputs.iter().zip(heads) {
        let pixels: Vec<&[f64]> = input.data.chunks(input.channels).collect();
        for head in 0..heads {
            // Query, key and value of a pixel.
            let part = |pixel: &[f64], part: usize| pixel[(head * 3 + part) * head_dim..][..head_dim].to_vec();
            let cut = |values: Vec<f64>| values.into_iter().map(|value| value.max(0.0)).collect::<Vec<_>>();
            let keys: Vec<Vec<f64>> = pixels.iter().map(|pixel| cut(part(pixel, 1))).collect();
            let values: Vec<Vec<f64>> = pixels.iter().map(|pixel| part(pixel, 2)).collect();
            for (index, pixel) in pixels.iter().enumerate() {
                let query = cut(part(pixel, 0));
                let dot = |key: &Vec<f64>| query.iter().zip(key).map(|(q, k)| q * k).sum::<f64>();
                let scores: Vec<f64> = keys.iter().map(dot).collect();
                let divisor = scores.iter().sum::<f64>() + 1e-15;
                for channel in 0..head_dim {
                    let sum: f64 = scores.iter().zip(&values).map(|(score, value)| score * value[channel]).sum();
                    y.data[index * y.channels + first + head * head_dim + channel] = sum / divisor;
                }
            }
        }
        first += heads * head_dim;
    }
    y
}

fn attention(query: &Tensor, key: &Tensor, value: &Tensor) -> Tensor {
    let frame = |frame| attention_of_frame(&query.frame(frame), &key.frame(frame), &value.frame(frame));
    Tensor::of_frames(&(0..value.frames).map(frame).collect::<Vec<_>>())
}

fn attention_of_frame(query: &Tensor, key: &Tensor, value: &Tensor) -> Tensor {
    #[expect(clippy::cast_precision_loss, reason = "few channels")]
    let scale = 1.0 / (query.channels as f64).sqrt();
    let mut y = Tensor::zeros(query.size(), 1, value.channels);
    for (query, sums) in query.data.chunks(query.channels).zip(y.data.chunks_mut(value.channels)) {
        let dot = |key: &[f64]| query.iter().zip(key).map(|(q, k)| q * k).sum::<f64>() * scale;
        let scores: Vec<f64> = key.data.chunks(key.channels).map(dot).collect();
        let largest = scores.iter().copied().fold(f64::MIN, f64::max);
        let total: f64 = scores.iter().map(|score| (score - largest).exp()).sum();
        for (score, value) in scores.iter().zip(value.data.chunks(value.channels)) {
            let share = (score - largest).exp() / total;
            sums.iter_mut().zip(value).for_each(|(sum, value)| *sum += share * value);
        }
    }
    y
}

fn finish(ending: Ending, x: &Tensor) -> Tensor {
    map(x, |value| {
        let value = f64::from(ending.factor) * value + f64::from(ending.offset);
        if ending.clamp { value.clamp(-1.0, 1.0) } else { value }
    })
}

fn map(x: &Tensor, of: impl Fn(f64) -> f64) -> Tensor {
    with_channels(x, |_, value| of(value))
}

fn with_channels(x: &Tensor, of: impl Fn(usize, f64) -> f64) -> Tensor {
    let data = x.data.iter().enumerate().map(|(index, value)| of(index % x.channels, *value)).collect();
    Tensor { data, ..*x }
}

fn planar(x: &Tensor) -> Vec<f64> {
    let (pixels, pixel) = (x.height * x.width, x.frames * x.channels);
    (0..x.data.len()).map(|index| x.data[index % pixels * pixel + index / pixels]).collect()
}

fn values(tensor: &HostTensor) -> Vec<f64> {
    tensor.data.iter().map(|value| f64::from(*value)).collect()
}

fn size(extent: u32) -> usize {
    extent as usize
}
