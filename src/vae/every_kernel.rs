//! Every kernel that any plan can use, for tests that compile them all with naga and in each
//! browser.

use crate::error::Result;
use crate::kernels::Variant;
use crate::kernels::choice::{KernelChoice, MatmulTile};
use crate::limits::{DeviceKind, DeviceLimits, MatrixUnits, Vendor};
use crate::model::blocks::Part;
use crate::model::config::{AutoencoderConfig, FAMILIES, Kl, LatentSpace, Network, PaddingMode};
use crate::model::graph::Graph;
use crate::model::networks::{decoder, encoder, part_of_decoder, part_of_encoder};
use crate::named::Named;
use crate::ordered::Set;
use crate::plan::{ChannelOrder, Output, Plan, PlanOptions};
use crate::tensor::{Bytes, Size, Storage};

/// The plans that together use every variant: output, size of chunks in bytes, latents a side if
/// each is 8 pixels wide. They are small, as there are thousands: `tests/cpu/shaders` checks that
/// larger plans for roomy devices use the same.
const CPU_CASES: &[(Output, u64, u32)] = &[(Output::Rgba8, 64 << 20, 8), (Output::Raw, 1 << 20, 13)];
const GPU_CASES: &[(Output, u64, u32)] = &[
    (Output::Raw, 4 << 20, 13),
    (Output::Picture(ChannelOrder::Rgba), 64 << 20, 8),
    (Output::Picture(ChannelOrder::Bgra), 64 << 20, 8),
];
/// One vendor for each kind of tile.
const TILES: [Vendor; 3] = [Vendor::Other, Vendor::Nvidia, Vendor::Arm];

/// The known kinds of matrix units: those of lavapipe, NVIDIA and AMD.
const UNITS: [MatrixUnits; 3] =
    [MatrixUnits { side: 8, lanes: 8 }, MatrixUnits { side: 16, lanes: 32 }, MatrixUnits { side: 16, lanes: 64 }];

/// Returns the variants of all plans in `storage`: for published families and odd networks, and for
/// all kinds of devices and outputs.
///
/// # Errors
/// The errors of a plan without a budget, which these plans do not meet.
#[doc(hidden)]
pub fn every_variant(storage: Storage) -> Result<Vec<Variant>> {
    let mut variants = variants_with((DeviceKind::Cpu, Vendor::Other, None), storage, None)?;
    for vendor in TILES {
        variants.extend(variants_for(DeviceKind::Gpu, vendor, None, storage)?);
    }
    for units in UNITS.into_iter().filter(|_| storage == Storage::FastF16) {
        variants.extend(variants_for(DeviceKind::Gpu, Vendor::Other, Some(units), storage)?);
    }
    let [with, without] = [true, false].map(|quads| {
        KernelChoice::tiles(&DeviceLimits { kind: DeviceKind::Cpu, quads, ..DeviceLimits::webgpu_default() })
    });
    for &tile in with.iter().chain(without.iter().filter(|tile| !with.contains(tile))) {
        variants.extend(variants_with((DeviceKind::Cpu, Vendor::Other, None), storage, Some(tile))?.into_items());
    }
    Ok(variants.into_items())
}

/// Returns the variants of [`every_variant`] that plans use on devices of this kind and vendor with
/// these matrix units.
///
/// # Errors
/// The errors of a plan without a budget, which these plans do not meet.
#[doc(hidden)]
pub fn variants_for(
    kind: DeviceKind,
    vendor: Vendor,
    units: Option<MatrixUnits>,
    storage: Storage,
) -> Result<Vec<Variant>> {
    Ok(variants_with((kind, vendor, units), storage, None)?.into_items())
}

/// Returns the variants of [`variants_for`] with `tile` in place of the rules' tile, as tuning may
/// choose.
fn variants_with(
    (kind, vendor, matrix_units): (DeviceKind, Vendor, Option<MatrixUnits>),
    storage: Storage,
    tile: Option<MatmulTile>,
) -> Result<Set<Variant>> {
    let mut configs: Vec<AutoencoderConfig> = FAMILIES.iter().map(|family| family.config()).collect();
    configs.extend([
        odd_network(&[8], 4, true),
        odd_network(&[12, 24], 6, false),
        odd_network(&[16, 32, 64, 64], 8, true),
        odd_network(&[20, 40], 4, true),
    ]);
    for mode in PaddingMode::all() {
        let mut config = odd_network(&[16, 32], 8, true);
        config.set_border(mode)?;
        configs.push(config);
    }
    let shader_f16 = storage.needs_shader_f16();
    let limits = DeviceLimits { kind, vendor, matrix_units, shader_f16, ..DeviceLimits::webgpu_default() };
    let choice = tile.map(|tile| KernelChoice::for_device(&limits).with_tile(tile));
    let cases = if kind == DeviceKind::Cpu { CPU_CASES } else { GPU_CASES };
    let mut variants = Set::new();
    for config in &configs {
        let pixels = config.image_size(Size { width: 1, height: 1 }, LatentSpace::Vae).width;
        for &(output, chunk, size) in cases {
            // Pictures of the same size for all, because plans of larger ones take many steps.
            let side = (size * 8).div_ceil(pixels);
            let latents = Size { width: side, height: side };
            let options = PlanOptions { chunk_limit: Bytes(chunk), choice, ..PlanOptions::new(storage, output) };
            for graph in &graphs(config, latents, output) {
                variants.extend(Plan::new(graph, &limits, &options)?.variants);
            }
        }
    }
    Ok(variants)
}

/// Returns the graphs to plan for `output`: images, and parts of clips.
fn graphs(config: &AutoencoderConfig, latents: Size, output: Output) -> Vec<Graph> {
    let image = config.image_size(latents, LatentSpace::Vae);
    let parts: &[Part] = if config.has_time() && !output.stays() { &[Part::First, Part::Next] } else { &[] };
    let mut graphs = vec![decoder(config, latents, LatentSpace::Model)];
    graphs.extend(parts.iter().map(|part| part_of_decoder(config, *part, latents, LatentSpace::Vae)));
    if output == Output::Raw {
        graphs.push(encoder(config, image));
        graphs.extend(parts.iter().map(|part| part_of_encoder(config, *part, image)));
    }
    graphs
}

/// Returns a small network with features that the published ones lack: uneven groups, few channels,
/// one level.
#[doc(hidden)]
pub fn odd_network(channels: &[u32], groups: u32, attention: bool) -> AutoencoderConfig {
    let network = Kl {
        block_out_channels: channels.to_vec(),
        decoder_block_out_channels: None,
        layers_per_block: 1,
        decoder_layers_per_block: None,
        norm_num_groups: groups,
        mid_block_add_attention: attention,
        use_quant_conv: true,
        use_post_quant_conv: true,
        has_shortcuts: false,
        padding_mode: PaddingMode::Zeros,
    };
    AutoencoderConfig { force_upcast: true, ..AutoencoderConfig::new(Network::Kl(network), 4) }
}
