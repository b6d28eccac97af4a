//! Tests of the list of weights that a graph needs, which is made without a schedule.

use std::collections::BTreeSet;

use wgvae::config::FAMILIES;
use wgvae::device::DeviceLimits;
use wgvae::images::Output;
use wgvae::model::blocks::Part;
use wgvae::model::graph::{Graph, WeightSlice};
use wgvae::model::networks::{part_of_decoder, part_of_encoder};
use wgvae::plan::manifest::weights_of;
use wgvae::plan::{Plan, PlanOptions, WeightKey};
use wgvae::{LatentSpace, Size, Storage};

/// Loading reads what the list has, and a plan takes it from there. So the two must be equal, and
/// the size of the picture must not matter.
#[test]
fn a_plan_uses_the_weights_of_the_list_and_no_others() {
    let mut checked = 0;
    for family in FAMILIES {
        let config = family.config();
        let parts: &[Part] = if config.has_time() { &[Part::Image, Part::First, Part::Next] } else { &[Part::Image] };
        for &part in parts {
            for storage in [Storage::F32, Storage::PackedF16] {
                let graphs = |side: u32| {
                    let latents = Size { width: side, height: side };
                    let image = config.image_size(latents, LatentSpace::Vae);
                    [part_of_decoder(&config, part, latents, LatentSpace::Vae), part_of_encoder(&config, part, image)]
                };
                for (small, graph) in graphs(8).iter().zip(&graphs(24)) {
                    let listed: BTreeSet<WeightKey> =
                        weights_of(small, storage).iter().map(|used| used.key()).collect();
                    assert_eq!(listed, planned(graph, storage), "{} {part:?} {storage:?}", family.name);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 100, "{checked}");
}

/// Returns the weights of a plan that come from files.
fn planned(graph: &Graph, storage: Storage) -> BTreeSet<WeightKey> {
    let plan = Plan::new(graph, &DeviceLimits::webgpu_default(), &PlanOptions::new(storage, Output::Raw)).unwrap();
    plan.weights.iter().filter(|used| used.take != WeightSlice::Transform).map(|used| used.key()).collect()
}
