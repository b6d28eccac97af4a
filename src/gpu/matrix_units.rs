//! wgpu's cooperative matrices: finds those that kernels can use, and opens devices with them.
//! Native only; browsers have none.

use crate::error::{DeviceError, Error, Result};
use crate::limits::{MATRIX_SUBGROUPS, MatrixUnits};

/// The features that a device with matrix units is opened with. Subgroups are needed because
/// kernels ask which subgroup an invocation is in.
pub(super) const FEATURES: wgpu::Features =
    wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX.union(wgpu::Features::SUBGROUP);

/// Most invocations of a subgroup: [`MATRIX_SUBGROUPS`] of them fit WebGPU's default limits.
const MOST_LANES: u32 = 256 / MATRIX_SUBGROUPS;

/// Returns the largest matrices of `adapter` that kernels can use: square, with halves as input and
/// f32 sums.
pub(super) fn offered(adapter: &wgpu::Adapter) -> Option<MatrixUnits> {
    use wgpu::CooperativeScalarType::{F16, F32};
    if cfg!(target_arch = "wasm32")
        || !writes(adapter.get_info().backend)
        || !adapter.features().contains(FEATURES | wgpu::Features::SHADER_F16)
    {
        return None;
    }
    let usable = |matrix: &wgpu::CooperativeMatrixProperties| {
        let side = matrix.m_size;
        let square = matches!(side, 8 | 16) && [matrix.n_size, matrix.k_size] == [side; 2];
        (square && (matrix.ab_type, matrix.cr_type) == (F16, F32)).then_some(side)
    };
    let side = adapter.cooperative_matrix_properties().iter().filter_map(usable).max()?;
    // wgpu cannot request a subgroup size. A workgroup of several subgroups of the largest size
    // never has a partly filled one.
    let lanes = adapter.get_info().subgroup_max_size;
    (lanes <= MOST_LANES).then_some(MatrixUnits { side, lanes })
}

/// True if naga can write cooperative matrices in the language of `backend`: SPIR-V or MSL. In HLSL
/// (DX12) naga 30 cannot.
fn writes(backend: wgpu::Backend) -> bool {
    matches!(backend, wgpu::Backend::Vulkan | wgpu::Backend::Metal)
}

/// Checks that an adapter on `backend` has matrix units that kernels can use.
///
/// # Errors
/// [`DeviceError::Refused`], which names the backend if that is the cause, and else lists the
/// cooperative matrices that the adapter has instead.
pub(super) fn check(
    adapter: &str,
    backend: wgpu::Backend,
    units: Option<MatrixUnits>,
    matrices: &[String],
) -> Result<()> {
    if units.is_some() {
        return Ok(());
    }
    let has = if matrices.is_empty() { "none".to_owned() } else { matrices.join(", ") };
    let reason = if writes(backend) {
        format!(
            "it has no matrix units that kernels can use: expected shader-f16, subgroups of at most {MOST_LANES}, and cooperative matrices of 8x8x8 or 16x16x16 F16->F32, found {has}"
        )
    } else {
        format!(
            "matrix units: expected an adapter on Vulkan or Metal, found {backend:?}, for whose language naga cannot write cooperative matrices"
        )
    };
    Err(Error::Device(DeviceError::Refused { adapter: adapter.to_owned(), reason }))
}

/// Returns wgpu's token that permits experimental features.
#[expect(unsafe_code, reason = "matrix units are behind an experimental feature of wgpu; see SAFETY")]
pub(super) fn leave() -> wgpu::ExperimentalFeatures {
    // SAFETY: experimental features may have bugs that are undefined behaviour. Only the kernel
    // `matmul_matrix` uses them. In it, only whole subgroups load, multiply and store matrices, and
    // only in workgroup memory: four subgroups at places that are constants for each of them.
    // Callers have to opt in.
    unsafe { wgpu::ExperimentalFeatures::enabled() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_without_usable_units_is_refused_with_what_it_has() {
        let vulkan = wgpu::Backend::Vulkan;
        assert!(check("card", vulkan, Some(MatrixUnits { side: 16, lanes: 32 }), &[]).is_ok());
        for (matrices, words) in [(vec![], "none"), (vec!["8x8x8 F32->F32".to_owned()], "8x8x8 F32->F32")] {
            let message = check("card", vulkan, None, &matrices).expect_err("no units").to_string();
            assert!(message.contains("\"card\"") && message.ends_with(words), "{message}");
        }
    }

    #[test]
    fn a_backend_without_matrices_is_named() {
        let message = check("card", wgpu::Backend::Dx12, None, &[]).expect_err("no units").to_string();
        assert!(message.contains("Vulkan or Metal, found Dx12"), "{message}");
    }
}
