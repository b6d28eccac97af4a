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

pub(crate) const EASY_ANIMATE: Unsupported = Unsupported {
    classes: &["AutoencoderKLMagvit"],
    name: "the VAE of EasyAnimate",
    why: "its convolutions over time are missing here; use diffusers' AutoencoderKLMagvit",
    tiny: None,
};

pub(crate) const TAEHV_SUPER: Unsupported = Unsupported {
    classes: &[],
    name: "a TAEHV of the kind _super",
    why: "its depthwise filters of 7x7 are missing here; use the file without _super in its name",
    tiny: None,
};

pub(crate) const TAELTX_WIDE: Unsupported = Unsupported {
    classes: &[],
    name: "taeltx2_3_wide",
    why: "its grouped filters are missing here; use LTX-2.3's own VAE or taeltx2_3",
    tiny: None,
};

pub(crate) const MAGE: Unsupported = Unsupported {
    classes: &[],
    name: "Mage-VAE",
    why: "its decoder is a diffusion model of one step; use Mage-Flow's own code",
    tiny: None,
};

pub(crate) const PID: Unsupported = Unsupported {
    classes: &[],
    name: "PiD, a pixel diffusion decoder",
    why: "it is a diffusion model itself; use the VAE whose latents it takes",
    tiny: None,
};

pub(crate) const LTX_DIFFUSION: Unsupported = Unsupported {
    classes: &["LTX2VideoDiffusionDecoderModel"],
    name: "the diffusion decoder of LTX-2.5",
    why: "it is a diffusion model itself; use LTX-2.5's convolutional decoder, or diffusers' \
          LTX2VideoDiffusionDecoderModel",
    tiny: None,
};

pub(crate) const CONSISTENCY: Unsupported = Unsupported {
    classes: &["ConsistencyDecoderVAE"],
    name: "a ConsistencyDecoderVAE",
    why: "its decoder is a diffusion model; use SD 1.5's VAE",
    tiny: Some("taesd"),
};

pub(crate) const VQ: Unsupported = Unsupported {
    classes: &["VQModel"],
    name: "a VQ model",
    why: "its latents are entries of a codebook; use diffusers' VQModel",
    tiny: None,
};

pub(crate) const CASCADE_A: Unsupported = Unsupported {
    classes: &["PaellaVQModel"],
    name: "stage A of Stable Cascade",
    why: "its latents are entries of a codebook; use diffusers' PaellaVQModel",
    tiny: None,
};

pub(crate) const CASCADE_C: Unsupported = Unsupported {
    classes: &[],
    name: "the encoder or the previewer of Stable Cascade's stage C",
    why: "its layers of EfficientNet are missing here; use Stable Cascade's own code",
    tiny: None,
};

pub(crate) const SVD: Unsupported = Unsupported {
    classes: &["AutoencoderKLTemporalDecoder"],
    name: "the temporal decoder of Stable Video Diffusion",
    why: "it mixes all frames of a clip; use diffusers' AutoencoderKLTemporalDecoder",
    tiny: Some("taesd"),
};

pub(crate) const MINIMAX_H3: Unsupported = Unsupported {
    classes: &["AutoencoderKLMiniMaxH3"],
    name: "the VAE of MiniMax-H3",
    why: "its decoder is a transformer; use diffusers' AutoencoderKLMiniMaxH3",
    tiny: Some("taeh3"),
};

pub(crate) const RAE: Unsupported = Unsupported {
    classes: &["AutoencoderRAE"],
    name: "an AutoencoderRAE",
    why: "its halves are transformers; use diffusers' class",
    tiny: None,
};

pub(crate) const HUNYUAN_IMAGE3: Unsupported = Unsupported {
    classes: &[],
    name: "the VAE of HunyuanImage 3",
    why: "its convolutions over time are missing here; use HunyuanImage 3's own code",
    tiny: None,
};

pub(crate) const HUNYUAN_REFINER: Unsupported = Unsupported {
    classes: &["AutoencoderKLHunyuanImageRefiner"],
    name: "the VAE of HunyuanImage 2.1's refiner",
    why: "only its single images are HunyuanVideo 1.5's; for them, open a copy of its weights without the config.json, \
          with family hunyuan_video15",
    tiny: None,
};

pub(crate) const MOCHI: Unsupported = Unsupported {
    classes: &["AutoencoderKLMochi"],
    name: "the VAE of Mochi",
    why: "its layers over time are missing here; use diffusers' AutoencoderKLMochi",
    tiny: None,
};

pub(crate) const COSMOS: Unsupported = Unsupported {
    classes: &["AutoencoderKLCosmos"],
    name: "the VAE of Cosmos 1",
    why: "its wavelets and attention over time are missing here; use diffusers' AutoencoderKLCosmos",
    tiny: None,
};

pub(crate) const KANDINSKY: Unsupported = Unsupported {
    classes: &["AutoencoderKLKVAE", "AutoencoderKLKVAEVideo", "Kandinsky6SRVAE"],
    name: "a KVAE of Kandinsky",
    why: "its norms read the latents; use diffusers' class for it",
    tiny: None,
};

pub(crate) const COG_VIDEO_X: Unsupported = Unsupported {
    classes: &["AutoencoderKLCogVideoX"],
    name: "the VAE of CogVideoX",
    why: "its result depends on how a clip is cut; use diffusers' AutoencoderKLCogVideoX",
    tiny: Some("taecvx"),
};

pub(crate) const ALLEGRO: Unsupported = Unsupported {
    classes: &["AutoencoderKLAllegro"],
    name: "the VAE of Allegro",
    why: "its convolutions over time are missing here; use diffusers' AutoencoderKLAllegro",
    tiny: None,
};

pub(crate) const VID_TOK: Unsupported = Unsupported {
    classes: &["AutoencoderVidTok"],
    name: "VidTok",
    why: "its convolutions over time are missing here; use diffusers' AutoencoderVidTok",
    tiny: None,
};

pub(crate) const LTX_VIDEO: Unsupported = Unsupported {
    classes: &["AutoencoderKLLTXVideo"],
    name: "the VAE of LTX-Video 0.9",
    why: "LTX-2's is supported; use diffusers' AutoencoderKLLTXVideo",
    tiny: None,
};

pub(crate) const HUNYUAN_VIDEO: Unsupported = Unsupported {
    classes: &["AutoencoderKLHunyuanVideo"],
    name: "the VAE of HunyuanVideo",
    why: "its result depends on how a clip is cut; use diffusers' AutoencoderKLHunyuanVideo",
    tiny: Some("taehv"),
};

pub(crate) const OTHER_VIDEO: Unsupported = Unsupported {
    classes: &[],
    name: "a video VAE (its convolutions are 3-D)",
    why: "use diffusers' class for it",
    tiny: None,
};

const SOUND: Unsupported = Unsupported {
    // Also all with Audio or Vocoder in their names.
    classes: &["AutoencoderOobleck", "AutoencoderSAME"],
    name: "a model for sound",
    why: "wgvae is for pictures; use diffusers' class for it",
    tiny: None,
};

/// All kinds.
const ALL: &[&Unsupported] = &[
    &EASY_ANIMATE,
    &TAEHV_SUPER,
    &TAELTX_WIDE,
    &MAGE,
    &PID,
    &LTX_DIFFUSION,
    &CONSISTENCY,
    &VQ,
    &CASCADE_A,
    &CASCADE_C,
    &SVD,
    &MINIMAX_H3,
    &RAE,
    &HUNYUAN_IMAGE3,
    &HUNYUAN_REFINER,
    &MOCHI,
    &COSMOS,
    &KANDINSKY,
    &COG_VIDEO_X,
    &ALLEGRO,
    &VID_TOK,
    &LTX_VIDEO,
    &HUNYUAN_VIDEO,
    &OTHER_VIDEO,
    &SOUND,
];
