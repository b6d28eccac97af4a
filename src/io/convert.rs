//! Conversion of little-endian bytes of weights to f32, and a search for values that are not
//! finite. Knows nothing of files.

use half::f16;
use half::slice::HalfFloatSliceExt as _;

use crate::tensor::DType;

/// Elements converted at a time, small enough to stay in the cache.
const BLOCK: usize = 4096;

/// Converts little-endian `bytes` of elements of type `dtype` to f32, exactly. Ignores bytes after
/// the last whole element.
pub fn to_f32(bytes: &[u8], dtype: DType) -> Vec<f32> {
    match dtype {
        DType::F32 => bytes.as_chunks().0.iter().map(|element| f32::from_le_bytes(*element)).collect(),
        DType::F16 => f16_to_f32(bytes.as_chunks().0),
        // A bf16 is the upper half of an f32.
        DType::BF16 => {
            let halves = bytes.as_chunks().0.iter();
            halves.map(|element| f32::from_bits(u32::from(u16::from_le_bytes(*element)) << 16)).collect()
        }
    }
}

/// Converts `values` to little-endian bytes.
pub fn to_bytes(values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; std::mem::size_of_val(values)];
    for (bytes, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
        *bytes = value.to_le_bytes();
    }
    bytes
}

/// Returns index and value of the first infinity or NaN.
pub fn first_non_finite(values: &[f32]) -> Option<(usize, f32)> {
    // Whole blocks first, without branches, so that the compiler can use vector instructions.
    let finite = |block: &[f32]| block.iter().fold(true, |all, value| all & value.is_finite());
    let block = values.chunks(BLOCK).position(|block| !finite(block))?;
    let start = block * BLOCK;
    let index = start + values[start..].iter().position(|value| !value.is_finite())?;
    Some((index, values[index]))
}

/// Converts f16 to f32 in whole slices, for which the half crate uses the processor's own
/// instruction if it has one.
fn f16_to_f32(elements: &[[u8; 2]]) -> Vec<f32> {
    let mut values = vec![0.0; elements.len()];
    let mut halves = [f16::ZERO; BLOCK];
    for (from, to) in elements.chunks(BLOCK).zip(values.chunks_mut(BLOCK)) {
        let halves = &mut halves[..from.len()];
        for (half, element) in halves.iter_mut().zip(from) {
            *half = f16::from_le_bytes(*element);
        }
        halves.convert_to_f32_slice(to);
    }
    values
}
