//! Published formulas that people use today to estimate a VAE's memory. None of them looks at the
//! network.

use wgvae::config::Family;
use wgvae::{Bytes, Direction, Size};

/// A published way to estimate the memory of a VAE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Estimator {
    /// `InvokeAI`'s formula with the constants in use: 2200 for decoding, 1100 for encoding.
    InvokeAi,
    /// The formula of [`Self::InvokeAi`] with the constants that `InvokeAI`'s investigation
    /// measured on an RTX 4090: 2136 (95th percentile) and 950.
    InvokeAiMeasured,
    /// The VAE part of the "SD1.5 VRAM calculator".
    VramCalculator,
    /// Only the im2col workspace of the largest 3x3 convolution.
    Im2col,
}

/// The run to estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work<'a> {
    /// Name of the family.
    pub family: &'a str,
    /// Direction.
    pub operation: Direction,
    /// Size of the picture.
    pub size: Size,
    /// Bytes of one stored element.
    pub element_bytes: u64,
}

impl Estimator {
    /// All estimators.
    pub const ALL: [Self; 4] = [Self::InvokeAi, Self::InvokeAiMeasured, Self::VramCalculator, Self::Im2col];

    /// Returns a short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvokeAi => "InvokeAI, in use",
            Self::InvokeAiMeasured => "InvokeAI, measured",
            Self::VramCalculator => "SD1.5 VRAM calculator",
            Self::Im2col => "im2col workspace",
        }
    }

    /// Returns the formula, for people. `H` and `W` are the picture's sides in pixels, `E` the
    /// bytes of an element.
    pub fn formula(self) -> &'static str {
        match self {
            Self::InvokeAi => {
                "2200 · H · W · E to decode, 1100 · H · W · E to encode; for SD and SDXL in f32 250 MiB more"
            }
            Self::InvokeAiMeasured => "2136 · H · W · E to decode, 950 · H · W · E to encode",
            Self::VramCalculator => {
                "1.2 · (2 · parameters + latent + output + 3 · output), in f16: latent = 2 · 4 · H/8 · W/8, output = 2 · 3 · H · W"
            }
            Self::Im2col => {
                "9 · C · H · W · E, where C is the input channels of the largest convolution: 256 in the decoders of SD and FLUX.1, 128 in their encoders"
            }
        }
    }

    /// Returns the source, and its address if it is one page.
    pub fn source(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::InvokeAi => (
                "InvokeAI, vae_working_memory.py",
                Some("https://github.com/invoke-ai/InvokeAI/blob/main/invokeai/backend/util/vae_working_memory.py"),
            ),
            Self::InvokeAiMeasured => {
                ("InvokeAI pull request 8414, investigation", Some("https://github.com/invoke-ai/InvokeAI/pull/8414"))
            }
            Self::VramCalculator => ("SD1.5 VRAM calculator, VAE part", None),
            Self::Im2col => ("MLX im2col analysis", None),
        }
    }

    /// Computes the estimate for `work`. Returns `None` for models that the formula does not cover.
    pub fn bytes(self, work: &Work<'_>) -> Option<Bytes> {
        let family = Family::find(work.family).ok()?;
        let config = family.config();
        let network = config.network.kl()?;
        match self {
            Self::InvokeAi => {
                let linear = linear(work, invokeai_constant(work.operation))?;
                let is_sd = config.latent_channels == 4;
                let larger_model = if is_sd && work.element_bytes == 4 { 250 << 20 } else { 0 };
                linear.checked_add(larger_model).map(Bytes)
            }
            Self::InvokeAiMeasured => linear(work, by_operation(work.operation, 2136, 950)).map(Bytes),
            Self::VramCalculator => (family.name == "sd15").then(|| vram_calculator(work.size)),
            Self::Im2col => match work.operation {
                Direction::Decode => im2col(work.size, *network.decoder_channels().get(1)?, work.element_bytes),
                Direction::Encode => im2col(work.size, *network.block_out_channels.first()?, work.element_bytes),
            },
        }
    }
}

/// Returns the constant in current use by which `InvokeAI`'s formula multiplies pixels and bytes of
/// an element.
pub fn invokeai_constant(operation: Direction) -> u32 {
    by_operation(operation, 2200, 1100)
}

fn by_operation(operation: Direction, decode: u32, encode: u32) -> u32 {
    match operation {
        Direction::Decode => decode,
        Direction::Encode => encode,
    }
}

fn pixels(size: Size) -> u64 {
    u64::from(size.width) * u64::from(size.height)
}

fn linear(work: &Work<'_>, constant: u32) -> Option<u64> {
    pixels(work.size).checked_mul(work.element_bytes)?.checked_mul(constant.into())
}

/// Number of parameters of Stable Diffusion 1.x's VAE, including the encoder.
const SD15_PARAMETERS: u64 = 83_653_863;

/// Computes the calculator's terms for decoding. Encoding has the same terms in another order.
fn vram_calculator(size: Size) -> Bytes {
    const HALF: u64 = 2;
    let latent = u64::from(size.width / 8) * u64::from(size.height / 8) * 4 * HALF;
    let output = pixels(size).saturating_mul(3 * HALF);
    let sum = (SD15_PARAMETERS * HALF).saturating_add(latent).saturating_add(output.saturating_mul(4));
    Bytes(sum.saturating_add(sum / 5))
}

/// Returns the bytes of the im2col matrix of a 3x3 convolution with `channels` channels at full
/// resolution.
pub fn im2col(size: Size, channels: u32, element_bytes: u64) -> Option<Bytes> {
    pixels(size).checked_mul(9 * u64::from(channels))?.checked_mul(element_bytes).map(Bytes)
}
