//! Targets for binary files. They check that the values read are those of the file.

use pollster::block_on;
use wgvae::config::FAMILIES;
use wgvae::files::{MemorySource, read_latents};
use wgvae::internals::npy::{read_npy, write_npy};
use wgvae::internals::safetensors::{Header, parse_header, read_header, read_tensor, write_safetensors};
use wgvae::{Checkpoint, Directions, Error, HostTensor, Latents};

fn source(bytes: &[u8]) -> MemorySource {
    MemorySource::new("fuzzed", bytes.to_vec())
}

/// Fuzzes a header alone, of a file of any length: the first three bytes are the number of data
/// bytes.
pub(super) fn safetensors_header(bytes: &[u8]) {
    let Some(([a, b, c], json)) = bytes.split_first_chunk() else { return };
    let data = u64::from(u32::from_le_bytes([*a, *b, *c, 0]));
    let start = 8 + json.len() as u64;
    if let Ok(header) = parse_header("fuzzed", json, start + data) {
        check_header(&header, start, start + data);
    }
}

/// Checks that tensors fill the file without gaps, from the end of the header to its end.
fn check_header(header: &Header, start: u64, end: u64) {
    let mut places: Vec<(u64, u64)> = header.tensors.values().map(|info| (info.offset, info.bytes)).collect();
    places.sort_unstable();
    let covered = places.iter().fold(start, |covered, (offset, bytes)| {
        assert_eq!(*offset, covered, "a hole or an overlap");
        covered + bytes
    });
    assert_eq!(covered, end, "bytes that are no tensor's");
}

/// Fuzzes a whole file: every tensor, and the checkpoint made of it.
pub(super) fn safetensors_file(bytes: &[u8]) {
    let source = source(bytes);
    let Ok(header) = block_on(read_header(&source)) else { return };
    let mut read = Vec::new();
    for (name, info) in &header.tensors {
        let Ok(tensor) = block_on(read_tensor(&source, name, info)) else { continue };
        assert_eq!(tensor.data.len(), tensor.shape.iter().product::<usize>(), "{name}");
        read.push((name.as_str(), tensor));
    }
    check_rewritten(&read);
    drop(read);
    check_checkpoint(bytes, header.metadata.get("config").map(String::as_str));
}

/// Checks that tensors that are written and read again are equal to the bit.
fn check_rewritten(read: &[(&str, HostTensor)]) {
    let borrowed: Vec<(&str, &HostTensor)> = read.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let written = MemorySource::new("written", write_safetensors(&borrowed).expect("names and shapes of a file"));
    let header = block_on(read_header(&written)).expect("what was written");
    for (name, tensor) in read {
        let again = block_on(read_tensor(&written, name, &header.tensors[*name])).expect("a written tensor");
        check_same(&again, tensor);
    }
}

fn check_same(found: &HostTensor, wanted: &HostTensor) {
    let bits = |tensor: &HostTensor| tensor.data.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!((&found.shape, bits(found)), (&wanted.shape, bits(wanted)));
}

/// Opens the file as a checkpoint, with a config.json or without. Checks that its config is valid,
/// and that weights it reads are finite and have their shape.
fn check_checkpoint(bytes: &[u8], config: Option<&str>) {
    let Ok(checkpoint) = block_on(Checkpoint::from_source(Box::new(source(bytes)), config)) else { return };
    checkpoint.config().validate().expect("a config that was derived is one that can be planned");
    checkpoint.facts();
    let names: Vec<String> = checkpoint.names().map(str::to_owned).collect();
    for name in &names {
        let shape = checkpoint.tensor(name).expect("a name that was listed").info.shape.clone();
        if let Ok(values) = block_on(checkpoint.read_f32(name, &shape)) {
            assert!(values.iter().all(|value| value.is_finite()), "{name}");
            assert_eq!(values.len() as u64, shape.iter().product::<u64>(), "{name}");
        }
    }
    if checkpoint.check_decoder().is_ok() {
        for (_, offset, length) in checkpoint.weight_reads(Directions::Decode, false).expect("a decoder that is whole")
        {
            assert!(offset.checked_add(length).is_some_and(|end| end <= bytes.len() as u64), "a read beyond the file");
        }
    }
    let family = &FAMILIES[bytes.len() % FAMILIES.len()];
    match checkpoint.with_family(family.name) {
        Ok(stated) => assert_eq!(stated.config().scaling_factor.to_bits(), family.config().scaling_factor.to_bits()),
        Err(error) => assert!(matches!(error, Error::Input { .. }), "{error}"),
    }
}

/// Fuzzes an array: read, written, and read again.
pub(super) fn npy(bytes: &[u8]) {
    let Ok(tensor) = block_on(read_npy(&source(bytes))) else { return };
    assert_eq!(tensor.data.len(), tensor.shape.iter().product::<usize>());
    let again = block_on(read_npy(&MemorySource::new("written", write_npy(&tensor)))).expect("what was written");
    check_same(&again, &tensor);
}

/// Fuzzes latents in either format. The first byte decides whether a tensor is named.
pub(super) fn latents(bytes: &[u8]) {
    let Some((named, file)) = bytes.split_first() else { return };
    let name = (named % 2 == 1).then_some("samples");
    let Ok(stored) = block_on(read_latents(&source(file), name)) else { return };
    let (shape, space) = (stored.tensor.shape.clone(), stored.space);
    let Ok(latents) = Latents::stored(stored) else { return };
    let config = FAMILIES[0].config();
    assert_eq!(latents.space(&config), space.of(&config, latents.channels()));
    let size = latents.size();
    let axes = [latents.count(), latents.channels(), size.height, size.width].map(|axis| axis as usize);
    assert!(
        axes.ends_with(&shape) && axes.iter().product::<usize>() == shape.iter().product::<usize>(),
        "{axes:?} of {shape:?}"
    );
}
