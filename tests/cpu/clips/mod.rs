//! Clips in files: written clips can be read again, errors name the problem, and no incomplete file
//! appears.

mod arrays;
mod colours;
mod counts;
#[cfg(unix)]
mod ffmpeg;
mod latents;
mod names;
mod pictures;
mod y4m;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use wgvae::{Result, Size};
use wgvae_media::clip_files::{Frame, FrameFormat, FrameSink, FrameSource, PlanarFrame};

fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

/// Returns a frame whose values are all different, also from those of neighbouring frames: -1 to 1.
fn frame(size: Size, number: u64) -> PlanarFrame {
    let value = |index: u64| ((index * 37 + number * 101) % 256) as f32 / 255.0 * 2.0 - 1.0;
    PlanarFrame { size, data: (0..size.pixels() * 3).map(value).collect() }
}

/// Writes a frame to a sink in the format that it wants.
fn give(sink: &mut dyn FrameSink, frame: &PlanarFrame) -> Result<ControlFlow<()>> {
    match sink.wants() {
        FrameFormat::Floats => sink.frame(&Frame::Floats(&frame.data)),
        FrameFormat::Rgba8 => {
            let plane = frame.data.len() / 3;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
            let level = |value: f32| ((value + 1.0) / 2.0 * 255.0).round() as u8;
            let pixel = |index: usize| {
                let [red, green, blue] = [0, 1, 2].map(|channel| level(frame.data[channel * plane + index]));
                [red, green, blue, 255]
            };
            sink.frame(&Frame::Rgba8(&(0..plane).flat_map(pixel).collect::<Vec<u8>>()))
        }
    }
}

fn give_all(sink: &mut dyn FrameSink, frames: &[PlanarFrame]) -> Result<()> {
    for frame in frames {
        assert_eq!(give(sink, frame)?, ControlFlow::Continue(()));
    }
    sink.finish()
}

fn take_all(source: &mut dyn FrameSource) -> Result<Vec<PlanarFrame>> {
    let mut frames = Vec::new();
    while let Some(frame) = source.next()? {
        assert_eq!(frame.size, source.size());
        frames.push(frame);
    }
    Ok(frames)
}

/// Returns the largest difference of two frames.
fn furthest(left: &PlanarFrame, right: &PlanarFrame) -> f32 {
    assert_eq!((left.size, left.data.len()), (right.size, right.data.len()));
    left.data.iter().zip(&right.data).map(|(left, right)| (left - right).abs()).fold(0.0, f32::max)
}

/// Returns the names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn assert_says<T>(result: Result<T>, parts: &[&str]) {
    let text = result.err().expect("an error").to_string();
    for part in parts {
        assert!(text.contains(part), "\"{part}\" in: {text}");
    }
}

/// Source of frames in memory, which may or may not know their number.
#[derive(Debug)]
struct Frames {
    frames: std::vec::IntoIter<PlanarFrame>,
    size: Size,
    known: Option<u64>,
}

impl Frames {
    fn new(count: u64, is_known: bool) -> Self {
        let size = size(2, 1);
        let frames: Vec<PlanarFrame> = (0..count).map(|number| frame(size, number)).collect();
        Self { frames: frames.into_iter(), size, known: is_known.then_some(count) }
    }
}

impl FrameSource for Frames {
    fn name(&self) -> &str {
        "frames"
    }

    fn size(&self) -> Size {
        self.size
    }

    fn frames(&self) -> Option<u64> {
        self.known
    }

    fn next(&mut self) -> Result<Option<PlanarFrame>> {
        Ok(self.frames.next())
    }
}

/// Returns a temporary folder, and a function for paths in it.
fn folder() -> (tempfile::TempDir, impl Fn(&str) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, move |name: &str| path.join(name))
}
