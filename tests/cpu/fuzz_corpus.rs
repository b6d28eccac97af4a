//! Replay of the fuzzing corpora with the same targets: nothing panics, no promise is broken, and
//! no input needs more memory than a small multiple of its size. `fuzz/README.md` explains how the
//! corpora were made.

use std::ops::Range;
use std::path::{Path, PathBuf};

use test_kit::{formula, repository};
use wgvae::HostTensor;
use wgvae::config::AutoencoderConfig;
use wgvae::internals::safetensors::write_safetensors;
use wgvae::internals::{npy, odd_network};

use crate::fuzz_targets::{TARGETS, run};

#[global_allocator]
static ALLOCATOR: crate::allowance::Counting = crate::allowance::Counting;

/// Inputs of all targets as one file, because git and editors are slow with thousands of files.
const CORPUS: &[u8] = include_bytes!("../../fuzz/corpus.tar");

/// Size of a header of a tar archive. Files begin at multiples of it.
const BLOCK: usize = 512;

/// Returns names and contents of the files in a tar archive in the format ustar.
fn unpacked(mut archive: &[u8]) -> Vec<(String, &[u8])> {
    let mut files = Vec::new();
    // Blocks of zeros end an archive.
    while let Some((header, rest)) = archive.split_at_checked(BLOCK).filter(|(header, _)| header[0] != 0) {
        let field = |range: Range<usize>| std::str::from_utf8(&header[range]).unwrap().trim_matches(['\0', ' ']);
        let size = usize::from_str_radix(field(124..136), 8).unwrap();
        let is_file = header[156] == b'0';
        if is_file {
            files.push((field(0..100).to_owned(), &rest[..size]));
        }
        archive = &rest[size.next_multiple_of(BLOCK)..];
    }
    files
}

/// Returns the files of a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_corpus_replays() {
    let all = unpacked(CORPUS);
    for target in TARGETS {
        let folder = format!("corpus/{}/", target.name);
        let files: Vec<_> = all.iter().filter(|(name, _)| name.starts_with(&folder)).collect();
        assert!(!files.is_empty(), "no corpus of {}", target.name);
        for (name, bytes) in &files {
            let _named = Named(name.clone());
            run(target, bytes);
        }
        println!("{}: {} inputs", target.name, files.len());
    }
}

/// Guard that prints the name of the input with which a target panics.
struct Named(String);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("of {}", self.0);
        }
    }
}

/// Tests JSON trees of many small parts, which need much more memory than their text if a parser
/// keeps parts that it does not need.
#[test]
fn trees_of_json_take_little_memory() {
    let trees =
        [r#"{"":0},"#.repeat(20_000), "[[]],".repeat(20_000), "0,".repeat(50_000), r#""a":{"":[0]},"#.repeat(10_000)];
    for tree in trees {
        let tree = if tree.starts_with('"') {
            format!("{{{}}}", &tree[..tree.len() - 1])
        } else {
            format!("[{}]", &tree[..tree.len() - 1])
        };
        for field in [
            "",
            "_class_name",
            "block_out_channels",
            "latents_mean",
            "weight_map",
            "schema",
            "version",
            "measurements",
            "__metadata__",
        ] {
            let alone = format!("{{\"{field}\":{tree}}}");
            let after = format!(
                "{{\"schema\":\"wgvae-memory-report\",\"version\":1,\"_class_name\":\"AutoencoderKL\",\"{field}\":{tree}}}"
            );
            for text in [tree.as_str(), &alone, &after] {
                for target in
                    TARGETS.iter().filter(|target| ["config", "shard_index", "memory_report"].contains(&target.name))
                {
                    run(target, text.as_bytes());
                }
            }
        }
    }
}

/// Writes initial corpora: small files of every kind, from which libFuzzer continues.
#[test]
#[ignore = "writes fuzz/corpus: see fuzz/README.md"]
fn write_seeds() {
    let seeds: [(&str, Vec<Vec<u8>>); 10] = [
        ("safetensors_header", headers()),
        ("safetensors_file", vec![toy_checkpoint(), several_types(), named_only()]),
        ("npy", arrays()),
        ("latents", latents()),
        (
            "shard_index",
            vec![
                br#"{"metadata":{"total_size":8},"weight_map":{"a.weight":"a-1.safetensors","b":"a-2.safetensors"}}"#
                    .to_vec(),
            ],
        ),
        ("config", texts("tests/fixtures/configs", "")),
        ("memory_report", texts("results", "firefox")),
        ("image_file", noise()),
        ("plan_sound", noise()),
        ("plan_any", noise()),
    ];
    for (target, inputs) in seeds {
        let folder = repository().join("fuzz/corpus").join(target);
        std::fs::create_dir_all(&folder).unwrap();
        for (index, input) in inputs.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{index}")), input).unwrap();
        }
    }
}

/// Returns a file with this header and data.
fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

/// Returns the header of a whole file.
fn header_of(file: &[u8]) -> &[u8] {
    let (length, rest) = file.split_first_chunk().unwrap();
    &rest[..usize::try_from(u64::from_le_bytes(*length)).unwrap()]
}

/// Returns headers, each after the three bytes that give the size of the data.
fn headers() -> Vec<Vec<u8>> {
    let with_data = |file: &[u8]| {
        let header = header_of(file);
        let data = u32::try_from(file.len() - header.len() - 8).unwrap().to_le_bytes();
        [&data[..3], header].concat()
    };
    [toy_checkpoint(), several_types(), named_only()].iter().map(|file| with_data(file)).collect()
}

/// Returns the smallest whole decoder, with its config.
fn toy_checkpoint() -> Vec<u8> {
    let config = AutoencoderConfig { latent_channels: 1, ..odd_network(&[2], 1, true) };
    let weights = formula::decoder(&config);
    let borrowed: Vec<(&str, &HostTensor)> = weights.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let file = write_safetensors(&borrowed).unwrap();
    let header = header_of(&file);
    let config = r#"{"_class_name":"AutoencoderKL","latent_channels":1,"block_out_channels":[2],"norm_num_groups":1}"#;
    let metadata = serde_json::json!({ "config": config, "modelspec.architecture": "flux-1" });
    let text = std::str::from_utf8(header).unwrap().trim_end();
    let text = format!("{{\"__metadata__\":{metadata},{}", &text[1..]);
    safetensors(&text, &file[8 + header.len()..])
}

/// Returns tensors of supported and unsupported types.
fn several_types() -> Vec<u8> {
    let header = r#"{"half":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},"ids":{"dtype":"I64","shape":[2],"data_offsets":[12,28]},"eighth":{"dtype":"F4","shape":[2,1,1],"data_offsets":[28,29]},"f16":{"dtype":"F16","shape":[],"data_offsets":[29,31]},"empty":{"dtype":"F32","shape":[0,7],"data_offsets":[31,31]}}"#;
    safetensors(header, &[0x3c; 31])
}

/// Returns the network of SD 1.5 in the original names, without its weights: tensors of unknown
/// types may have any length.
fn named_only() -> Vec<u8> {
    let keys = std::fs::read_to_string(repository().join("tests/fixtures/keys/sd15.ldm.json")).unwrap();
    let shapes: std::collections::BTreeMap<String, Vec<u64>> = serde_json::from_str(&keys).unwrap();
    let decoder = shapes.into_iter().filter(|(name, _)| name.contains("decoder.") || name.contains("post_quant"));
    let entries = decoder
        .map(|(name, shape)| (name, serde_json::json!({ "dtype": "X", "shape": shape, "data_offsets": [0, 0] })));
    safetensors(&serde_json::Value::Object(entries.collect()).to_string(), &[])
}

fn arrays() -> Vec<Vec<u8>> {
    let shapes: [&[usize]; 4] = [&[], &[3], &[1, 4, 2, 2], &[0, 9]];
    let mut arrays: Vec<Vec<u8>> = shapes.iter().map(|shape| npy::write_npy(&formula::latents(shape))).collect();
    let header = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3L), }\n";
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    arrays.push([b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), &[0x3c; 12]].concat());
    arrays
}

/// Returns latents in both formats, after the byte that tells if the tensor is named.
fn latents() -> Vec<Vec<u8>> {
    let tensor = formula::latents(&[4, 3, 2]);
    let files = [
        (0, npy::write_npy(&tensor)),
        (0, write_safetensors(&[("latents", &tensor)]).unwrap()),
        (1, write_safetensors(&[("samples", &tensor)]).unwrap()),
        (0, write_safetensors(&[("latent_tensor", &tensor)]).unwrap()),
    ];
    files.into_iter().map(|(named, file)| [&[named], file.as_slice()].concat()).collect()
}

/// Returns the JSON files of a folder whose names begin like this.
fn texts(folder: &str, start: &str) -> Vec<Vec<u8>> {
    let is_wanted = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(start);
    files(&repository().join(folder)).into_iter().filter(is_wanted).map(|path| std::fs::read(path).unwrap()).collect()
}

/// Returns pseudo-random bytes, for targets that read numbers.
fn noise() -> Vec<Vec<u8>> {
    let byte = |seed: u32, index: u32| (seed * 89 + index * 167 + seed * index * index).to_be_bytes()[2];
    (0..12).map(|seed| (0..24 << (seed % 4)).map(|index| byte(seed + 1, index + 20)).collect()).collect()
}
