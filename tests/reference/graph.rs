//! What a graph means: every operation in f64, by loops over its definition.
//!
//! Knows nothing of plans. Tensors are `[h, w, c]`; what goes in and what comes out is planar, `[c, h, w]`.

use std::collections::BTreeMap;

use wgvae::HostTensor;
use wgvae::model::graph::{
    Activation, Border, Conv2d, Doubling, Ending, Graph, Node, Op, Shape, Take, Transform, Weight,
};

/// Tensors of a file, in diffusers' names.
pub(crate) type Weights = BTreeMap<String, HostTensor>;

/// One tensor.
struct Tensor {
    height: usize,
    width: usize,
    channels: usize,
    data: Vec<f64>,
}

/// The output of `graph` for `input`, with the weights of a file.
pub(crate) fn evaluate(graph: &Graph, weights: &Weights, input: &[f32]) -> Vec<f64> {
    evaluate_and_measure(graph, weights, input).0
}

/// The output, and the largest magnitude of anything on the way there.
pub(crate) fn evaluate_and_measure(graph: &Graph, weights: &Weights, input: &[f32]) -> (Vec<f64>, f64) {
    let mut tensors: Vec<Tensor> = Vec::new();
    for node in &graph.nodes {
        let inputs: Vec<&Tensor> = node.inputs.iter().map(|id| &tensors[id.0]).collect();
        let tensor = run(node, graph.shape(node.output), &inputs, weights, input);
        let Shape { height, width, channels } = graph.shape(node.output);
        assert_eq!(
            [tensor.height, tensor.width, tensor.channels],
            [height, width, channels].map(size),
            "{}",
            node.name
        );
        assert_eq!(node.output.0, tensors.len(), "{} is out of order", node.name);
        tensors.push(tensor);
    }
    let values = tensors.iter().flat_map(|tensor| &tensor.data);
    let largest = values.fold(0.0_f64, |most, value| most.max(value.abs()));
    (planar(tensors.last().expect("an output")), largest)
}

fn run(node: &Node, shape: Shape, inputs: &[&Tensor], weights: &Weights, input: &[f32]) -> Tensor {
    let weight = |part: &str| values(&weights[&format!("{}.{part}", node.name)]);
    match (&node.op, inputs) {
        (Op::Input(transform), []) => read(transform, shape, input),
        (Op::Conv2d(conv), [x]) => convolution(conv, size(shape.channels), x, weights),
        (Op::GroupNorm { groups, eps }, [x]) => {
            group_norm(x, size(*groups), f64::from(*eps), &weight("weight"), &weight("bias"))
        }
        (Op::PixelNorm, [x]) => pixel_norm(x, &weight("gamma")),
        (Op::Activate(Activation::Silu), [x]) => map(x, |value| value / (1.0 + (-value).exp())),
        (Op::Activate(Activation::Relu), [x]) => map(x, |value| value.max(0.0)),
        (Op::Double(doubling), [x]) => double(*doubling, x),
        (Op::Add, [residual, branch]) => add(residual, branch),
        (Op::Attention, [query, key, value]) => attention(query, key, value),
        (Op::Output(ending), [x]) => finish(*ending, x),
        (op, inputs) => panic!("{op:?} with {} inputs", inputs.len()),
    }
}

impl Tensor {
    fn zeros(height: usize, width: usize, channels: usize) -> Self {
        Self { height, width, channels, data: vec![0.0; height * width * channels] }
    }

    fn at(&self, row: usize, column: usize) -> usize {
        (row * self.width + column) * self.channels
    }

    fn pixel(&self, row: usize, column: usize) -> &[f64] {
        &self.data[self.at(row, column)..][..self.channels]
    }

    fn pixel_mut(&mut self, row: usize, column: usize) -> &mut [f64] {
        let at = self.at(row, column);
        &mut self.data[at..][..self.channels]
    }
}

fn read(transform: &Transform, shape: Shape, input: &[f32]) -> Tensor {
    let mut tensor = Tensor::zeros(size(shape.height), size(shape.width), size(shape.channels));
    let patch = size(transform.patch);
    let (rows, columns) = (tensor.height / patch, tensor.width / patch);
    assert_eq!(input.len(), tensor.data.len(), "values of the input");
    for (index, &value) in input.iter().enumerate() {
        let (column, row, channel) = (index % columns, index / columns % rows, index / columns / rows);
        let scaled = f64::from(transform.factor[channel]) * f64::from(value) + f64::from(transform.offset[channel]);
        let value = if transform.squash { 3.0 * (scaled / 3.0).tanh() } else { scaled };
        let (own, place) = (channel / (patch * patch), channel % (patch * patch));
        tensor.pixel_mut(row * patch + place / patch, column * patch + place % patch)[own] = value;
    }
    tensor
}

fn convolution(conv: &Conv2d, c_out: usize, x: &Tensor, weights: &Weights) -> Tensor {
    let (side, stride) = (size(conv.window.side), size(conv.window.stride));
    let before = match conv.window.border {
        Border::Around => side / 2,
        Border::After => 0,
    };
    let after = match conv.window.border {
        Border::Around => side / 2,
        Border::After => 1,
    };
    let extent = |extent: usize| (extent + before + after - side) / stride + 1;
    let filter = by_output(&taken(&conv.weight, weights, c_out * x.channels * side * side), c_out);
    let bias = taken(&conv.bias, weights, c_out);
    let mut y = Tensor::zeros(extent(x.height), extent(x.width), c_out);
    for row in 0..y.height {
        for column in 0..y.width {
            let sums = y.pixel_mut(row, column);
            sums.copy_from_slice(&bias);
            for (tap, (dy, dx)) in (0..side).flat_map(|dy| (0..side).map(move |dx| (dy, dx))).enumerate() {
                let (from_row, from_column) = (row * stride + dy, column * stride + dx);
                let inside = (before..before + x.height).contains(&from_row)
                    && (before..before + x.width).contains(&from_column);
                if !inside {
                    continue;
                }
                for (channel, &value) in x.pixel(from_row - before, from_column - before).iter().enumerate() {
                    let factors = &filter[(channel * side * side + tap) * c_out..][..c_out];
                    sums.iter_mut().zip(factors).for_each(|(sum, factor)| *sum += value * factor);
                }
            }
        }
    }
    y
}

/// `[c_out, rest]` as `[rest, c_out]`.
fn by_output(filter: &[f64], c_out: usize) -> Vec<f64> {
    let rest = filter.len() / c_out;
    (0..filter.len()).map(|index| filter[index % c_out * rest + index / c_out]).collect()
}

/// What is taken of a tensor: `count` values.
fn taken(weight: &Weight, weights: &Weights, count: usize) -> Vec<f64> {
    let stored = || &weights.get(&weight.name).unwrap_or_else(|| panic!("no tensor {}", weight.name)).data;
    let stored = || stored().iter().map(|value| f64::from(*value)).collect::<Vec<f64>>();
    let taken = match weight.take {
        Take::All => stored(),
        Take::Tap { taps, index } => in_time(weight, weights, taps, |frames| frames[size(index)]),
        Take::SumOfTaps { taps } => in_time(weight, weights, taps, |frames| frames.iter().sum()),
        Take::Rows { start, block, step, of } => {
            let stored = stored();
            let row = stored.len() / size(of);
            let rows = (0..size(of))
                .filter(|index| index.checked_sub(size(start)).is_some_and(|index| index % size(step) < size(block)));
            rows.flat_map(|index| stored[index * row..][..row].to_vec()).collect()
        }
        Take::Frames { frames, parts, block } => {
            let stored = stored();
            let [frames, parts, block] = [frames, parts, block].map(size);
            let row = stored.len() / (frames * parts * block);
            let blocks = (0..frames).flat_map(|frame| (0..parts).map(move |part| part * frames + frame));
            blocks.flat_map(|from| stored[from * block * row..][..block * row].to_vec()).collect()
        }
        Take::Zeros => vec![0.0; count],
        Take::Transform => panic!("the transform of the input is no weight of a convolution"),
    };
    assert_eq!(taken.len(), count, "values taken of {}", weight.name);
    taken
}

/// One value for all `taps` in time of each place of a filter `[c_out, c_in, taps, h, w]`.
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

fn pixel_norm(x: &Tensor, gamma: &[f64]) -> Tensor {
    #[expect(clippy::cast_precision_loss, reason = "few channels")]
    let root = (x.channels as f64).sqrt();
    let lengths: Vec<f64> =
        x.data.chunks(x.channels).map(|pixel| pixel.iter().map(|v| v * v).sum::<f64>().sqrt()).collect();
    let data = x
        .data
        .iter()
        .enumerate()
        .map(|(index, value)| value / lengths[index / x.channels].max(1e-12) * root * gamma[index % x.channels]);
    Tensor { data: data.collect(), ..*x }
}

fn double(doubling: Doubling, x: &Tensor) -> Tensor {
    let channels = match doubling {
        Doubling::Nearest => x.channels,
        Doubling::Shuffle => x.channels / 4,
    };
    let mut y = Tensor::zeros(x.height * 2, x.width * 2, channels);
    for row in 0..y.height {
        for column in 0..y.width {
            let from = x.pixel(row / 2, column / 2);
            let first = match doubling {
                Doubling::Nearest => 0,
                Doubling::Shuffle => (row % 2 * 2 + column % 2) * channels,
            };
            y.pixel_mut(row, column).copy_from_slice(&from[first..][..channels]);
        }
    }
    y
}

fn add(residual: &Tensor, branch: &Tensor) -> Tensor {
    let data = residual.data.iter().zip(&branch.data).map(|(left, right)| left + right).collect();
    Tensor { data, ..*residual }
}

fn attention(query: &Tensor, key: &Tensor, value: &Tensor) -> Tensor {
    #[expect(clippy::cast_precision_loss, reason = "few channels")]
    let scale = 1.0 / (query.channels as f64).sqrt();
    let mut y = Tensor::zeros(value.height, value.width, value.channels);
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
    let pixels = x.height * x.width;
    (0..x.data.len()).map(|index| x.data[index % pixels * x.channels + index / pixels]).collect()
}

fn values(tensor: &HostTensor) -> Vec<f64> {
    tensor.data.iter().map(|value| f64::from(*value)).collect()
}

fn size(extent: u32) -> usize {
    extent as usize
}
