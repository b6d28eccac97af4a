//! Plans for devices with matrix units: the choice of products, their scratch memory, and a right
//! picture for all ways to cut it.

use std::collections::BTreeSet;

use proptest::prelude::*;
use wgvae::config::{AutoencoderConfig, Family};
use wgvae::device::{DeviceKind, DeviceLimits, MatrixUnits};
use wgvae::images::Output;
use wgvae::internals::odd_network;
use wgvae::kernels::choice::{MATRICES, MatmulTile, Products, Transforms};
use wgvae::kernels::matmul_matrix::{MatrixParams, SUBGROUPS};
use wgvae::kernels::winograd::{InParams, OutParams};
use wgvae::model::networks::decoder;
use wgvae::plan::{Action, Plan, PlanOptions, Step};
use wgvae::{Bytes, LatentSpace, Size, Storage};

use crate::formula;
use crate::golden::Golden;
use crate::interpret::{assert_same_bits, most_error, relative_error};
use crate::interpreter::interpret_and_measure;
use crate::plan_checks::check;
use crate::plan_properties::check_scratch;

const EIGHT: MatrixUnits = MatrixUnits { side: 8, lanes: 8, one_size: true };
const SIXTEEN: MatrixUnits = MatrixUnits { side: 16, lanes: 32, one_size: true };

fn with(matrix_units: Option<MatrixUnits>, kind: DeviceKind) -> DeviceLimits {
    DeviceLimits { matrix_units, kind, shader_f16: true, ..DeviceLimits::webgpu_default() }
}

fn fast(chunk_limit: u64) -> PlanOptions {
    PlanOptions { chunk_limit: Bytes(chunk_limit), ..PlanOptions::new(Storage::FastF16, Output::Raw) }
}

/// Returns the stages that have a launch of `file`.
fn stages_of(plan: &Plan, file: &str) -> BTreeSet<String> {
    let is_of = |step: &&Step| match step.action {
        Action::Dispatch { variant, .. } => plan.variants[variant].file == file,
        _ => false,
    };
    plan.steps.iter().filter(is_of).map(|step| plan.stages[step.stage].clone()).collect()
}

#[test]
fn whole_matrices_of_halves_are_multiplied_on_units() {
    let tile = MatmulTile::Shared { rows4: 2, columns4: 2 };
    let products = |units, transformed, channels: (u32, u32)| {
        Products::new(tile, units, transformed, channels.0 / 4, channels.1 / 4)
    };
    for (units, fitting, other) in [
        (EIGHT, [(8, 32), (128, 256), (24, 96)], [(12, 32), (4, 32), (32, 40), (32, 16)]),
        (SIXTEEN, [(16, 64), (512, 512), (48, 192)], [(24, 64), (8, 64), (64, 96), (64, 32)]),
    ] {
        for channels in fitting {
            assert_eq!(products(Some(units), Storage::F16, channels), Products::Matrix(units), "{channels:?}");
            // Units are not used if there are none, and not in f32.
            assert_eq!(products(None, Storage::F16, channels), Products::Tile(tile));
            assert_eq!(products(Some(units), Storage::F32, channels), Products::Tile(tile));
        }
        for channels in other {
            assert_eq!(products(Some(units), Storage::F16, channels), Products::Tile(tile), "{channels:?}");
        }
        let matrix = Products::Matrix(units);
        assert_eq!((matrix.rows(), matrix.block_columns4() * 4), (units.side * 4, units.side * 4));
        assert_eq!(matrix.transforms(Transforms::Runs), Transforms::Pairs);
    }
    let ordinary = Products::Tile(tile);
    assert_eq!(ordinary.rows(), 1);
    assert_eq!(ordinary.transforms(Transforms::Runs), Transforms::Runs);
}

/// Tests channels of 32, 64 and 96, which all fill matrices of 8. But 96 columns are one and a half
/// squares of 64, and 32 are half of one.
#[test]
fn convolutions_that_fill_no_matrices_take_the_ordinary_product() {
    let config = odd_network(&[32, 64, 96], 8, false);
    let graph = decoder(&config, Size { width: 9, height: 7 }, LatentSpace::Model);
    let plan = |units| Plan::new(&graph, &with(units, DeviceKind::Gpu), &fast(64 << 20)).unwrap();
    let ordinary = plan(None);
    assert!(stages_of(&ordinary, "matmul_matrix").is_empty());
    let winograd = stages_of(&ordinary, "winograd_out_pairs");
    assert!(winograd.len() > 10);
    let [eight, sixteen] = [plan(Some(EIGHT)), plan(Some(SIXTEEN))];
    assert_eq!(stages_of(&eight, "matmul_matrix"), winograd);
    assert_eq!(stages_of(&eight, "winograd_weights"), BTreeSet::new());
    let on_units = stages_of(&sixteen, "matmul_matrix");
    assert_eq!(on_units, stages_of(&sixteen, "winograd_weights_columns"));
    assert!(on_units.is_subset(&winograd) && !on_units.is_empty() && on_units.len() < winograd.len(), "{on_units:?}");
    // The other stages use ordinary products.
    let others: BTreeSet<String> = winograd.difference(&on_units).cloned().collect();
    assert_eq!(stages_of(&sixteen, "winograd_weights"), others);
}

#[test]
fn other_precisions_do_not_see_units() {
    let graph = decoder(&Family::find("sd15").unwrap().config(), Size { width: 16, height: 16 }, LatentSpace::Model);
    for kind in [DeviceKind::Cpu, DeviceKind::Gpu] {
        for storage in [Storage::F32, Storage::F16, Storage::PackedF16] {
            let plan = |units| Plan::new(&graph, &with(units, kind), &PlanOptions::new(storage, Output::Raw)).unwrap();
            assert_eq!(plan(Some(SIXTEEN)), plan(None), "{storage:?}");
        }
    }
}

/// Tests that published models use units for all 3x3 convolutions except the first and the last,
/// which have few channels on one side.
#[test]
fn published_models_are_multiplied_on_units() {
    for family in ["sd15", "flux1", "cogview4"] {
        let graph =
            decoder(&Family::find(family).unwrap().config(), Size { width: 32, height: 32 }, LatentSpace::Model);
        for units in [EIGHT, SIXTEEN] {
            let limits = with(Some(units), DeviceKind::Gpu);
            let plan = Plan::new(&graph, &limits, &fast(64 << 20)).unwrap();
            check(&plan, &limits);
            assert_eq!(stages_of(&plan, "matmul_matrix"), stages_of(&plan, "winograd_out_pairs"), "{family}");
            assert!(stages_of(&plan, "winograd_weights").is_empty(), "{family}");
        }
    }
}

/// Checks that every launch before, on and after units states the same room for its tiles. Returns
/// the number of launches on units, and of those that pad their tiles.
fn rooms(plan: &Plan, units: MatrixUnits) -> (u32, u32) {
    let (mut launches, mut padded) = (0, 0);
    let mut input = None;
    for step in &plan.steps {
        let Action::Dispatch { variant, params, workgroups, .. } = &step.action else { continue };
        let (variant, params) = (&plan.variants[*variant], &plan.params[params.clone()]);
        match variant.file {
            "winograd_in" | "winograd_in_pairs" => input = Some(bytemuck::pod_read_unaligned::<InParams>(params)),
            "matmul_matrix" => {
                let v = input.unwrap();
                let p: MatrixParams = bytemuck::pod_read_unaligned(params);
                let square = units.side * MATRICES;
                let rows = workgroups[0] * square;
                assert_eq!((variant.number("SIDE"), variant.number("WORKGROUP")), (units.side, units.lanes * SUBGROUPS));
                assert!(rows >= v.tiles && rows - v.tiles < square, "{rows} rows for {} tiles", v.tiles);
                assert_eq!((v.v_tiles, p.a_row, p.a_batch), (rows, v.v_channels4, rows * v.v_channels4));
                assert_eq!((p.c_batch, p.k4 % (units.side / 4), p.b_batch), (rows * p.c_row, 0, workgroups[1] * square * p.k4));
                launches += 1;
                padded += u32::from(rows > v.tiles);
            }
            "winograd_out" | "winograd_out_pairs" => {
                let (v, m): (InParams, OutParams) = (input.unwrap(), bytemuck::pod_read_unaligned(params));
                assert_eq!((m.tiles, m.m_tiles), (v.tiles, v.v_tiles));
            }
            _ => {}
        }
    }
    (launches, padded)
}

#[test]
fn tiles_are_padded_to_whole_matrices_and_no_further() {
    let config = odd_network(&[32, 64], 8, true);
    for units in [EIGHT, SIXTEEN] {
        let (mut launches, mut padded) = (0, 0);
        for (width, height) in [(1, 1), (7, 5), (16, 16), (33, 9), (40, 64)] {
            for chunk_limit in [1 << 14, 1 << 18, 64 << 20] {
                let graph = decoder(&config, Size { width, height }, LatentSpace::Model);
                let limits = with(Some(units), DeviceKind::Gpu);
                let plan = Plan::new(&graph, &limits, &fast(chunk_limit)).unwrap();
                check(&plan, &limits);
                let (all, some) = rooms(&plan, units);
                (launches, padded) = (launches + all, padded + some);
            }
        }
        assert!(padded > 0 && padded < launches, "{padded} of {launches} launches have rows to spare");
    }
}

/// Tests that bindings too small for a square of matrices use no units.
#[test]
fn bindings_that_are_too_small_for_matrices_get_none() {
    let graph = decoder(&odd_network(&[32, 64], 8, false), Size { width: 8, height: 8 }, LatentSpace::Model);
    let mut seen = BTreeSet::new();
    for power in 14..26 {
        let bytes = Bytes(1 << power);
        let limits = with(Some(SIXTEEN), DeviceKind::Gpu);
        let limits = DeviceLimits { max_storage_buffer_binding_size: bytes, max_buffer_size: bytes, ..limits };
        if let Ok(plan) = Plan::new(&graph, &limits, &fast(1 << 12)) {
            check(&plan, &limits);
            seen.insert(stages_of(&plan, "matmul_matrix").len());
        }
    }
    assert!(seen.contains(&0) && seen.len() > 1, "stages on units, from small to large bindings: {seen:?}");
}

fn interpreted(
    config: &AutoencoderConfig,
    latents: &wgvae::HostTensor,
    limits: &DeviceLimits,
    options: &PlanOptions,
) -> Vec<f32> {
    let [height, width] = [1, 2].map(|axis| u32::try_from(latents.shape[latents.shape.len() - 3 + axis]).unwrap());
    let plan = Plan::new(&decoder(config, Size { width, height }, LatentSpace::Model), limits, options).unwrap();
    check(&plan, limits);
    assert!(!stages_of(&plan, "matmul_matrix").is_empty());
    let (result, written) = interpret_and_measure(&plan, &formula::decoder(config), &[&latents.data]);
    check_scratch(&plan, &written);
    result
}

#[test]
fn decodes_on_units_are_as_near_to_diffusers_as_fast_is() {
    let name = "toy_odd";
    let golden = Golden::open(name);
    let (config, latents, image) = (&golden.config, golden.latents(), golden.output("image").unwrap());
    for units in [EIGHT, SIXTEEN] {
        let decode = |kind, chunk| interpreted(config, &latents, &with(Some(units), kind), &fast(chunk));
        let whole = decode(DeviceKind::Gpu, 64 << 20);
        let (error, most) =
            (relative_error(&whole, &image.data), most_error(Storage::FastF16, 0.0, golden.f16_error("image")));
        println!("{name} {units:?}: {error:.1e}, at most {most:.1e}");
        assert!(error <= most, "{name} {units:?}: {error:.1e} from diffusers, at most {most:.1e}");
        assert_same_bits(
            &decode(DeviceKind::Cpu, 64 << 20),
            &whole,
            &format!("{name} {units:?} by a CPU's transforms"),
        );
        assert_same_bits(&decode(DeviceKind::Gpu, 1 << 14), &whole, &format!("{name} {units:?} in chunks"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// Tests that units load and store exactly the predicted scratch memory, to the byte.
    #[test]
    fn predicted_scratch_is_what_units_use(
        multiples in prop::collection::vec(1_u32..=4, 1..=2), size in (1_u32..=9, 1_u32..=9), power in 10_u32..20, cpu in any::<bool>(),
    ) {
        let channels: Vec<u32> = multiples.iter().map(|multiple| multiple * 16).collect();
        let config = odd_network(&channels, 8, false);
        let limits = with(Some(EIGHT), if cpu { DeviceKind::Cpu } else { DeviceKind::Gpu });
        let graph = decoder(&config, Size { width: size.0, height: size.1 }, LatentSpace::Model);
        let plan = Plan::new(&graph, &limits, &fast(1 << power)).unwrap();
        check(&plan, &limits);
        let latents = formula::latents(&[config.latent_channels as usize, size.1 as usize, size.0 as usize]);
        let (_, written) = interpret_and_measure(&plan, &formula::decoder(&config), &[&latents.data]);
        check_scratch(&plan, &written);
    }
}
