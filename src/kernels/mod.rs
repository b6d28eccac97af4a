//! The Rust half of each shader, under the same stem as its `.wgsl` file.
//!
//! A kernel is a WGSL file, a list of bindings, a struct of parameters, and a function that counts
//! workgroups. Values that change the code are in its [`Variant`]; values that change only numbers
//! are in its parameters. Nothing here knows a device or a buffer.

pub mod activation;
pub mod attention;
mod border;
pub mod choice;
pub mod conv2d_depthwise;
pub mod conv2d_direct;
pub mod edges;
mod embedded;
pub mod frames;
pub mod group_norm;
pub mod linear_attention;
pub mod matmul;
pub mod pixel_norm;
pub mod regroup;
pub(crate) mod shipped;
pub mod source;
mod spread;
pub mod unfold;
pub mod weights;
pub mod winograd;

pub use source::{Value, Variant};

/// Invocations of a workgroup, in most kernels. A multiple of all known subgroup sizes, and within
/// every device's limit.
pub const WORKGROUP: u32 = 64;

/// The use of a binding by a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A read-only storage buffer.
    Read,
    /// A storage buffer that the kernel writes, and perhaps reads.
    ReadWrite,
}

/// The interface of a shader file. Binding 0 is always the uniform `params`; storage bindings
/// follow.
#[derive(Debug, Clone, Copy)]
pub struct Interface {
    /// Stem of the file.
    pub file: &'static str,
    /// Code of the file, without comments.
    pub text: &'static str,
    /// Name and use of bindings 1, 2, and so on.
    pub bindings: &'static [(&'static str, Access)],
    /// Name and WGSL type of each member of `Params`.
    pub params: &'static [(&'static str, &'static str)],
}

impl Interface {
    /// Returns a launch of the variant with `values` that counts no multiply-adds.
    fn launch(
        &self,
        values: Vec<(&'static str, Value)>,
        params: &impl bytemuck::NoUninit,
        workgroups: [u32; 3],
    ) -> Launch {
        let variant = Variant { file: self.file, values };
        Launch { variant, params: bytemuck::bytes_of(params).to_vec(), workgroups, macs: 0 }
    }
}

/// Declares the [`Interface`] of a file in `shaders/`, and a struct that mirrors its `Params` in
/// WGSL, which documents the members. A test compares the table of members with naga's reflection.
/// The short form is for a file with the bindings and `Params` of another.
macro_rules! kernel {
    (
        $(#[$meta:meta])* $name:ident = $file:literal($($binding:ident: $access:ident),+);
        $params:ident { $($field:ident: $type:ident),+ $(,)? }
    ) => {
        #[doc = concat!("Parameters of `", $file, "`.")]
        #[repr(C)]
        #[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
        pub struct $params {
            $(#[doc = "See `Params` in the shader."] pub $field: $type,)+
        }

        $(#[$meta])*
        pub const $name: $crate::kernels::Interface = $crate::kernels::Interface {
            file: $file,
            text: $crate::kernels::embedded::embedded!($file),
            bindings: &[$((stringify!($binding), $crate::kernels::Access::$access)),+],
            params: &[$((stringify!($field), stringify!($type))),+],
        };
    };
    ($file:literal like $other:ident) => {
        $crate::kernels::Interface { file: $file, text: $crate::kernels::embedded::embedded!($file), ..$other }
    };
}
pub(crate) use kernel;

/// The interfaces of all kernels.
pub const INTERFACES: &[Interface] = &[
    attention::SOFTMAX,
    attention::FINISH,
    conv2d_depthwise::INTERFACE,
    conv2d_direct::INTERFACE,
    group_norm::STATS,
    group_norm::FINISH,
    group_norm::APPLY,
    edges::PLANES_IN,
    edges::PLANES_OUT,
    edges::IMAGE_OUT,
    edges::IMAGE_CHECK,
    frames::COPY,
    linear_attention::SUMS,
    linear_attention::FINISH,
    linear_attention::APPLY,
    matmul::REGISTER,
    matmul::QUAD,
    matmul::SHARED,
    #[cfg(not(target_arch = "wasm32"))]
    matmul::MATRIX,
    pixel_norm::INTERFACE,
    regroup::INTERFACE,
    unfold::INTERFACE,
    winograd::WEIGHTS,
    winograd::IN,
    winograd::IN_PAIRS,
    winograd::OUT,
    winograd::OUT_PAIRS,
];

/// Returns the interface of the kernel in `file`.
///
/// # Panics
/// Panics if there is no such kernel, which is a bug.
pub fn interface(file: &str) -> &'static Interface {
    INTERFACES
        .iter()
        .find(|interface| interface.file == file)
        .unwrap_or_else(|| panic!("kernel {file:?} has no interface"))
}

/// One kernel launch, without its buffers.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// Shader file and its values.
    pub variant: Variant,
    /// Bytes of `Params`.
    pub params: Vec<u8>,
    /// Workgroups along x, y, z.
    pub workgroups: [u32; 3],
    /// Multiply-adds of this launch, counted as a direct convolution or product.
    pub macs: u64,
}

/// Returns the number of workgroups of [`WORKGROUP`] invocations for `invocations`, on one axis.
pub fn groups(invocations: u64) -> u32 {
    u32::try_from(invocations.div_ceil(u64::from(WORKGROUP))).unwrap_or(u32::MAX)
}

/// Returns the workgroups of [`WORKGROUP`] invocations, on one axis, for as many invocations as the
/// product of `extents`.
fn line(extents: &[u32]) -> [u32; 3] {
    [groups(extents.iter().map(|extent| u64::from(*extent)).product()), 1, 1]
}

/// Returns the number of workgroups of [`WORKGROUP`] invocations for `invocations`, on two axes. A
/// band of a large picture has more workgroups than one axis may hold.
pub fn spread(invocations: u32) -> [u32; 3] {
    const ROW: u32 = 32_768;
    let workgroups = invocations.div_ceil(WORKGROUP);
    [workgroups.min(ROW), workgroups.div_ceil(ROW), 1]
}
