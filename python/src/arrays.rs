//! Arrays of numpy. Inputs are read image by image and copied once each; results become arrays
//! without a copy.

use half::{bf16, f16};
use numpy::ndarray::{ArrayViewD, Axis};
use numpy::{Element, PyArray1, PyArrayDyn, PyArrayMethods as _, PyUntypedArrayMethods as _};
use pyo3::prelude::*;
use wgvae::Error;

use crate::errors::Stop;

/// An array whose first axis counts images or frames.
#[derive(Debug)]
pub(crate) struct Array {
    content: Content,
    /// Extent of each axis.
    pub(crate) shape: Vec<usize>,
    /// Name of the argument, for errors.
    pub(crate) what: &'static str,
}

#[derive(Debug)]
enum Content {
    F32(Py<PyArrayDyn<f32>>),
    F16(Py<PyArrayDyn<f16>>),
    /// Bits of bfloat16, for which numpy has no type.
    BF16(Py<PyArrayDyn<u16>>),
    U8(Py<PyArrayDyn<u8>>),
}

/// The values of one image.
#[derive(Debug)]
pub(crate) enum Values {
    /// Levels of a picture, 0 to 255.
    Levels(Vec<u8>),
    /// Values of any other array.
    Floats(Vec<f32>),
}

impl Array {
    /// Takes an array of floats or, if `levels` is true, of u8. If `bfloat16` is true, u16 elements
    /// are the bits of bfloat16.
    ///
    /// # Errors
    /// For arrays of other types.
    pub(crate) fn new(
        array: &Bound<'_, PyAny>,
        what: &'static str,
        bfloat16: bool,
        levels: bool,
    ) -> Result<Self, Stop> {
        let (content, shape) = if let Ok(array) = array.cast::<PyArrayDyn<f32>>() {
            (Content::F32(array.clone().unbind()), array.shape().to_vec())
        } else if let Ok(array) = array.cast::<PyArrayDyn<f16>>() {
            (Content::F16(array.clone().unbind()), array.shape().to_vec())
        } else if let (Ok(array), true) = (array.cast::<PyArrayDyn<u16>>(), bfloat16) {
            (Content::BF16(array.clone().unbind()), array.shape().to_vec())
        } else if let (Ok(array), true) = (array.cast::<PyArrayDyn<u8>>(), levels) {
            (Content::U8(array.clone().unbind()), array.shape().to_vec())
        } else {
            let expected = if levels { "uint8, float32, float16 or bfloat16" } else { "float32, float16 or bfloat16" };
            let found = array.getattr("dtype").map_or_else(|_| "no array".to_owned(), |dtype| dtype.to_string());
            return Err(Error::input(what, expected, found).into());
        };
        Ok(Self { content, shape, what })
    }

    /// True if it has levels of pictures.
    pub(crate) fn has_levels(&self) -> bool {
        matches!(self.content, Content::U8(_))
    }

    /// Copies image `index` in row-major order. No other copy is made.
    ///
    /// # Errors
    /// If the shape of the array has changed since the call began.
    pub(crate) fn image(&self, index: usize) -> Result<Values, Stop> {
        let floats = |values: Result<Vec<f32>, Stop>| values.map(Values::Floats);
        Python::try_attach(|py| match &self.content {
            Content::F32(array) => floats(self.copy(array.bind(py), index, |value| value)),
            Content::F16(array) => floats(self.copy(array.bind(py), index, f32::from)),
            Content::BF16(array) => floats(self.copy(array.bind(py), index, |bits| bf16::from_bits(bits).into())),
            Content::U8(array) => self.copy(array.bind(py), index, |value| value).map(Values::Levels),
        })
        .unwrap_or(Err(Stop::Wgvae(wgvae::Error::Cancelled)))
    }

    fn copy<T: Element + Copy, V>(
        &self,
        array: &Bound<'_, PyArrayDyn<T>>,
        index: usize,
        convert: impl Fn(T) -> V,
    ) -> Result<Vec<V>, Stop> {
        let array = array.try_readonly().map_err(PyErr::from)?;
        let all: ArrayViewD<'_, T> = array.as_array();
        if all.shape() != self.shape {
            let expected = format!("an array whose shape stays {:?}", self.shape);
            return Err(Error::input(self.what, expected, format!("{:?}", all.shape())).into());
        }
        let image = all.index_axis(Axis(0), index);
        Ok(match image.as_slice() {
            Some(values) => values.iter().map(|value| convert(*value)).collect(),
            None => image.iter().map(|value| convert(*value)).collect(),
        })
    }
}

/// Makes an array that takes over `data`.
///
/// # Errors
/// If `data` does not have as many elements as `shape`.
pub(crate) fn array<T: Element>(py: Python<'_>, data: Vec<T>, shape: &[usize]) -> PyResult<Py<PyAny>> {
    Ok(PyArray1::from_vec(py, data).reshape(shape)?.into_any().unbind())
}

/// Reserves room for `count` more elements in `data`. A failed allocation is an error, because an
/// abort would end Python.
///
/// # Errors
/// [`wgvae::Error::HostMemory`].
pub(crate) fn reserve<T>(data: &mut Vec<T>, count: usize, what: &str) -> wgvae::Result<()> {
    let needed = wgvae::Bytes((count as u64).saturating_mul(size_of::<T>() as u64));
    if data.try_reserve_exact(count).is_err() {
        return Err(wgvae::Error::HostMemory { what: what.to_owned(), needed });
    }
    Ok(())
}
