//! The capabilities of a device, as plain data. `gpu/` fills them in from an adapter; callers may
//! make them up for a device that is not at hand.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::tensor::Bytes;

/// The limits and features of a device that a plan depends on. Names and units are those of WebGPU.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeviceLimits {
    /// The largest range of a buffer that one storage binding may cover, bytes.
    pub max_storage_buffer_binding_size: Bytes,
    /// The largest buffer, bytes.
    pub max_buffer_size: Bytes,
    /// The most storage buffers bound at once.
    pub max_storage_buffers_per_shader_stage: u32,
    /// The most workgroups along one axis of a dispatch.
    pub max_compute_workgroups_per_dimension: u32,
    /// The most invocations of one workgroup.
    pub max_compute_invocations_per_workgroup: u32,
    /// The most memory of one workgroup, bytes.
    pub max_compute_workgroup_storage_size: Bytes,
    /// The alignment of a uniform binding's offset, bytes.
    pub min_uniform_buffer_offset_alignment: u32,
    /// True if shaders may use half-precision types (`shader-f16`).
    pub shader_f16: bool,
    /// True if a compute pass can write timestamps at its begin and end (`timestamp-query`).
    pub timestamp_query: bool,
    /// True if four neighbouring invocations can swap values: the device was opened with
    /// `subgroups`, and no subgroup has fewer than four.
    #[serde(default)]
    pub quads: bool,
    /// The kind of machine that runs the shaders.
    pub kind: DeviceKind,
    /// True if the device shares the host's memory, so that moving data to the host frees nothing.
    #[serde(default)]
    pub unified_memory: bool,
    /// The vendor of the GPU.
    #[serde(default)]
    pub vendor: Vendor,
    /// The matrix units that the device was opened with; see [`crate::GpuOptions::matrix_units`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(target_arch = "wasm32", serde(skip))]
    pub matrix_units: Option<MatrixUnits>,
}

/// Units that multiply square matrices of halves and sum in f32, one subgroup at a time (wgpu's
/// cooperative matrices).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MatrixUnits {
    /// Rows and columns of a matrix: 8 or 16.
    pub side: u32,
    /// Invocations of a subgroup; the largest size, if the driver has several.
    pub lanes: u32,
}

/// Subgroups of a workgroup that computes on matrix units. If a driver makes smaller subgroups,
/// there are more of them.
pub const MATRIX_SUBGROUPS: u32 = 4;

/// The matrix units that a plan uses.
#[cfg(not(target_arch = "wasm32"))]
pub type PlannedUnits = MatrixUnits;

/// The matrix units that a plan uses. Browsers have none, and no value of this type exists: so the
/// compiler drops the code for them from the module.
#[cfg(target_arch = "wasm32")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedUnits {
    /// See [`MatrixUnits`].
    pub side: u32,
    /// See [`MatrixUnits`].
    pub lanes: u32,
    none: std::convert::Infallible,
}

/// The vendor of a GPU. Decides tiles and the size of bands, never the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// AMD.
    Amd,
    /// Apple.
    Apple,
    /// Arm: Mali.
    Arm,
    /// Intel.
    Intel,
    /// NVIDIA.
    Nvidia,
    /// Qualcomm: Adreno.
    Qualcomm,
    /// Another one, or unknown.
    #[default]
    Other,
}

impl Vendor {
    /// Returns the vendor with this number, as PCI and Khronos have registered it.
    pub fn from_id(id: u32) -> Self {
        match id {
            0x1002 | 0x1022 => Self::Amd,
            0x106b => Self::Apple,
            0x13b5 => Self::Arm,
            0x8086 => Self::Intel,
            0x10de => Self::Nvidia,
            0x5143 => Self::Qualcomm,
            _ => Self::Other,
        }
    }

    /// Returns the vendor that a browser calls `name` (`GPUAdapterInfo.vendor`).
    pub fn from_name(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "amd" => Self::Amd,
            "apple" => Self::Apple,
            "arm" => Self::Arm,
            "intel" => Self::Intel,
            "nvidia" => Self::Nvidia,
            "qualcomm" => Self::Qualcomm,
            _ => Self::Other,
        }
    }

    /// True if a GPU of this vendor is assumed to share the host's memory. Browsers name only the
    /// vendor. GPUs of Apple, Arm, Qualcomm and the like always share memory, those of Intel and
    /// AMD often do, and almost all of NVIDIA's do not. An unknown vendor counts as shared: parking
    /// gains nothing on shared memory, and computing again is right everywhere.
    pub fn shares_memory(self) -> bool {
        self != Self::Nvidia
    }
}

/// The kind of processor that runs a plan. Decides tile sizes and the size of a submission, never
/// the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A CPU driver that emulates a GPU: lavapipe, SwiftShader, WARP.
    Cpu,
    /// A GPU.
    Gpu,
    /// The host's own cores, without a driver.
    Host,
}

impl DeviceLimits {
    /// Returns WebGPU's default limits without optional features, which every conforming device
    /// has.
    ///
    /// Source: the table of limits in the WebGPU specification, section 3.6.2.
    pub fn webgpu_default() -> Self {
        Self {
            max_storage_buffer_binding_size: Bytes(128 << 20),
            max_buffer_size: Bytes(256 << 20),
            max_storage_buffers_per_shader_stage: 8,
            max_compute_workgroups_per_dimension: 65_535,
            max_compute_invocations_per_workgroup: 256,
            max_compute_workgroup_storage_size: Bytes(16 << 10),
            min_uniform_buffer_offset_alignment: 256,
            shader_f16: false,
            timestamp_query: false,
            quads: false,
            kind: DeviceKind::Gpu,
            unified_memory: false,
            vendor: Vendor::Other,
            matrix_units: None,
        }
    }

    /// Returns the limits of the host's own cores: memory, and 4 GiB for each buffer.
    pub fn host() -> Self {
        const UNBOUNDED: Bytes = Bytes(1 << 48);
        Self {
            max_storage_buffer_binding_size: UNBOUNDED,
            max_buffer_size: UNBOUNDED,
            max_compute_workgroups_per_dimension: u32::MAX,
            min_uniform_buffer_offset_alignment: 16,
            kind: DeviceKind::Host,
            unified_memory: true,
            ..Self::webgpu_default()
        }
    }

    /// Returns the size of the largest buffer that can be bound whole, bytes: at most 4 GiB, as
    /// kernels count in 32 bits.
    pub fn largest_bound_buffer(&self) -> Bytes {
        const LARGEST_COUNTED: Bytes = Bytes(1 << 32);
        self.max_storage_buffer_binding_size.min(self.max_buffer_size).min(LARGEST_COUNTED)
    }

    /// Returns the matrix units that plans may use.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn units(&self) -> Option<PlannedUnits> {
        self.matrix_units
    }

    /// Returns the matrix units that plans may use: none in a browser.
    #[cfg(target_arch = "wasm32")]
    #[expect(clippy::unused_self, reason = "natively it has them")]
    pub(crate) fn units(&self) -> Option<PlannedUnits> {
        None
    }

    /// Checks the alignment and the matrix units. Accepts all other sizes and counts: planning
    /// returns an error that names the buffer or step that does not fit them.
    ///
    /// # Errors
    /// [`Error::Input`] for an alignment or matrix units that no device has.
    pub fn validate(&self) -> Result<()> {
        // WebGPU: a power of two. 256 is the largest that a device may have.
        const WORST_ALIGNMENT: u32 = 256;
        let alignment = self.min_uniform_buffer_offset_alignment;
        if !alignment.is_power_of_two() || alignment > WORST_ALIGNMENT {
            return Err(Error::input(
                "limits, min_uniform_buffer_offset_alignment",
                format!("a power of two up to {WORST_ALIGNMENT}"),
                alignment.to_string(),
            ));
        }
        self.units().map_or(Ok(()), |units| self.validate_units(units))
    }

    /// Checks that there are kernels for such units.
    fn validate_units(&self, PlannedUnits { side, lanes, .. }: PlannedUnits) -> Result<()> {
        // WebGPU: subgroups have 4 to 128 invocations, a power of two.
        const LANES: std::ops::RangeInclusive<u32> = 4..=128;
        let wrong = |field: &str, expected: String, found: String| {
            Err(Error::input(format!("limits, matrix_units{field}"), expected, found))
        };
        if !matches!(side, 8 | 16) {
            return wrong(".side", "8 or 16".to_owned(), side.to_string());
        }
        if !lanes.is_power_of_two() || !LANES.contains(&lanes) {
            return wrong(".lanes", "a power of two from 4 to 128".to_owned(), lanes.to_string());
        }
        let most = self.max_compute_invocations_per_workgroup;
        if lanes * MATRIX_SUBGROUPS > most {
            let expected = format!("{MATRIX_SUBGROUPS} subgroups within the {most} invocations of a workgroup");
            return wrong(".lanes", expected, lanes.to_string());
        }
        if !self.shader_f16 {
            return wrong("", "none, on a device without shader-f16".to_owned(), format!("{side}x{side}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers are from the registries of the PCI SIG and Khronos; names are those of
    /// `GPUAdapterInfo.vendor` as browsers normalise them.
    #[test]
    fn vendors_are_known_by_number_and_by_name() {
        for (id, name, vendor) in [
            (0x1002, "amd", Vendor::Amd),
            (0x106b, "apple", Vendor::Apple),
            (0x13b5, "arm", Vendor::Arm),
            (0x8086, "intel", Vendor::Intel),
            (0x10de, "nvidia", Vendor::Nvidia),
            (0x5143, "qualcomm", Vendor::Qualcomm),
            (0x1010, "img-tec", Vendor::Other),
            (0, "", Vendor::Other),
        ] {
            assert_eq!((Vendor::from_id(id), Vendor::from_name(name)), (vendor, vendor), "{name}");
        }
    }

    #[test]
    fn in_browsers_only_cards_count_as_memory_of_their_own() {
        for vendor in ["apple", "arm", "qualcomm", "img-tec", "samsung", "intel", "amd", "microsoft", ""] {
            assert!(Vendor::from_name(vendor).shares_memory(), "{vendor}");
        }
        assert!(["nvidia", "NVIDIA"].iter().all(|vendor| !Vendor::from_name(vendor).shares_memory()));
    }
}
