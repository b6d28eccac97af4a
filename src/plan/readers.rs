//! Lists the readers of each tensor of a graph.

use crate::model::graph::Graph;

/// Returns the nodes that read each tensor, in order. A node that reads a tensor twice is listed
/// twice.
pub(super) fn readers(graph: &Graph) -> Vec<Vec<usize>> {
    let mut readers = vec![Vec::new(); graph.shapes.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        for input in &node.inputs {
            readers[input.0].push(index);
        }
    }
    readers
}
