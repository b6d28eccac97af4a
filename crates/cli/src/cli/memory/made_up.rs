//! Model with made-up weights: decoder and encoder of a published family, as a .safetensors file
//! that is computed as it is read.
//!
//! The file is never in memory as a whole, so it does not add to a process's measured memory. The
//! same family has the same weights on every machine.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wgvae::config::{AutoencoderConfig, Family, Network};
use wgvae::files::{ByteSource, ReadFuture};
use wgvae::model::blocks::Part;
use wgvae::model::networks::{tensors_of_decoder, tensors_of_encoder};
use wgvae::{Checkpoint, Error, Result};

/// Bytes of an element in the file, f32.
const ELEMENT: u64 = 4;

/// Opens the made-up model of `family`.
pub(super) async fn checkpoint(family: &'static Family) -> Result<Checkpoint> {
    Checkpoint::of_family(Box::new(MadeUp::new(family)), family).await
}

struct MadeUp {
    name: String,
    /// Header's length, then its JSON text.
    header: Vec<u8>,
    /// Tensors in the order of their elements.
    tensors: Vec<Tensor>,
    elements: u64,
}

/// Tensor whose elements start at `begin`. Its values are in [`offset - scale`, `offset + scale`).
struct Tensor {
    begin: u64,
    offset: f32,
    scale: f32,
}

impl MadeUp {
    fn new(family: &Family) -> Self {
        let (mut header, mut tensors, mut elements) = (Map::new(), Vec::new(), 0);
        for (name, shape) in all_tensors(&family.config()) {
            let (offset, scale) = spread(&name, &shape);
            tensors.push(Tensor { begin: elements, offset, scale });
            let begin = elements;
            elements += shape.iter().product::<u64>();
            let offsets = [begin * ELEMENT, elements * ELEMENT];
            header.insert(name, json!({ "dtype": "F32", "shape": shape, "data_offsets": offsets }));
        }
        let text = Value::Object(header).to_string();
        let header = [(text.len() as u64).to_le_bytes().as_slice(), text.as_bytes()].concat();
        Self { name: format!("made-up weights of {}", family.name), header, tensors, elements }
    }

    /// Computes the bytes of elements `begin..end` of the data section.
    fn data(&self, begin: u64, end: u64) -> Vec<u8> {
        let first = self.tensors.partition_point(|tensor| tensor.begin <= begin).saturating_sub(1);
        let mut bytes = Vec::with_capacity(usize::try_from((end - begin) * ELEMENT).unwrap_or(0));
        for (index, tensor) in self.tensors.iter().enumerate().skip(first) {
            let next = self.tensors.get(index + 1).map_or(self.elements, |next| next.begin);
            for element in begin.max(tensor.begin)..end.min(next) {
                bytes.extend_from_slice(&(tensor.offset + tensor.scale * unit(element)).to_le_bytes());
            }
        }
        bytes
    }

    fn read(&self, offset: u64, len: u64) -> Option<Vec<u8>> {
        let end = offset.checked_add(len).filter(|end| *end <= self.len())?;
        let header = self.header.len() as u64;
        let in_header = usize::try_from(offset.min(header)).ok()?..usize::try_from(end.min(header)).ok()?;
        let mut bytes = self.header[in_header].to_vec();
        if end > header {
            let (begin, end) = (offset.max(header) - header, end - header);
            let data = self.data(begin / ELEMENT, end.div_ceil(ELEMENT));
            let skipped = usize::try_from(begin % ELEMENT).ok()?;
            bytes.extend_from_slice(&data[skipped..][..usize::try_from(end - begin).ok()?]);
        }
        Some(bytes)
    }
}

/// Returns name and shape of every tensor in a model's file. For a model for video, this includes
/// tensors that only clips need.
fn all_tensors(config: &AutoencoderConfig) -> BTreeMap<String, Vec<u64>> {
    let mut tensors = BTreeMap::new();
    for part in if config.has_time() { &[Part::Image, Part::First, Part::Next][..] } else { &[Part::Image] } {
        tensors.extend(tensors_of_decoder(config, *part));
        tensors.extend(tensors_of_encoder(config, *part));
    }
    let statistics = match (config.batch_norm_eps, &config.network) {
        (Some(_), _) => &["bn.running_mean", "bn.running_var"][..],
        (None, Network::Ltx2(_)) => &["latents_mean", "latents_std"],
        (None, _) => &[],
    };
    let channels = u64::from(config.latent_channels * config.patch.pow(2));
    tensors.extend(statistics.iter().map(|&name| (name.to_owned(), vec![channels])));
    tensors
}

impl ByteSource for MadeUp {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.header.len() as u64 + self.elements * ELEMENT
    }

    fn read_at(&self, offset: u64, len: u64) -> ReadFuture<'_> {
        let problem = || format!("expected {len} bytes at offset {offset}, found {} bytes in all", self.len());
        let bytes = self.read(offset, len).ok_or_else(|| Error::format(&self.name, problem()));
        Box::pin(std::future::ready(bytes))
    }
}

/// Returns middle and half width of a tensor's values: norms near 1, and filters that keep
/// activations about as large as they are.
fn spread(name: &str, shape: &[u64]) -> (f32, f32) {
    if name.ends_with(".bias") {
        return (0.0, 0.1);
    }
    match shape {
        [_, fan_in @ ..] if !fan_in.is_empty() => {
            #[expect(clippy::cast_precision_loss, reason = "a scale need not be exact")]
            let fan_in = fan_in.iter().product::<u64>() as f32;
            (0.0, (3.0 / fan_in).sqrt())
        }
        _ => (1.0, 0.3),
    }
}

/// Returns a value in [-1, 1) for each index, by the splitmix64 generator.
pub(super) fn unit(index: u64) -> f32 {
    let mut z = (index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    #[expect(clippy::cast_precision_loss, reason = "24 bits fit f32 exactly")]
    let top = (z >> 40) as f32;
    top / 8_388_608.0 - 1.0
}

#[cfg(test)]
mod tests {
    use pollster::block_on;
    use wgvae::config::FAMILIES;

    use super::*;

    #[test]
    fn every_family_has_made_up_weights_of_all_that_it_needs() {
        for family in FAMILIES {
            let checkpoint = block_on(checkpoint(family)).unwrap_or_else(|error| panic!("{}: {error}", family.name));
            assert_eq!(checkpoint.config().network, family.config().network, "{}", family.name);
            let tensors = all_tensors(&family.config());
            checkpoint.check(tensors.iter().map(|(name, shape)| (name.as_str(), shape.as_slice()))).unwrap();
            checkpoint.scaled_config().unwrap_or_else(|error| panic!("{}: {error}", family.name));
        }
    }
}
