//! Compares what a kernel wrote with what its twin writes.

use std::borrow::Cow;

use half::f16;
use wgvae::Storage;
use wgvae::kernels::{Access, interface};

use super::{Data, Elements, Problem, Tolerance};
use crate::reference::{Call, run};

/// Returns the content that the CPU twin leaves in each binding that the kernel writes.
pub fn twin(problem: &Problem) -> Vec<(usize, Vec<u8>)> {
    let mut call = Call {
        variant: &problem.launch.variant,
        params: &problem.launch.params,
        workgroups: problem.launch.workgroups,
        bindings: problem.bindings.iter().map(content).collect(),
    };
    run(&mut call);
    let uses = interface(problem.launch.variant.file).bindings;
    let bindings = call.bindings.into_iter().map(Cow::into_owned).enumerate();
    bindings.filter(|(index, bytes)| uses[*index].1 == Access::ReadWrite && !bytes.is_empty()).collect()
}

/// Returns what a binding holds before the launch: nothing if there is none.
fn content(binding: &Option<Data>) -> Cow<'_, [u8]> {
    binding.as_ref().map_or(Cow::default(), |data| Cow::Borrowed(&data.bytes))
}

/// Compares the content of a binding with the twin's.
pub fn compare(elements: Elements, found: &[u8], wanted: &[u8], tolerance: Tolerance) -> Result<(), String> {
    assert_eq!(found.len(), wanted.len());
    match elements {
        Elements::Levels => {
            let far = found.iter().zip(wanted).position(|(found, wanted)| found.abs_diff(*wanted) > 1);
            far.map_or(Ok(()), |at| Err(format!("byte {at} is {}, expected {}", found[at], wanted[at])))
        }
        Elements::Exact(storage) => {
            let (found, wanted) = (floats(found, storage), floats(wanted, storage));
            let same = |(found, wanted): (&f64, &f64)| found == wanted || (found.is_nan() && wanted.is_nan());
            let wrong = found.iter().zip(&wanted).position(|pair| !same(pair));
            wrong.map_or(Ok(()), |at| Err(format!("element {at} is {}, expected {}", found[at], wanted[at])))
        }
        Elements::Numbers(storage) => compare_numbers(&floats(found, storage), &floats(wanted, storage), tolerance),
    }
}

fn floats(bytes: &[u8], storage: Storage) -> Vec<f64> {
    match storage {
        Storage::F32 => bytemuck::pod_collect_to_vec::<u8, f32>(bytes).into_iter().map(f64::from).collect(),
        Storage::F16 | Storage::PackedF16 | Storage::FastF16 => {
            bytemuck::pod_collect_to_vec::<u8, f16>(bytes).into_iter().map(f64::from).collect()
        }
    }
}

fn compare_numbers(found: &[f64], wanted: &[f64], tolerance: Tolerance) -> Result<(), String> {
    // Memory that is never written is NaN on both sides.
    if let Some(at) = (0..found.len()).find(|&at| found[at].is_nan() != wanted[at].is_nan()) {
        return Err(format!("element {at} is {}, expected {}", found[at], wanted[at]));
    }
    let pairs = || found.iter().zip(wanted).filter(|(_, wanted)| !wanted.is_nan());
    let power: f64 = pairs().map(|(_, wanted)| wanted * wanted).sum();
    let error: f64 = pairs().map(|(found, wanted)| (found - wanted).powi(2)).sum();
    let largest = pairs().fold(0.0_f64, |most, (_, wanted)| most.max(wanted.abs()));
    let worst = pairs().fold(0.0_f64, |most, (found, wanted)| most.max((found - wanted).abs()));
    let (nmse, max_abs) = (error / power.max(f64::MIN_POSITIVE), worst / largest.max(f64::MIN_POSITIVE));
    if nmse <= tolerance.nmse && max_abs <= tolerance.max_abs {
        return Ok(());
    }
    Err(format!("NMSE {nmse:.1e} of {:.1e}, max-abs {max_abs:.1e} of {:.1e}", tolerance.nmse, tolerance.max_abs))
}
