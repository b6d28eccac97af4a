//! One launch on the host: a kernel's variant, its parameters, and its memory.

use arrayvec::ArrayVec;
use pulp::Arch;

use crate::kernels::Variant;

/// The memory of one binding, as f32. Kernels take it as the type that it holds.
#[derive(Debug)]
pub enum Binding<'a> {
    /// Memory that the kernel reads.
    Read(&'a [f32]),
    /// Memory that the kernel writes, and perhaps reads.
    Write(&'a mut [f32]),
    /// A binding that the variant does not use.
    Unused,
}

impl<'a> Binding<'a> {
    /// Returns the memory to read; nothing if the variant does not use the binding.
    pub(super) fn read<T: bytemuck::Pod>(self) -> &'a [T] {
        bytemuck::cast_slice(match self {
            Self::Read(values) => values,
            Self::Write(values) => values,
            Self::Unused => &[],
        })
    }

    /// Returns the memory to write; nothing if the variant does not use the binding.
    pub(super) fn write<T: bytemuck::Pod>(self) -> &'a mut [T] {
        bytemuck::cast_slice_mut(match self {
            Self::Write(values) => values,
            Self::Read(_) | Self::Unused => &mut [],
        })
    }
}

/// One launch. Its kernel runs on the threads of the current pool.
#[derive(Debug)]
pub struct Call<'a> {
    /// The instructions that the processor has.
    pub arch: Arch,
    /// Kernel and values.
    pub variant: &'a Variant,
    /// Bytes of `Params`.
    pub params: &'a [u8],
    /// Workgroups of the shader along x, y, z. Here some axes count frames or queries.
    pub workgroups: [u32; 3],
    /// Bindings 1, 2, and so on.
    pub bindings: ArrayVec<Binding<'a>, 8>,
}

impl<'a> Call<'a> {
    /// Returns the launch's `Params`.
    pub(super) fn params<P: bytemuck::AnyBitPattern>(&self) -> P {
        bytemuck::pod_read_unaligned(self.params)
    }

    /// Takes out all bindings. `N` is their number.
    pub(super) fn take<const N: usize>(&mut self) -> [Binding<'a>; N] {
        let mut bindings = std::mem::take(&mut self.bindings).into_iter();
        std::array::from_fn(|_| bindings.next().unwrap_or(Binding::Unused))
    }
}

/// Returns a number of a shader's parameters as an index.
pub(super) fn at(number: u32) -> usize {
    number as usize
}

/// Returns a number of elements of four channels as a number of channels.
pub(super) fn at4(vec4s: u32) -> usize {
    vec4s as usize * 4
}
