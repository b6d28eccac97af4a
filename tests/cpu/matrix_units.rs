//! Plans for devices with matrix units: the products on them, their scratch memory, and a right
//! picture for all ways to cut it.

use std::collections::BTreeSet;

use proptest::prelude::*;
use test_kit::formula;
use test_kit::golden::Golden;
use test_kit::plan_checks::check;
use test_kit::reference::interpreter::interpret_and_measure;
use wgvae::config::{AutoencoderConfig, Family};
use wgvae::device::{DeviceKind, DeviceLimits, MatrixUnits};
use wgvae::images::Output;
use wgvae::internals::odd_network;
use wgvae::model::networks::decoder;
use wgvae::plan::{Action, Plan, PlanOptions, Step};
use wgvae::{Bytes, LatentSpace, Size, Storage};

use crate::interpret::{assert_same_bits, most_error, relative_error};
use crate::plan_properties::check_scratch;

const EIGHT: MatrixUnits = MatrixUnits { side: 8, lanes: 8 };
const SIXTEEN: MatrixUnits = MatrixUnits { side: 16, lanes: 32 };

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
fn other_precisions_do_not_see_units() {
    let graph = decoder(&Family::find("sd15").unwrap().config(), Size { width: 16, height: 16 }, LatentSpace::Model);
    for kind in [DeviceKind::Cpu, DeviceKind::Gpu] {
        for storage in [Storage::F32, Storage::F16, Storage::PackedF16] {
            let plan = |units| Plan::new(&graph, &with(units, kind), &PlanOptions::new(storage, Output::Raw)).unwrap();
            assert_eq!(plan(Some(SIXTEEN)), plan(None), "{storage:?}");
        }
    }
}

/// Tests that every product of `fast` is on units: convolutions, linear layers and attention.
#[test]
fn all_products_are_multiplied_on_units() {
    let odd = odd_network(&[12, 20], 4, true);
    let published = ["sd15", "flux1", "cogview4", "wan21"].map(|name| Family::find(name).unwrap().config());
    for config in published.into_iter().chain([odd]) {
        let graph = decoder(&config, Size { width: 32, height: 32 }, LatentSpace::Model);
        for units in [EIGHT, SIXTEEN] {
            let limits = with(Some(units), DeviceKind::Gpu);
            let plan = Plan::new(&graph, &limits, &fast(64 << 20)).unwrap();
            check(&plan, &limits);
            let products = stages_of(&plan, "matmul_matrix");
            assert!(products.is_superset(&stages_of(&plan, "winograd_out_pairs")) && !products.is_empty());
            assert!(products.is_superset(&stages_of(&plan, "attention_softmax")));
            assert!(stages_of(&plan, "matmul_shared").is_empty());
        }
    }
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
        let channels: Vec<u32> = multiples.iter().map(|multiple| multiple * 8).collect();
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
