//! Autoencoders that this crate knows, but does not support: why not, and what to use instead.

use std::fmt;

/// A kind of autoencoder that is not supported. Its text has all but the classes.
pub(crate) struct Unsupported {
    /// Its classes in diffusers, if it has any.
    classes: &'static [&'static str],
    /// Name for people.
    name: &'static str,
    /// Reason why it is not supported, and what to use instead.
    why: &'static str,
    /// The supported family that is its tiny autoencoder.
    tiny: Option<&'static str>,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.why)?;
        self.tiny.map_or(Ok(()), |tiny| write!(f, ", or its tiny autoencoder with family {tiny}"))
    }
}

impl Unsupported {
    /// Returns the kind with the class `name` in diffusers.
    pub(super) fn of_class(name: &str) -> Option<&'static Self> {
        if name.contains("Audio") || name.contains("Vocoder") {
            return Some(&SOUND);
        }
        ALL.iter().copied().find(|kind| kind.classes.contains(&name))
    }
}

/// Declares each kind as a constant, and [`ALL`]. A row has the classes, the name, the reason, and
/// the tiny autoencoder where there is one.
macro_rules! kinds {
    ($($kind:ident: $classes:expr, $name:literal, $why:literal $(, tiny $tiny:literal)?;)+) => {
        $(pub(crate) const $kind: Unsupported =
            Unsupported { classes: &$classes, name: $name, why: $why, tiny: [$(Some($tiny),)? None][0] };)+

        /// All kinds.
        const ALL: &[&Unsupported] = &[$(&$kind),+];
    };
}

kinds! {
    EASY_ANIMATE: ["AutoencoderKLMagvit"], "the VAE of EasyAnimate",
        "its convolutions over time are missing here; use diffusers' AutoencoderKLMagvit";
    TAEHV_SUPER: [], "a TAEHV of the kind _super",
        "its depthwise filters of 7x7 are missing here; use the file without _super in its name";
    LIGHT_TAEHV15: [], "lighttaehy1_5",
        "its activations differ from those of taehv1_5, whose tensors it has; use taehv1_5";
    TAELTX_WIDE: [], "taeltx2_3_wide",
        "its grouped filters are missing here; use LTX-2.3's own VAE or taeltx2_3";
    MAGE: [], "Mage-VAE",
        "its decoder is a diffusion model of one step; use Mage-Flow's own code";
    PID: [], "PiD, a pixel diffusion decoder",
        "it is a diffusion model itself; use the VAE whose latents it takes";
    LTX_DIFFUSION: ["LTX2VideoDiffusionDecoderModel"], "the diffusion decoder of LTX-2.5",
        "it is a diffusion model itself; use LTX-2.5's convolutional decoder, or diffusers' \
        LTX2VideoDiffusionDecoderModel";
    CONSISTENCY: ["ConsistencyDecoderVAE"], "a ConsistencyDecoderVAE",
        "its decoder is a diffusion model; use SD 1.5's VAE", tiny "taesd";
    VQ: ["VQModel"], "a VQ model",
        "its latents are entries of a codebook; use diffusers' VQModel";
    CASCADE_A: ["PaellaVQModel"], "stage A of Stable Cascade",
        "its latents are entries of a codebook; use diffusers' PaellaVQModel";
    CASCADE_C: [], "the encoder or the previewer of Stable Cascade's stage C",
        "its layers of EfficientNet are missing here; use Stable Cascade's own code";
    SVD: ["AutoencoderKLTemporalDecoder"], "the temporal decoder of Stable Video Diffusion",
        "it mixes all frames of a clip; use diffusers' AutoencoderKLTemporalDecoder", tiny "taesd";
    MINIMAX_H3: ["AutoencoderKLMiniMaxH3"], "the VAE of MiniMax-H3",
        "its decoder is a transformer; use diffusers' AutoencoderKLMiniMaxH3", tiny "taeh3";
    RAE: ["AutoencoderRAE"], "an AutoencoderRAE",
        "its halves are transformers; use diffusers' class";
    HUNYUAN_IMAGE3: [], "the VAE of HunyuanImage 3",
        "its convolutions over time are missing here; use HunyuanImage 3's own code";
    HUNYUAN_REFINER: ["AutoencoderKLHunyuanImageRefiner"], "the VAE of HunyuanImage 2.1's refiner",
        "only its single images are HunyuanVideo 1.5's; for them, open a copy of its weights without the config.json, \
        with family hunyuan_video15";
    MOCHI: ["AutoencoderKLMochi"], "the VAE of Mochi",
        "its layers over time are missing here; use diffusers' AutoencoderKLMochi";
    COSMOS: ["AutoencoderKLCosmos"], "the VAE of Cosmos 1",
        "its wavelets and attention over time are missing here; use diffusers' AutoencoderKLCosmos";
    KANDINSKY: ["AutoencoderKLKVAE", "AutoencoderKLKVAEVideo", "Kandinsky6SRVAE"], "a KVAE of Kandinsky",
        "its norms read the latents; use diffusers' class for it";
    COG_VIDEO_X: ["AutoencoderKLCogVideoX"], "the VAE of CogVideoX",
        "its result depends on how a clip is cut; use diffusers' AutoencoderKLCogVideoX", tiny "taecvx";
    ALLEGRO: ["AutoencoderKLAllegro"], "the VAE of Allegro",
        "its convolutions over time are missing here; use diffusers' AutoencoderKLAllegro";
    VID_TOK: ["AutoencoderVidTok"], "VidTok",
        "its convolutions over time are missing here; use diffusers' AutoencoderVidTok";
    LTX_VIDEO: ["AutoencoderKLLTXVideo"], "the VAE of LTX-Video 0.9",
        "LTX-2's is supported; use diffusers' AutoencoderKLLTXVideo";
    HUNYUAN_VIDEO: ["AutoencoderKLHunyuanVideo"], "the VAE of HunyuanVideo",
        "its result depends on how a clip is cut; use diffusers' AutoencoderKLHunyuanVideo", tiny "taehv";
    OTHER_VIDEO: [], "a video VAE (its convolutions are 3-D)",
        "use diffusers' class for it";
    // Also all with Audio or Vocoder in their names.
    SOUND: ["AutoencoderOobleck", "AutoencoderSAME"], "a model for sound",
        "wgvae is for pictures; use diffusers' class for it";
}
