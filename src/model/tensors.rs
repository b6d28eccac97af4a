//! The tensors that a file must have for a graph.

use std::collections::BTreeMap;

use super::graph::{Conv2d, Graph, GraphNode, Op, PixelNormKind, Weight, WeightSlice};

/// Lists every tensor that `graph` uses: name in diffusers' spelling -> shape in the file, without
/// trailing axes of extent 1.
pub fn file_tensors(graph: &Graph) -> BTreeMap<String, Vec<u64>> {
    let mut tensors = BTreeMap::new();
    for node in &graph.nodes {
        let channels = graph.shape(node.output).channels;
        match &node.op {
            Op::Conv2d(conv) => tensors.extend(conv_tensors(graph, node, conv)),
            Op::GroupNorm { .. } => tensors.extend(norm_tensors(node, channels, &["weight", "bias"])),
            Op::PixelNorm(PixelNormKind::Affine) => {
                tensors.extend(norm_tensors(node, channels, &["weight", "bias"]));
            }
            Op::PixelNorm(PixelNormKind::Gamma) => tensors.extend(norm_tensors(node, channels, &["gamma"])),
            Op::Input(_)
            | Op::PixelNorm(PixelNormKind::Plain)
            | Op::Window
            | Op::Activate(_)
            | Op::Keep { .. }
            | Op::Double(_)
            | Op::Add
            | Op::Regroup(_)
            | Op::Gate
            | Op::Attention(_)
            | Op::LinearAttention { .. }
            | Op::Output(_) => {}
        }
    }
    tensors
}

fn conv_tensors(graph: &Graph, node: &GraphNode, conv: &Conv2d) -> Vec<(String, Vec<u64>)> {
    let [c_out, c_in] = [node.output, node.inputs[0]].map(|tensor| u64::from(graph.shape(tensor).channels));
    let (side, c_out) = (u64::from(conv.window.side), c_out * u64::from(conv.phases));
    let mut filter = vec![c_out, c_in / u64::from(conv.groups), side, side];
    if let Some(time) = conv.time {
        filter.insert(2, u64::from(time.taps));
    }
    let filter = (&conv.weight, filter);
    let parts = [filter, (&conv.bias, vec![c_out])];
    parts.into_iter().filter_map(|(weight, shape)| Some((weight.name.clone(), stored(weight, shape)?))).collect()
}

/// Returns the shape of the file's tensor whose slice has `shape`.
fn stored(weight: &Weight, mut shape: Vec<u64>) -> Option<Vec<u64>> {
    match weight.take {
        WeightSlice::All | WeightSlice::Frames { .. } | WeightSlice::Filled { .. } => {}
        WeightSlice::Tap { taps, .. } | WeightSlice::SumOfTaps { taps } => shape.insert(2, u64::from(taps)),
        WeightSlice::Rows { of, summed, .. } => {
            shape[0] = u64::from(of);
            if summed > 1 {
                shape.insert(2, u64::from(summed));
            }
        }
        WeightSlice::Inputs { of, .. } => shape[1] *= u64::from(of),
        WeightSlice::InputTaps { taps, .. } => {
            shape.remove(2);
            shape[1] *= u64::from(taps);
        }
        WeightSlice::Zeros | WeightSlice::Ones | WeightSlice::Transform => return None,
    }
    Some(shape)
}

fn norm_tensors<'a>(
    node: &'a GraphNode,
    channels: u32,
    parts: &'a [&str],
) -> impl Iterator<Item = (String, Vec<u64>)> + 'a {
    parts.iter().map(move |part| (format!("{}.{part}", node.name), vec![u64::from(channels)]))
}
