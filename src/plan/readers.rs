//! Who reads what in a graph.

use crate::model::graph::Graph;

/// For each tensor, the nodes that read it, in order; a node that reads it twice stands there
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
