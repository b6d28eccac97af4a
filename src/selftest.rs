//! Decodes latents with every set of kernels that the rules can choose, on one adapter, and
//! compares the results with those of another implementation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use web_time::Instant;

use crate::device::{Cpu, CpuOptions, Device};
use crate::error::{Error, Result};
use crate::execution::Control;
use crate::gpu::{Gpu, GpuOptions};
use crate::io::{ByteSource, Checkpoint, read_images, read_latents};
use crate::kernels::choice::KernelChoice;
use crate::limits::{DeviceKind, Vendor};
use crate::tensor::{HostTensor, Size};
use crate::vae::{DecodeOptions, Latents, LoadOptions, Precision, Vae};

/// Kinds of devices: one for each set of kernels that the rules can choose.
const SETS: [(DeviceKind, Vendor); 4] = [
    (DeviceKind::Cpu, Vendor::Other),
    (DeviceKind::Gpu, Vendor::Nvidia),
    (DeviceKind::Gpu, Vendor::Other),
    (DeviceKind::Gpu, Vendor::Arm),
];
/// The largest difference to an f32 reference, as a fraction of its largest value. The tests of
/// this crate allow the same. The reference may be stored as halves.
const MOST_F32: f32 = 6e-4;
const MOST_F16: f32 = 8e-3;
const MOST_FAST: f32 = 1.6e-2;

/// The storage of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SelftestElements {
    /// 32-bit floats.
    F32,
    /// Halves.
    F16,
    /// Two halves in 32 bits, for devices without `shader-f16`.
    PackedF16,
    /// Halves, also within convolutions: [`Precision::Fast`].
    Fast,
    /// Halves, also within convolutions, multiplied on matrix units.
    FastOnUnits,
}

impl SelftestElements {
    const ALL: [Self; 5] = [Self::F32, Self::F16, Self::PackedF16, Self::Fast, Self::FastOnUnits];

    /// Returns the largest difference to the reference that counts as right.
    fn most(self) -> f32 {
        match self {
            Self::F32 => MOST_F32,
            Self::F16 | Self::PackedF16 => MOST_F16,
            Self::Fast | Self::FastOnUnits => MOST_FAST,
        }
    }

    fn precision(self) -> Precision {
        match self {
            Self::F32 => Precision::F32,
            Self::F16 | Self::PackedF16 => Precision::F16,
            Self::Fast | Self::FastOnUnits => Precision::Fast,
        }
    }

    /// True if the adapter of `gpu` has the features that these elements need.
    fn are_on(self, gpu: &Gpu) -> bool {
        match self {
            Self::F32 | Self::PackedF16 => true,
            Self::F16 | Self::Fast => gpu.limits().shader_f16,
            Self::FastOnUnits => gpu.adapter().matrix_units.is_some(),
        }
    }

    /// Returns the options of a device for these elements.
    fn options(self, base: &GpuOptions) -> GpuOptions {
        GpuOptions {
            without_shader_f16: self == Self::PackedF16,
            #[cfg(not(target_arch = "wasm32"))]
            matrix_units: self == Self::FastOnUnits,
            ..base.clone()
        }
    }
}

/// The result of one set of kernels with one kind of elements.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SelftestRow {
    /// The kernels.
    pub kernels: KernelChoice,
    /// The storage of the elements.
    pub elements: SelftestElements,
    /// The time of the second decode, when all is compiled, seconds.
    pub seconds: f64,
    /// The largest difference to the reference, divided by the reference's largest value. Infinite,
    /// which JSON writes as null, if a value is not a number.
    pub error: f32,
    /// The largest `error` that counts as right.
    pub most: f32,
    /// True if the result equals that of the first set of kernels with these elements, to the bit.
    pub same_bits: bool,
    /// True if `same_bits` holds and `error` is at most `most`.
    pub right: bool,
}

/// The results of a self-test on one adapter.
#[derive(Debug, Clone, Serialize)]
pub struct Selftest {
    /// The adapter's name.
    pub adapter: String,
    /// True if all rows are right.
    pub right: bool,
    /// One row for each set of kernels with each kind of elements that the adapter has.
    pub rows: Vec<SelftestRow>,
}

wasm_not! {
    Send;
    /// A function that hears the progress of a self-test: the rows done, and the rows in total.
    pub type OnRows<'a> = dyn FnMut(usize, usize) + 'a
}

/// The progress listener and the cancel flag of a self-test.
#[derive(Default)]
pub struct SelftestControl<'a> {
    /// A function called before each row and at the end, with the rows done and the rows in total.
    pub progress: Option<&'a mut OnRows<'a>>,
    /// A flag that any thread may set to true, to stop before the next submission.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl std::fmt::Debug for SelftestControl<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SelftestControl")
            .field("progress", &self.progress.is_some())
            .field("cancel", &self.cancel)
            .finish()
    }
}

impl SelftestControl<'_> {
    fn tell(&mut self, done: usize, total: usize) -> Result<()> {
        if self.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(Error::Cancelled);
        }
        if let Some(progress) = &mut self.progress {
            progress(done, total);
        }
        Ok(())
    }
}

/// Latents, and their decode by another implementation.
struct Reference {
    latents: Latents,
    image: HostTensor,
}

impl Reference {
    async fn read(file: &dyn ByteSource) -> Result<Self> {
        let latents = Latents::stored(read_latents(file, Some("latents")).await?)?;
        Ok(Self { latents, image: read_images(file, Some("image")).await? })
    }

    /// Decodes twice on `device`. Compares with the image, and with `bits`, the result of the first
    /// set of kernels with these elements, which it sets if there is none.
    async fn row(
        &self,
        device: &Device,
        checkpoint: &Checkpoint,
        elements: SelftestElements,
        bits: &mut Option<Vec<f32>>,
        cancel: Option<&Arc<AtomicBool>>,
    ) -> Result<SelftestRow> {
        let options = LoadOptions { precision: elements.precision(), ..LoadOptions::default() };
        let mut vae = Vae::load(device, checkpoint, options).await?;
        check_size(&self.image, vae.image_size(&self.latents))?;
        let (seconds, values) = decode(&mut vae, &self.latents, cancel).await?;
        let (error, most) = (largest_difference(&values, &self.image.data), elements.most());
        let same_bits = same_bits(bits.get_or_insert_with(|| values.clone()), &values);
        let right = same_bits && error <= most;
        Ok(SelftestRow { kernels: *device.kernels(), elements, seconds, error, most, same_bits, right })
    }
}

/// Decodes the latents in `reference` with each set of kernels, and compares the results with the
/// image in it. Opens a device for each kind of elements, by `options`. `reference` is a
/// .safetensors file with `latents` `[1, c, h, w]` and `image` `[1, 3, height, width]`, not
/// clamped, computed in f32.
///
/// # Errors
/// The errors of [`Gpu::request`], [`Vae::load`] and [`Vae::decode`]. [`Error::Input`] if the
/// image's size is not that of the decoded latents. A wrong result is no error: the rows report it.
pub async fn run(
    options: &GpuOptions,
    checkpoint: &Checkpoint,
    reference: &dyn ByteSource,
    control: &mut SelftestControl<'_>,
) -> Result<Selftest> {
    let reference = Reference::read(reference).await?;
    let first = Gpu::request(options).await?;
    let elements = SelftestElements::ALL.into_iter().filter(|elements| elements.are_on(&first));
    let elements: Vec<SelftestElements> = elements.collect();
    let (adapter, total) = (first.adapter().name.clone(), elements.len() * SETS.len());
    drop(first);
    let mut rows: Vec<SelftestRow> = Vec::new();
    for elements in elements {
        let mut bits = None;
        let gpu = Gpu::request(&elements.options(options)).await?;
        for (kind, vendor) in SETS {
            control.tell(rows.len(), total)?;
            let device = gpu.clone().with_kernels_of(kind, vendor).into();
            rows.push(reference.row(&device, checkpoint, elements, &mut bits, control.cancel.as_ref()).await?);
        }
    }
    control.tell(rows.len(), total)?;
    Ok(Selftest { adapter, right: rows.iter().all(|row| row.right), rows })
}

/// Decodes the latents in `reference` on the machine's own cores in f32 and in halves, with all
/// threads of `cpu` and with one, and compares the results with the image in it; see [`run`].
///
/// # Errors
/// The errors of [`Cpu::new`], [`Vae::load`] and [`Vae::decode`]; [`Error::Input`] as for [`run`].
pub async fn run_on_cores(
    cpu: &Cpu,
    checkpoint: &Checkpoint,
    reference: &dyn ByteSource,
    control: &mut SelftestControl<'_>,
) -> Result<Selftest> {
    let reference = Reference::read(reference).await?;
    let one = Cpu::new(&CpuOptions { threads: Some(1), ..CpuOptions::default() })?;
    // A browser's module for the CPU has no halves.
    let elements = [SelftestElements::F32, SelftestElements::PackedF16];
    let elements = if cfg!(target_arch = "wasm32") { &elements[..1] } else { &elements };
    let (mut rows, total) = (Vec::new(), elements.len() * 2);
    for elements in elements {
        let mut bits = None;
        for cores in [cpu, &one] {
            control.tell(rows.len(), total)?;
            rows.push(
                reference.row(&Device::from(cores), checkpoint, *elements, &mut bits, control.cancel.as_ref()).await?,
            );
        }
    }
    control.tell(rows.len(), total)?;
    Ok(Selftest { adapter: cpu.adapter().name.clone(), right: rows.iter().all(|row| row.right), rows })
}

/// Returns the seconds of the second decode, and its result `[3, h, w]`.
async fn decode(vae: &mut Vae, latents: &Latents, cancel: Option<&Arc<AtomicBool>>) -> Result<(f64, Vec<f32>)> {
    let options = DecodeOptions::default();
    let mut control = Control { cancel: cancel.cloned(), ..Control::default() };
    vae.decode_raw(latents, &options, &mut control).await?;
    let start = Instant::now();
    let decoded = vae.decode_raw(latents, &options, &mut control).await?;
    let seconds = start.elapsed().as_secs_f64();
    Ok((seconds, decoded.pixels))
}

fn check_size(image: &HostTensor, size: Size) -> Result<()> {
    let wanted = [3, size.height as usize, size.width as usize];
    if image.shape.ends_with(&wanted) && image.data.len() == wanted.iter().product::<usize>() {
        return Ok(());
    }
    Err(Error::input(
        "image of the reference",
        format!("[1, 3, {}, {}], the size that its latents decode to", size.height, size.width),
        format!("{:?}", image.shape),
    ))
}

fn same_bits(one: &[f32], other: &[f32]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.to_bits() == other.to_bits())
}

/// Returns the largest difference, divided by the largest wanted value. Infinite if a value is not
/// a number.
fn largest_difference(found: &[f32], wanted: &[f32]) -> f32 {
    let pairs = found.iter().zip(wanted);
    if pairs.clone().any(|(found, wanted)| (found - wanted).is_nan()) {
        return f32::INFINITY;
    }
    let largest = wanted.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    pairs.fold(0.0_f32, |difference, (found, wanted)| difference.max((found - wanted).abs())) / largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_of_another_size_is_refused() {
        let check = |shape: &[usize]| {
            let image = HostTensor { shape: shape.to_vec(), data: vec![0.0; shape.iter().product()] };
            check_size(&image, Size { width: 6, height: 4 }).map_err(|error| error.to_string())
        };
        assert_eq!(check(&[1, 3, 4, 6]), Ok(()));
        assert_eq!(check(&[3, 4, 6]), Ok(()));
        for shape in [&[1, 3, 6, 4][..], &[2, 3, 4, 6], &[1, 4, 4, 6], &[72]] {
            let error = check(shape).unwrap_err();
            assert!(error.contains("[1, 3, 4, 6]") && error.contains(&format!("{shape:?}")), "{error}");
        }
    }

    #[test]
    fn what_is_no_number_is_never_right() {
        assert_eq!(largest_difference(&[1.0, f32::NAN], &[1.0, 1.0]), f32::INFINITY);
        assert_eq!(largest_difference(&[1.0, -1.5], &[1.0, -2.0]), 0.25);
        assert!(!same_bits(&[0.0], &[-0.0]) && same_bits(&[0.5], &[0.5]));
    }
}
