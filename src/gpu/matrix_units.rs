//! wgpu's cooperative matrices: which of them kernels can use, and what a device that has them is
//! opened with. Natively only; browsers have none.

use crate::error::{DeviceError, Error, Result};
use crate::limits::MatrixUnits;

/// What a device with matrix units is opened with: kernels ask which subgroup an invocation is of.
pub(super) const FEATURES: wgpu::Features =
    wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX.union(wgpu::Features::SUBGROUP);

/// The largest matrices of `adapter` that there are kernels for: square ones, halves in, sums of
/// f32.
pub(super) fn offered(adapter: &wgpu::Adapter) -> Option<MatrixUnits> {
    use wgpu::CooperativeScalarType::{F16, F32};
    if cfg!(target_arch = "wasm32") || !adapter.features().contains(FEATURES | wgpu::Features::SHADER_F16) {
        return None;
    }
    let usable = |matrix: &wgpu::CooperativeMatrixProperties| {
        let side = matrix.m_size;
        let square = matches!(side, 8 | 16) && [matrix.n_size, matrix.k_size] == [side; 2];
        (square && (matrix.ab_type, matrix.cr_type) == (F16, F32)).then_some(side)
    };
    let side = adapter.cooperative_matrix_properties().iter().filter_map(usable).max()?;
    // wgpu cannot ask for a size of subgroups: of a workgroup as large as the largest, none is
    // partly filled.
    Some(MatrixUnits { side, lanes: adapter.get_info().subgroup_max_size })
}

/// That an adapter that was asked for matrix units has them.
///
/// # Errors
/// [`DeviceError::Refused`] with the cooperative matrices that it has instead.
pub(super) fn check(adapter: &str, units: Option<MatrixUnits>, matrices: &[String]) -> Result<()> {
    if units.is_some() {
        return Ok(());
    }
    let has = if matrices.is_empty() { "none".to_owned() } else { matrices.join(", ") };
    Err(Error::Device(DeviceError::Refused {
        adapter: adapter.to_owned(),
        reason: format!(
            "it has no matrix units that kernels can use, which take shader-f16, subgroups, and 8x8x8 or 16x16x16 F16->F32 of its cooperative matrices: {has}"
        ),
    }))
}

/// Leave to use what wgpu calls experimental.
#[expect(unsafe_code, reason = "matrix units are behind an experimental feature of wgpu; see SAFETY")]
pub(super) fn leave() -> wgpu::ExperimentalFeatures {
    // SAFETY: what is experimental may have bugs that are undefined behaviour. One kernel alone
    // uses it, `matmul_matrix`: of matrices only whole subgroups load, multiply and store, and none
    // reaches beyond a buffer: the plan's interpreter in `tests/` panics on any number outside.
    // Nobody gets it who has not asked for it.
    unsafe { wgpu::ExperimentalFeatures::enabled() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_without_usable_units_is_refused_with_what_it_has() {
        assert!(check("card", Some(MatrixUnits { side: 16, lanes: 32 }), &[]).is_ok());
        for (matrices, words) in [(vec![], "none"), (vec!["8x8x8 F32->F32".to_owned()], "8x8x8 F32->F32")] {
            let message = check("card", None, &matrices).expect_err("no units").to_string();
            assert!(message.contains("\"card\"") && message.ends_with(words), "{message}");
        }
    }
}
