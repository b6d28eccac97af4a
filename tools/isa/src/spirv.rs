//! Translation of WGSL to SPIR-V by naga, with the options of wgpu 30 on Vulkan 1.3 with
//! `robustBufferAccess2`: see `compile_stage` and `naga_options` in wgpu-hal. With that feature the
//! device checks buffer accesses, and naga does not.

use anyhow::{Result, anyhow};
use naga::back::spv::{self, ZeroInitializeWorkgroupMemoryMode};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Module, ShaderStage};
use serde::{Deserialize, Serialize};

/// The caller that compiles a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Face {
    /// This crate: `create_shader_module_trusted` without checks, and without zeroing workgroup
    /// memory (`src/gpu/pipelines.rs`).
    Native,
    /// A browser on wgpu: indices, loops and divisions are checked, workgroup memory is zeroed.
    Firefox,
}

impl Face {
    pub(crate) const ALL: [Self; 2] = [Self::Native, Self::Firefox];

    /// Returns its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Firefox => "firefox",
        }
    }
}

/// A kernel that naga has parsed and validated.
pub(crate) struct Parsed {
    module: Module,
    info: ModuleInfo,
}

impl Parsed {
    /// Parses and validates the text of a kernel.
    ///
    /// # Errors
    /// Problems that naga finds in the text, with their places.
    pub(crate) fn new(text: &str) -> Result<Self> {
        let module = naga::front::wgsl::parse_str(text).map_err(|error| anyhow!(error.emit_to_string(text)))?;
        let info = Validator::new(ValidationFlags::all(), Capabilities::all())
            .validate(&module)
            .map_err(|error| anyhow!(error.emit_to_string(text)))?;
        Ok(Self { module, info })
    }

    /// Returns the bytes of workgroup memory that the text declares.
    pub(crate) fn workgroup_bytes(&self) -> u32 {
        let shared = self.module.global_variables.iter().filter(|(_, each)| each.space == AddressSpace::WorkGroup);
        shared.map(|(_, each)| self.module.types[each.ty].inner.size(self.module.to_ctx())).sum()
    }

    pub(crate) fn spirv(&self, face: Face) -> Result<Vec<u32>> {
        let checked = face == Face::Firefox;
        let policy = if checked { BoundsCheckPolicy::Restrict } else { BoundsCheckPolicy::Unchecked };
        let options = spv::Options {
            lang_version: (1, 6),
            flags: spv::WriterFlags::LABEL_VARYINGS | spv::WriterFlags::FORCE_POINT_SIZE,
            bounds_check_policies: BoundsCheckPolicies {
                index: policy,
                buffer: BoundsCheckPolicy::Unchecked,
                image_load: BoundsCheckPolicy::Unchecked,
                binding_array: BoundsCheckPolicy::Unchecked,
            },
            zero_initialize_workgroup_memory: match face {
                Face::Native => ZeroInitializeWorkgroupMemoryMode::None,
                Face::Firefox => ZeroInitializeWorkgroupMemoryMode::Native,
            },
            force_loop_bounding: checked,
            ray_query_initialization_tracking: checked,
            emit_int_div_checks: checked,
            ..spv::Options::default()
        };
        let entry = spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: "main".to_owned() };
        Ok(spv::write_vec(&self.module, &self.info, &options, Some(&entry))?)
    }
}
