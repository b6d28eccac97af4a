//! Latents of clips: read by ranges, written by blocks.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use half::{bf16, f16};
use pollster::block_on;
use proptest::prelude::*;
use wgvae::config::Family;
use wgvae::files::{ByteSource, FileSource, MemorySource, ReadFuture, read_latents};
use wgvae::internals::clips::{ClipAxes, ClipLatents, is_clip, latents_shape};
use wgvae::internals::npy::{read_npy, write_npy};
use wgvae::internals::safetensors::{write_safetensors, write_with_metadata};
use wgvae::{HostTensor, LatentSpace, Result};
use wgvae_media::clip_files::{ArrayFormat, Direct, LatentsWriter};

use super::{assert_says, folder, names, size};

fn tensor(shape: &[usize]) -> HostTensor {
    let data = (0..shape.iter().product()).map(|index: usize| index as f32 / 8.0).collect();
    HostTensor { shape: shape.to_vec(), data }
}

fn open(file: Vec<u8>) -> Result<ClipLatents> {
    block_on(ClipLatents::open(Box::new(MemorySource::new("a.npy", file)), None, 4))
}

/// Returns frames of `[c, t, h, w]`.
fn part(whole: &HostTensor, frames: std::ops::Range<usize>) -> Vec<f32> {
    let &[.., channels, all, height, width] = whole.shape.as_slice() else { panic!("four axes") };
    let planes = whole.data.chunks(height * width).collect::<Vec<_>>();
    (0..channels).flat_map(|channel| planes[channel * all..][frames.clone()].concat()).collect()
}

/// Source that records the ranges that it was asked for.
struct Watched {
    inner: MemorySource,
    read: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl ByteSource for Watched {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, len: u64) -> ReadFuture<'_> {
        self.read.lock().unwrap().push((offset, len));
        self.inner.read_at(offset, len)
    }
}

#[test]
fn a_block_is_all_that_is_read() {
    let whole = tensor(&[1, 4, 7, 3, 2]);
    let read = Arc::<Mutex<Vec<(u64, u64)>>>::default();
    let source = Watched { inner: MemorySource::new("a.npy", write_npy(&whole)), read: Arc::clone(&read) };
    let clip = block_on(ClipLatents::open(Box::new(source), None, 4)).unwrap();
    assert_eq!(clip.axes(), ClipAxes { channels: 4, frames: 7, size: size(2, 3) });
    read.lock().unwrap().clear();
    let block = block_on(clip.read(2..4)).unwrap();
    assert_eq!(block, HostTensor { shape: vec![4, 2, 3, 2], data: part(&whole, 2..4) });
    let plane = 4 * 3 * 2;
    let expected: Vec<(u64, u64)> = (0..4).map(|channel| (128 + (channel * 7 + 2) * plane, 2 * plane)).collect();
    assert_eq!(*read.lock().unwrap(), expected);
}

/// Returns a .safetensors file of one tensor of this type.
fn safetensors(dtype: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let header = format!(r#"{{"latents":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[0,{}]}}}}"#, data.len());
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

#[test]
fn halves_of_both_kinds_are_read() {
    let whole = tensor(&[4, 3, 2, 2]);
    let halves: Vec<u8> = whole.data.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect();
    let brains: Vec<u8> = whole.data.iter().flat_map(|&value| bf16::from_f32(value).to_le_bytes()).collect();
    for (dtype, data) in [("F16", halves), ("BF16", brains)] {
        let clip = open(safetensors(dtype, &[4, 3, 2, 2], &data)).unwrap();
        assert_eq!(block_on(clip.read(1..3)).unwrap().data, part(&whole, 1..3), "{dtype}");
    }
    let clip = open(safetensors("F64", &[4, 3, 2, 2], &[0; 384])).unwrap();
    assert_says(block_on(clip.read(0..1)), &["latents", "F32, F16 or BF16", "F64"]);
}

#[test]
fn whose_the_values_are_is_known_as_of_images() {
    let whole = tensor(&[1, 4, 2, 2, 2]);
    let nothing = HostTensor { shape: vec![0], data: Vec::new() };
    let cases = [
        write_safetensors(&[("latents", &whole)]).unwrap(),
        write_with_metadata(&[("latents", &whole)], &BTreeMap::from([("unscaled", "true".to_owned())])).unwrap(),
        write_safetensors(&[("latent_tensor", &whole), ("latent_format_version_0", &nothing)]).unwrap(),
        write_safetensors(&[("latent_tensor", &whole)]).unwrap(),
    ];
    for file in cases {
        let stored = block_on(read_latents(&MemorySource::new("a", file.clone()), None)).unwrap();
        assert_eq!(block_on(latents_shape(&MemorySource::new("a", file.clone()), None)).unwrap(), [1, 4, 2, 2, 2]);
        let clip = open(file).unwrap();
        let config = Family::find("sd15").unwrap().config();
        assert_eq!(clip.space(&config), stored.space.of(&config, 4));
        assert_eq!(block_on(clip.read(0..2)).unwrap().data, stored.tensor.data);
    }
}

#[test]
fn the_model_decides_the_space_of_clips_of_comfyui() {
    let nothing = HostTensor { shape: vec![0], data: Vec::new() };
    for (family, channels, space) in
        [("ltx2", 128, LatentSpace::Model), ("seedvr2", 16, LatentSpace::Model), ("wan21", 16, LatentSpace::Vae)]
    {
        let whole = tensor(&[1, channels as usize, 2, 1, 1]);
        let file = write_safetensors(&[("latent_tensor", &whole), ("latent_format_version_0", &nothing)]).unwrap();
        let clip = block_on(ClipLatents::open(Box::new(MemorySource::new("a", file)), None, channels)).unwrap();
        assert_eq!(clip.space(&Family::find(family).unwrap().config()), space, "{family}");
    }
}

#[test]
fn what_is_no_clip_of_the_model_is_an_error() {
    for shape in [vec![2, 4, 3, 2, 2], vec![4, 2, 2], vec![1, 4, 0, 2, 2], vec![1, 4, 3, 2, 0]] {
        assert_says(
            open(write_npy(&tensor(&shape))),
            &["latents in a.npy", "a clip [1, c, t, h, w]", &format!("{shape:?}")],
        );
    }
    // Images, or a clip with time as its first axis: the shape is ambiguous.
    let parts = ["a clip [1, 4, t, h, w] or [4, t, h, w]", "found 7 channels, 4 frames of 2x2"];
    assert_says(open(write_npy(&tensor(&[7, 4, 2, 2]))), &parts);
    assert_says(open(write_npy(&tensor(&[1, 16, 3, 2, 2]))), &["as the model has 4 channels", "16 channels"]);
    let clip = open(write_npy(&tensor(&[4, 3, 2, 2]))).unwrap();
    for frames in [0..0, 3..4, 2..4, 0..u64::MAX] {
        assert_says(block_on(clip.read(frames)), &["frames of a.npy", "some of 3"]);
    }
    let mut infinite = tensor(&[4, 3, 2, 2]);
    infinite.data[12 + 9] = f32::INFINITY;
    let clip = open(write_npy(&infinite)).unwrap();
    assert!(block_on(clip.read(0..2)).is_ok());
    assert_says(block_on(clip.read(2..3)), &["latents in a.npy", "finite values", "inf at element 21"]);
    assert!(is_clip(&[1, 4, 3, 2, 2]));
}

/// Returns the format of an ending.
fn format(is_npy: bool) -> ArrayFormat {
    let name = if is_npy { "a.npy" } else { "a.safetensors" };
    ArrayFormat::of_latents(Path::new(name), LatentSpace::Vae, &[("seed", "7".to_owned())]).unwrap()
}

proptest! {
    #[test]
    fn blocks_become_one_array_whether_their_number_is_known_or_not(
        blocks in proptest::collection::vec(1_usize..4, 1..5), is_known in any::<bool>(), is_npy in any::<bool>(),
    ) {
        let (dir, path) = folder();
        let file = path("a");
        let all: usize = blocks.iter().sum();
        let whole = tensor(&[1, 4, all, 2, 3]);
        let frames = is_known.then_some(all as u64);
        let mut writer = LatentsWriter::create(&file, format(is_npy), (4, size(3, 2)), frames, &Direct).unwrap();
        let mut done = 0;
        for frames in blocks {
            writer.write(&part(&whole, done..done + frames)).unwrap();
            done += frames;
        }
        prop_assert!(!file.exists());
        writer.finish().unwrap();
        prop_assert_eq!(names(dir.path()), ["a"]);
        let source = FileSource::open(&file).unwrap();
        if is_npy {
            prop_assert_eq!(block_on(read_npy(&source)).unwrap(), whole);
        } else {
            let stored = block_on(read_latents(&source, None)).unwrap();
            prop_assert_eq!((stored.tensor, stored.space), (whole, LatentSpace::Vae.into()));
        }
    }
}

#[test]
fn blocks_that_do_not_fit_are_errors_and_leave_no_file() {
    let (dir, path) = folder();
    let writer =
        |frames| LatentsWriter::create(&path("a"), ArrayFormat::Npy, (4, size(3, 2)), frames, &Direct).unwrap();
    for frames in [Some(2), None] {
        assert_says(
            writer(frames).write(&[0.0; 25]),
            &["whole frames of 4 channels of 3x2, 24 values each", "25 values"],
        );
        assert_says(writer(frames).write(&[]), &["whole frames"]);
    }
    assert_says(writer(Some(2)).write(&[0.0; 72]), &["expected 2, found 3"]);
    assert_says(
        ArrayFormat::of_latents(Path::new("a.png"), LatentSpace::Vae, &[]),
        &["a.png", "one of safetensors, npy", "\"png\""],
    );
    assert_says(writer(Some(2)).finish(), &["expected 2, found 0"]);
    assert_says(writer(None).finish(), &["at least one", "none"]);
    assert_eq!(names(dir.path()), Vec::<String>::new());
}
