//! The table of a group norm: `[c / 4, 2, 4]`, factors and summands in turn.

/// Factors and summands of a group norm, each `[c]`.
pub(super) struct NormTable {
    pub(super) scale: Vec<f32>,
    pub(super) shift: Vec<f32>,
}

impl NormTable {
    /// Reads the first `channels` of a table.
    pub(super) fn new(table: &[f32], channels: usize) -> Self {
        let part = |of: usize| (0..channels).map(|channel| table[channel / 4 * 8 + of * 4 + channel % 4]).collect();
        Self { scale: part(0), shift: part(1) }
    }
}
