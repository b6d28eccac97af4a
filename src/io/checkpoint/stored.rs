//! One tensor as the network uses it, from one tensor of the files or from several.

use super::super::safetensors::{ElementType, TensorInfo};
use crate::error::{Error, Result};
use crate::model::config::single;

/// One tensor of a [`super::Checkpoint`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTensor {
    /// Name as written in the file.
    pub file_name: String,
    /// Position in the file, element type and shape as written.
    pub info: TensorInfo,
    /// Index of the file in [`super::Checkpoint::files`].
    pub(super) source: usize,
    /// The other tensors of the files that its values come from.
    pub(super) further: Vec<Self>,
    /// How its values come from them.
    pub(super) rule: Rule,
}

/// How the values of a tensor come from those of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The rows of all tensors, one after the other.
    Rows,
    /// A filter whose rows have the factors of a batch norm: filter, `weight`, `running_var`.
    Filter,
    /// The summands of a batch norm: `bias`, `running_mean`, `weight`, `running_var`.
    Summand,
}

/// Number that a batch norm adds to variances: torch's default, which `AutoencoderDC` uses.
const EPS: f64 = 1e-5;

impl StoredTensor {
    /// Makes a tensor that is stored as it is used.
    pub(super) fn new(file_name: String, info: TensorInfo, source: usize) -> Self {
        Self { file_name, info, source, further: Vec::new(), rule: Rule::Rows }
    }

    /// Returns the index of the file, the first byte in it and the number of bytes, for each tensor
    /// of a file that it comes from.
    pub fn places(&self) -> impl Iterator<Item = (usize, u64, u64)> {
        self.parts().map(|part| (part.source, part.info.offset, part.info.bytes))
    }

    /// Returns the names of the files' tensors that it comes from, as written.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.parts().map(|part| part.file_name.as_str())
    }

    /// Returns its shape.
    pub fn shape(&self) -> Vec<u64> {
        let mut shape = self.info.shape.clone();
        if let (Rule::Rows, Some(rows)) = (self.rule, shape.first_mut()) {
            *rows =
                self.parts().filter_map(|part| part.info.shape.first()).fold(0, |sum, rows| sum.saturating_add(*rows));
        }
        shape
    }

    /// Returns the tensors of the files that it comes from.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.further)
    }

    /// Returns the tensors of the files that count as its own. The batch norm of a filter belongs
    /// to the filter's summands.
    pub(super) fn own_parts(&self) -> impl Iterator<Item = &Self> {
        self.parts().take(if self.rule == Rule::Filter { 1 } else { usize::MAX })
    }

    /// Checks that the tensor can be read as weights of `shape`.
    pub(super) fn check(&self, shape: &[u64]) -> Result<()> {
        let mut first = shape.to_vec();
        if let (Rule::Rows, Some(rows)) = (self.rule, first.first_mut()) {
            // Parts have equally many rows.
            *rows /= 1 + self.further.len() as u64;
        }
        self.check_part(&first)?;
        let channels = &shape[..shape.len().min(1)];
        let further = if self.rule == Rule::Rows { &first } else { channels };
        self.further.iter().try_for_each(|part| part.check_part(further))
    }

    fn check_part(&self, shape: &[u64]) -> Result<()> {
        let fail = |expected, found| Err(Error::Tensor { tensor: self.file_name.clone(), expected, found });
        if !same_shape(&self.info.shape, shape) {
            return fail(format!("shape {shape:?}"), format!("{:?}", self.info.shape));
        }
        match &self.info.dtype {
            ElementType::Float(_) => Ok(()),
            ElementType::Other(dtype) => fail("elements of type F32, F16 or BF16".to_owned(), dtype.clone()),
        }
    }

    /// Computes its values from those of its parts.
    pub(super) fn combine(&self, mut parts: Vec<Vec<f32>>) -> Result<Vec<f32>> {
        match (self.rule, parts.as_mut_slice()) {
            (Rule::Filter, [filter, weights, variances]) => {
                let factors = self.factors(weights, variances)?;
                let columns = filter.len() / factors.len().max(1);
                for (row, factor) in filter.chunks_exact_mut(columns.max(1)).zip(factors) {
                    row.iter_mut().for_each(|value| *value = single(f64::from(*value) * factor));
                }
                Ok(std::mem::take(filter))
            }
            (Rule::Summand, [biases, means, weights, variances]) => {
                let factors = self.factors(weights, variances)?;
                let values = biases.iter().zip(&*means).zip(factors);
                Ok(values.map(|((&bias, &mean), factor)| single(f64::from(bias) - f64::from(mean) * factor)).collect())
            }
            (_, [only]) => Ok(std::mem::take(only)),
            _ => Ok(parts.concat()),
        }
    }

    /// Returns the factor of each channel of a batch norm: `weight / sqrt(running_var + eps)`.
    fn factors(&self, weights: &[f32], variances: &[f32]) -> Result<Vec<f64>> {
        if let Some(index) = variances.iter().position(|variance| *variance < 0.0) {
            return Err(Error::Tensor {
                tensor: self.further.last().map_or_else(String::new, |part| part.file_name.clone()),
                expected: "variances of 0 or more".to_owned(),
                found: format!("{} at element {index}", variances[index]),
            });
        }
        let factor = |(&weight, &variance): (&f32, &f32)| f64::from(weight) / (f64::from(variance) + EPS).sqrt();
        Ok(weights.iter().zip(variances).map(factor).collect())
    }
}

/// True if two shapes differ at most in trailing axes of extent 1, or in the axis of a filter's
/// only tap in time.
pub(super) fn same_shape(left: &[u64], right: &[u64]) -> bool {
    let trim = |shape: &[u64]| -> Vec<u64> {
        let end = shape.iter().rposition(|&extent| extent != 1).map_or(0, |last| last + 1);
        match shape[..end] {
            [c_out, c_in, 1, height, width] => vec![c_out, c_in, height, width],
            ref trimmed => trimmed.to_vec(),
        }
    };
    trim(left) == trim(right)
}
