//! Clips as arrays of floats.

use pollster::block_on;
use proptest::prelude::*;
use wgvae::files::{FileSource, MemorySource};
use wgvae::internals::npy::{read_npy, write_npy};
use wgvae::internals::safetensors::{read_header, write_safetensors};
use wgvae::{HostTensor, Result};
use wgvae_media::clip_files::{
    ArraySource, Bits, ClipName, Direct, Ffmpeg, FrameSource as _, PlanarFrame, SinkOptions, create_sink, open_source,
};

use super::{assert_says, folder, frame, give, give_all, names, size, take_all};

fn options(ffmpeg: &Ffmpeg, frames: u64) -> SinkOptions<'_> {
    SinkOptions { size: size(3, 2), frames, fps: None, bits: None, files: &Direct, ffmpeg }
}

/// Stacks frames to `[3, t, h, w]`.
fn stacked(frames: &[PlanarFrame]) -> Vec<f32> {
    (0..3)
        .flat_map(|channel| {
            frames.iter().flat_map(move |frame| frame.data.chunks(frame.data.len() / 3).nth(channel).unwrap())
        })
        .copied()
        .collect()
}

proptest! {
    #[test]
    fn each_value_is_at_its_place(count in 1_u64..6, is_npy in any::<bool>()) {
        let (dir, path) = folder();
        let file = path(if is_npy { "a.npy" } else { "a.safetensors" });
        let frames: Vec<_> = (0..count).map(|number| frame(size(3, 2), number)).collect();
        let (ffmpeg, name) = (Ffmpeg::default(), ClipName::of(&file).unwrap().unwrap());
        give_all(&mut *create_sink(&name, options(&ffmpeg, count)).unwrap(), &frames).unwrap();
        prop_assert_eq!(names(dir.path()).len(), 1);
        if is_npy {
            let tensor = block_on(read_npy(&FileSource::open(&file).unwrap())).unwrap();
            prop_assert_eq!(tensor, HostTensor { shape: vec![1, 3, frames.len(), 2, 3], data: stacked(&frames) });
        } else {
            let header = block_on(read_header(&FileSource::open(&file).unwrap())).unwrap();
            prop_assert_eq!(&header.tensors["image"].shape, &[1, 3, count, 2, 3]);
        }
        let mut source = open_source(&name, None, &ffmpeg).unwrap();
        prop_assert_eq!((source.size(), source.frames()), (size(3, 2), Some(count)));
        prop_assert_eq!(take_all(&mut *source).unwrap(), frames);
    }
}

fn open(shape: Vec<usize>) -> Result<ArraySource> {
    let data = vec![0.0; shape.iter().product()];
    block_on(ArraySource::open(Box::new(MemorySource::new("a.npy", write_npy(&HostTensor { shape, data }))), None))
}

#[test]
fn only_clips_of_three_channels_are_read() {
    for shape in [vec![3, 2, 4, 5], vec![1, 3, 2, 4, 5]] {
        assert_eq!(open(shape).unwrap().frames(), Some(2));
    }
    for shape in
        [vec![1, 4, 2, 4, 5], vec![2, 3, 2, 4, 5], vec![7, 3, 4, 5], vec![3, 4, 5], vec![1, 3, 0, 4, 5], vec![]]
    {
        let text = format!("{shape:?}");
        assert_says(open(shape), &["image in a.npy", "a clip", &text]);
    }
    let tensor = HostTensor { shape: vec![1, 3, 1, 1, 1], data: vec![0.0; 3] };
    let file = write_safetensors(&[("z", &tensor)]).unwrap();
    let open = |name| block_on(ArraySource::open(Box::new(MemorySource::new("a", file.clone())), name));
    assert_says(open(None), &["\"image\" or \"images\"", "only \"z\""]);
    assert_eq!(open(Some("z")).unwrap().frames(), Some(1));
}

#[test]
fn values_that_are_not_finite_are_errors_when_they_are_read() {
    let mut data = vec![0.0; 3 * 2 * 4];
    data[8 + 5] = f32::NAN;
    let file = write_npy(&HostTensor { shape: vec![3, 2, 2, 2], data });
    let mut source = block_on(ArraySource::open(Box::new(MemorySource::new("a.npy", file)), None)).unwrap();
    assert!(source.next().unwrap().is_some());
    assert_says(source.next(), &["image in a.npy", "finite values", "NaN at element 13"]);
}

#[test]
fn too_few_and_too_many_frames_leave_no_file() {
    let (dir, path) = folder();
    let (ffmpeg, name) = (Ffmpeg::default(), ClipName::of(&path("a.npy")).unwrap().unwrap());
    let frame = frame(size(3, 2), 0);
    let mut sink = create_sink(&name, options(&ffmpeg, 2)).unwrap();
    assert!(give(&mut *sink, &frame).unwrap().is_continue());
    assert_says(sink.finish(), &["frames of the clip", "expected 2, found 1"]);
    let mut sink = create_sink(&name, options(&ffmpeg, 1)).unwrap();
    assert!(give(&mut *sink, &frame).unwrap().is_continue());
    assert_says(give(&mut *sink, &frame), &["expected 1, found 2"]);
    drop(sink);
    assert_says(create_sink(&name, options(&ffmpeg, u64::MAX)), &["at most 2^63 bytes"]);
    assert_says(create_sink(&name, SinkOptions { bits: Some(Bits::Ten), ..options(&ffmpeg, 1) }), &["--bits", "10"]);
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_cannot_be_written_in_any_order() {
    let (_dir, path) = folder();
    std::os::unix::fs::symlink("/dev/full", path("a.npy")).unwrap();
    let ffmpeg = Ffmpeg::default();
    assert_says(
        create_sink(&ClipName::of(&path("a.npy")).unwrap().unwrap(), options(&ffmpeg, 1)),
        &["a.npy", "a pipe or a device"],
    );
}
