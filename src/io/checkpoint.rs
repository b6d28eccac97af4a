//! The tensors of a model: their place, their names, and how to read them. Opening a checkpoint
//! reads and checks headers only; weights are read on request.

#[cfg(not(target_arch = "wasm32"))]
mod beside;
mod composed;
mod facts;
mod scale;
mod stand_in;
mod statistics;
mod stored;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

pub use self::scale::LatentScale;
use self::scale::{decide, family_of_architecture, other_network, with_scale_of};
use self::statistics::Statistics;
pub use self::stored::StoredTensor;
use self::stored::same_shape;
use super::convert::first_non_finite;
use super::names::{Layout, family_hint, half_prefix, translate};
use super::safetensors::{ElementType, read_header, read_tensor};
use super::source::ByteSource;
use crate::error::{Error, Result};
use crate::model::config::{
    AutoencoderConfig, Derived, Difference, Family, LatentSpace, Network, OwnLatents, PaddingMode,
};
use crate::ordered::{Map, Ordered as _};

/// The weights and config of one VAE, in one file or several. Tensors have the names of diffusers,
/// whatever the files call them.
pub struct Checkpoint {
    name: String,
    sources: Vec<Box<dyn ByteSource>>,
    tensors: BTreeMap<String, StoredTensor>,
    layout: Layout,
    /// Names of tensors that begin like the encoder but are no part of the network.
    strange_in_encoder: Vec<String>,
    derived: Derived,
    statistics: Option<Statistics>,
    /// Scale of the VAE's own latents by file names and contents, used if the config does not give
    /// it.
    own_latents: OwnLatents,
    config: AutoencoderConfig,
    scale: LatentScale,
}

/// Weights that every latent passes through. One published copy of Qwen-Image's VAE has only zeros
/// here, so a tensor of zeros is an error.
const ZEROS_REFUSED: [&str; 2] = ["quant_conv.weight", "post_quant_conv.weight"];

/// Numbers of weights of a VAE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Parameters {
    /// Weights of the encoder.
    pub encoder: u64,
    /// Weights of the decoder.
    pub decoder: u64,
    /// All weights, with the 1x1 convolutions between encoder and decoder.
    pub total: u64,
}

impl Checkpoint {
    /// Opens a .safetensors file from any source. `config_json` is the text of its config.json, if
    /// any.
    ///
    /// # Errors
    /// See [`Self::from_sources`].
    pub async fn from_source(source: Box<dyn ByteSource>, config_json: Option<&str>) -> Result<Self> {
        Self::from_sources(vec![source], config_json).await
    }

    /// Opens the .safetensors file of a model, or all of its shards. `config_json` is the text of
    /// its config.json, if any.
    ///
    /// # Errors
    /// [`Error::Input`] for no sources. [`Error::Format`] for files that are not .safetensors, or a
    /// VAE that is not supported. [`Error::Config`] for a wrong config.json, or one of another
    /// network. [`Error::MissingTensors`] if the weights do not show their network. Also the errors
    /// of the sources.
    pub async fn from_sources(sources: Vec<Box<dyn ByteSource>>, config_json: Option<&str>) -> Result<Self> {
        let config = config_json.map(AutoencoderConfig::from_json).transpose()?;
        let first = sources
            .first()
            .ok_or_else(|| Error::input("sources", "a .safetensors file, or all shards of one", "none"))?;
        let name = first.name().to_owned();
        Self::assemble(name, sources, config).await
    }

    /// Opens a .safetensors file of made-up weights. Its tensors have the names and shapes that
    /// [`tensors_of_decoder`](crate::model::networks::tensors_of_decoder) and
    /// [`tensors_of_encoder`](crate::model::networks::tensors_of_encoder) list for `family`, which
    /// may differ from those of published files.
    ///
    /// # Errors
    /// [`Error::Format`] for a file that is not .safetensors; [`Error::MissingTensors`] if the
    /// family keeps statistics of its latents among its weights and the file lacks them. Also the
    /// errors of the source.
    pub async fn of_family(source: Box<dyn ByteSource>, family: &'static Family) -> Result<Self> {
        let (name, sources) = (source.name().to_owned(), vec![source]);
        let tensors = Written::read(&sources).await?.tensors;
        let mut checkpoint = Self::new(name, sources, tensors, Layout::Diffusers, Derived::of_family(family));
        checkpoint.statistics = Statistics::read(&checkpoint).await?;
        checkpoint.settle(family.config(), format!("the caller: family {}", family.name))?;
        Ok(checkpoint)
    }

    /// Sets which published model this is, if [`Self::scale`] is unknown or wrong. `FAMILIES` lists
    /// the names.
    ///
    /// # Errors
    /// [`Error::Input`] for an unknown name; also for a family of another kind of network, with the
    /// names of the families that fit. [`Error::MissingTensors`] if the family keeps statistics of
    /// its latents among its weights and the files lack them.
    pub fn with_family(mut self, name: &str) -> Result<Self> {
        let config = with_scale_of(Family::find(name)?, &self.config)?;
        self.settle(config, format!("the caller: family {name}"))?;
        Ok(self)
    }

    /// Sets what the convolutions of an `AutoencoderKL` see beyond the borders of their input, if
    /// the files do not say it or are wrong. EQ-SDXL-VAE was trained with [`PaddingMode::Reflect`].
    ///
    /// # Errors
    /// [`Error::Input`] for another network.
    pub fn with_border(mut self, mode: PaddingMode) -> Result<Self> {
        self.config.set_border(mode)?;
        Ok(self)
    }

    /// Lets a model of TAEHV's family decode a clip to one frame for each frame of latents: a
    /// cheaper preview, by the same weights. It cannot encode then.
    ///
    /// # Errors
    /// [`Error::Input`] for another network.
    pub fn at_preview_rate(mut self) -> Result<Self> {
        self.config.set_preview_rate()?;
        Ok(self)
    }

    /// Returns the network and the scale of its latents. If the scale is unknown, the scaling
    /// factor is 1 and the shift 0.
    pub fn config(&self) -> &AutoencoderConfig {
        &self.config
    }

    /// Returns the config.
    ///
    /// # Errors
    /// [`Error::Input`] that lists the candidates if the scale of the latents is unknown.
    pub fn scaled_config(&self) -> Result<&AutoencoderConfig> {
        self.check_space(LatentSpace::Model).map(|()| &self.config)
    }

    /// Checks that latents in `space` have a known meaning for this model.
    ///
    /// # Errors
    /// [`Error::Input`] that lists the families that it may be.
    pub fn check_space(&self, space: LatentSpace) -> Result<()> {
        self.scale.check_space(&self.name, &self.config, space)
    }

    /// Returns the scale of the latents: known with its source, or unknown with the candidates.
    pub fn scale(&self) -> &LatentScale {
        &self.scale
    }

    /// Returns the name for errors: the file or the folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the naming scheme of the files' tensors.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Lists the name and the length in bytes of each file.
    pub fn files(&self) -> impl Iterator<Item = (&str, u64)> {
        self.sources.iter().map(|source| (source.name(), source.len()))
    }

    /// Lists the names of the VAE's tensors in diffusers' spelling, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Returns the tensor with this name in diffusers' spelling.
    pub fn tensor(&self, name: &str) -> Option<&StoredTensor> {
        self.tensors.get(name)
    }

    /// True if the files have weights of an encoder.
    pub fn has_encoder(&self) -> bool {
        self.names().any(|name| name.starts_with("encoder."))
    }

    /// True if the files have weights of a decoder.
    pub fn has_decoder(&self) -> bool {
        self.names().any(|name| name.starts_with("decoder."))
    }

    /// Checks that the network uses every tensor of the encoder, because an unused one would change
    /// the latents. The decoder's tensors were checked when the checkpoint was opened.
    ///
    /// # Errors
    /// [`Error::Format`] that names the first unknown tensor.
    pub fn check_encoder_names(&self) -> Result<()> {
        match self.strange_in_encoder.first() {
            None => Ok(()),
            Some(name) => {
                let network = self.config.network.name();
                let problem = format!("not supported: tensor \"{name}\" is not part of the encoder of {network}");
                Err(Error::Format { file: self.name.clone(), problem })
            }
        }
    }

    /// Counts the weights.
    pub fn parameters(&self) -> Parameters {
        let count = |prefix: &str| {
            let tensors = self.tensors.iter().filter(|(name, _)| name.starts_with(prefix));
            let parts = tensors.flat_map(|(_, tensor)| tensor.own_parts());
            let elements = parts.map(|part| part.info.shape.iter().product::<u64>());
            elements.fold(0, u64::saturating_add)
        };
        Parameters { encoder: count("encoder."), decoder: count("decoder."), total: count("") }
    }

    /// Counts the tensors of each element type, sorted by the type.
    pub fn element_types(&self) -> Vec<(ElementType, usize)> {
        let mut counts = Map::new();
        for tensor in self.tensors.values().flat_map(StoredTensor::own_parts) {
            *counts.or_insert(tensor.info.dtype.clone(), 0) += 1;
        }
        counts.into_iter().collect()
    }

    /// Checks, without reading weights, that all tensors in `wanted` exist and can be used. Each
    /// entry is a name in diffusers' spelling and a shape.
    ///
    /// # Errors
    /// [`Error::MissingTensors`], or [`Error::Tensor`] for another shape or element type.
    pub fn check<'a>(&self, wanted: impl IntoIterator<Item = (&'a str, &'a [u64])>) -> Result<()> {
        let mut missing = Vec::new();
        for (name, shape) in wanted {
            match self.tensors.get(name) {
                Some(tensor) => tensor.check(shape)?,
                None => missing.extend(composed::missing(name, &self.tensors, self.layout)),
            }
        }
        if missing.is_empty() {
            Ok(())
        } else {
            Err(Error::MissingTensors { file: self.name.clone(), tensors: missing })
        }
    }

    /// Reads the tensor with this name in diffusers' spelling and this shape.
    ///
    /// Trailing axes of extent 1 are optional, because a linear layer and a 1x1 convolution have
    /// the same weights.
    ///
    /// # Errors
    /// The errors of [`Self::check`]; [`Error::Tensor`] for values that are not finite, or for
    /// zeros only in a layer that all latents pass through; the errors of the source.
    pub async fn read_f32(&self, name: &str, shape: &[u64]) -> Result<Vec<f32>> {
        self.check([(name, shape)])?;
        let mut parts = Vec::new();
        for part in self.tensors[name].parts() {
            parts.push(self.read_part(name, part).await?);
        }
        self.tensors[name].combine(parts)
    }

    /// Reads one of the file's tensors that make up the tensor `name`.
    async fn read_part(&self, name: &str, tensor: &StoredTensor) -> Result<Vec<f32>> {
        let read = read_tensor(self.sources[tensor.source].as_ref(), &tensor.file_name, &tensor.info).await?;
        if let Some((index, value)) = first_non_finite(&read.data) {
            return Err(Error::Tensor {
                tensor: tensor.file_name.clone(),
                expected: "finite values".to_owned(),
                found: format!("{value} at element {index}"),
            });
        }
        if ZEROS_REFUSED.contains(&name) && read.data.iter().all(|value| *value == 0.0) {
            return Err(Error::Tensor {
                tensor: tensor.file_name.clone(),
                expected: "trained weights (use another copy of this model)".to_owned(),
                found: format!("{} zeros only, which make every result flat", read.data.len()),
            });
        }
        Ok(read.data)
    }

    /// Reads the headers of all `sources` and settles names, config and scale. A `config` given
    /// here must fit the weights.
    pub(super) async fn assemble(
        name: String,
        sources: Vec<Box<dyn ByteSource>>,
        config: Option<AutoencoderConfig>,
    ) -> Result<Self> {
        let (mut checkpoint, hint) = Self::undecided(name, sources, config.is_none()).await?;
        match config {
            Some(config) => match checkpoint.difference(&config) {
                None => checkpoint.settle(config, "config.json".to_owned())?,
                Some(difference) => return Err(other_network(difference)),
            },
            None => {
                checkpoint.decide(hint)?;
                checkpoint.warn_of_groups();
            }
        }
        Ok(checkpoint)
    }

    /// Reads the headers of all `sources` and settles names. Returns a checkpoint without config
    /// and scale, and the family that the files' other contents show. `takes_metadata` tells
    /// whether the network comes from the files' metadata, too.
    async fn undecided(
        name: String,
        sources: Vec<Box<dyn ByteSource>>,
        takes_metadata: bool,
    ) -> Result<(Self, Option<&'static str>)> {
        let Written { tensors, architecture, stated, padding_mode } = Written::read(&sources).await?;
        let shapes = shapes_of(&tensors);
        let names = translate(&name, &shapes)?;
        let hint = family_hint(&shapes).or_else(|| family_of_architecture(&architecture?));
        let take = |(name, written): (String, String)| Some((name, tensors.get(&written)?.clone()));
        let mut of_vae: BTreeMap<String, StoredTensor> = names.written.into_iter().filter_map(take).into_map();
        composed::compose(&mut of_vae);
        let [scale, shift] = [stand_in::SCALE, stand_in::SHIFT].map(|name| tensors.get(name).cloned());
        let (own_latents, tensors) = (stand_in::read(scale, shift, &sources).await?, of_vae);

        let shapes = shapes_of(&tensors);
        let mut derived = Derived::from_shapes(&name, &shapes)?;
        if takes_metadata {
            stated.iter().try_for_each(|stated| derived.take_stated(stated))?;
            padding_mode.iter().try_for_each(|name| derived.take_padding_mode(name))?;
        }
        let mut checkpoint = Self::new(name, sources, tensors, names.layout, derived);
        checkpoint.check_name()?;
        checkpoint.strange_in_encoder = names.strange_in_encoder;
        checkpoint.statistics = Statistics::read(&checkpoint).await?;
        checkpoint.own_latents = own_latents.unwrap_or_else(|| checkpoint.own_latents_by_name(hint));
        Ok((checkpoint, hint))
    }

    /// Creates a checkpoint without statistics, whose scale is unknown.
    fn new(
        name: String,
        sources: Vec<Box<dyn ByteSource>>,
        tensors: BTreeMap<String, StoredTensor>,
        layout: Layout,
        derived: Derived,
    ) -> Self {
        Self {
            name,
            sources,
            tensors,
            layout,
            strange_in_encoder: Vec::new(),
            config: derived.unscaled().clone(),
            derived,
            statistics: None,
            own_latents: OwnLatents::Unknown,
            scale: LatentScale::Unknown { candidates: Vec::new() },
        }
    }

    /// Logs the warning of [`Self::assumed_groups`].
    fn warn_of_groups(&self) {
        if let Some(warning) = self.assumed_groups() {
            log::warn!("{warning}");
        }
    }

    /// Returns a warning if nothing tells the number of groups of the norms, neither a config.json
    /// nor a published model of these shapes. Call it for a model without a config.json.
    pub(crate) fn assumed_groups(&self) -> Option<String> {
        let groups = match &self.config.network {
            Network::Kl(kl) => kl.norm_num_groups,
            Network::SeedVr(seedvr) => seedvr.norm_num_groups,
            _ => return None,
        };
        self.derived.candidates().is_empty().then(|| {
            format!(
                "{}: no published model has these shapes, and weights do not tell norm_num_groups: {groups} are assumed, which its config.json may correct",
                self.name
            )
        })
    }

    /// Takes config and scale from the weights alone.
    fn decide(&mut self, hint: Option<&str>) -> Result<()> {
        let (config, scale) = decide(&self.derived, hint)?;
        if config.has_stored_statistics() && self.statistics.is_none() {
            // The network belongs to a family that keeps statistics of its latents among its
            // weights, but this file lacks them. The VAE's own latents still work.
            self.scale = LatentScale::Unknown {
                candidates: self.derived.candidates().iter().map(|family| family.name).collect(),
            };
            return Ok(());
        }
        self.config = self.with_own_latents(self.with_statistics(config)?);
        self.scale = scale;
        Ok(())
    }

    /// Compares `config` with the network that the weights show. Returns the first field that
    /// differs, or `None` if they agree.
    fn difference(&self, config: &AutoencoderConfig) -> Option<Difference> {
        let difference = self.derived.difference(config)?;
        (!self.is_part_of(config)).then_some(difference)
    }

    /// True if these tensors are a part of the network of `config`: one shard of several. A later
    /// read of a missing tensor returns an error that names it.
    fn is_part_of(&self, config: &AutoencoderConfig) -> bool {
        let shown = self.derived.unscaled();
        if shown.validate().is_ok() && shown.tensors().keys().all(|name| self.tensors.contains_key(name)) {
            return false;
        }
        let wanted = config.tensors();
        let is_wanted = |(name, stored): (&String, &StoredTensor)| {
            wanted.get(name).is_some_and(|shape| same_shape(&stored.shape(), shape))
        };
        self.tensors.iter().all(is_wanted)
    }

    /// Takes over a config that fits the weights. `from` says where it came from.
    fn settle(&mut self, config: AutoencoderConfig, from: String) -> Result<()> {
        self.config = self.completed(config)?;
        self.scale = LatentScale::Known { from };
        Ok(())
    }

    /// Adds to a config that fits the weights what the files tell.
    fn completed(&self, mut config: AutoencoderConfig) -> Result<AutoencoderConfig> {
        config.take_time_of(self.derived.unscaled());
        Ok(self.with_own_latents(self.with_statistics(config)?))
    }
}

fn shapes_of(tensors: &BTreeMap<String, StoredTensor>) -> BTreeMap<String, Vec<u64>> {
    tensors.iter().map(|(name, tensor)| (name.clone(), tensor.shape())).into_map()
}

/// The headers of all files together.
struct Written {
    /// Tensors by name as written, after the prefix that tells apart the two halves of TAESD's own
    /// files.
    tensors: BTreeMap<String, StoredTensor>,
    /// `modelspec.architecture` of the first file that has it.
    architecture: Option<String>,
    /// `config` of each file that has it: JSON about the parts of a checkpoint.
    stated: Vec<String>,
    /// `padding_mode` of the first file that has it.
    padding_mode: Option<String>,
}

impl Written {
    async fn read(sources: &[Box<dyn ByteSource>]) -> Result<Self> {
        let mut written = Self { tensors: BTreeMap::new(), architecture: None, stated: Vec::new(), padding_mode: None };
        for (index, source) in sources.iter().enumerate() {
            let header = read_header(source.as_ref()).await?;
            written.architecture =
                written.architecture.or_else(|| header.metadata.get("modelspec.architecture").cloned());
            written.stated.extend(header.metadata.get("config").cloned());
            written.padding_mode = written.padding_mode.or_else(|| header.metadata.get("padding_mode").cloned());
            let prefix = half_prefix(header.tensors.keys().map(String::as_str));
            for (file_name, info) in header.tensors {
                // Statistics of latents belong to neither half.
                let prefix = if file_name.starts_with("bn.") { "" } else { prefix };
                let name = format!("{prefix}{file_name}");
                if let Some(other) = written.tensors.get(&name) {
                    let problem = format!("tensor \"{file_name}\" is in {} too", sources[other.source].name());
                    return Err(Error::Format { file: source.name().to_owned(), problem });
                }
                written.tensors.insert(name, StoredTensor::new(file_name, info, index));
            }
        }
        Ok(written)
    }
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoint")
            .field("name", &self.name)
            .field("tensors", &self.tensors.len())
            .field("layout", &self.layout)
            .field("config", &self.config)
            .field("scale", &self.scale)
            .finish_non_exhaustive()
    }
}
