//! Numbered pictures.

use std::ops::ControlFlow;

use wgvae_media::clip_files::{Direct, Frame, FrameSink as _, FrameSource as _, Pattern, PictureSink, PictureSource};

use super::{assert_says, folder, frame, give, give_all, names, size, take_all};

#[test]
fn frames_come_back_in_order_to_the_level() {
    let (dir, path) = folder();
    let pattern = Pattern::new(&path("a%02d.png")).unwrap();
    let frames: Vec<_> = (0..12).map(|number| frame(size(5, 3), number)).collect();
    give_all(&mut PictureSink::new(pattern.clone(), size(5, 3), &Direct).unwrap(), &frames).unwrap();
    let expected: Vec<String> = (1..=12).map(|number| format!("a{number:02}.png")).collect();
    assert_eq!(names(dir.path()), expected);
    let mut source = PictureSource::open(pattern).unwrap();
    assert_eq!((source.size(), source.frames()), (size(5, 3), Some(12)));
    assert_eq!(take_all(&mut source).unwrap(), frames);
}

#[test]
fn a_size_that_changes_is_an_error_that_names_the_file() {
    let (_dir, path) = folder();
    let pattern = Pattern::new(&path("%d.png")).unwrap();
    give_all(
        &mut PictureSink::new(pattern.clone(), size(5, 3), &Direct).unwrap(),
        &[0, 1].map(|n| frame(size(5, 3), n)),
    )
    .unwrap();
    give_all(
        &mut PictureSink::new(Pattern::new(&path("b%d.png")).unwrap(), size(3, 5), &Direct).unwrap(),
        &[frame(size(3, 5), 0)],
    )
    .unwrap();
    std::fs::rename(path("b1.png"), path("3.png")).unwrap();
    let mut source = PictureSource::open(pattern).unwrap();
    assert!(source.next().unwrap().is_some() && source.next().unwrap().is_some());
    assert_says(source.next(), &["3.png", "5x3, as the first frame", "3x5"]);
}

#[test]
fn bad_names_sizes_and_frames_are_errors() {
    let (dir, path) = folder();
    let sink = |name: &str, size| PictureSink::new(Pattern::new(&path(name)).unwrap(), size, &Direct);
    assert_says(sink("%d.bmp", size(1, 1)), &["%d.bmp", "png"]);
    assert_says(sink("%d.webp", size(20_000, 1)), &["16384"]);
    assert_says(sink("none/%d.png", size(1, 1)), &["none"]);
    let mut small = sink("%d.png", size(2, 2)).unwrap();
    assert_says(small.frame(&Frame::Rgba8(&[0; 15])), &["2x2 of 8-bit RGBA", "15 bytes"]);
    assert_says(small.frame(&Frame::Floats(&[0.0; 12])), &["8-bit RGBA", "12 floats"]);
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

/// Tests a disk that fills up after the first frame, simulated by a link to a full device.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_the_frames_before_whole() {
    let (dir, path) = folder();
    let pattern = Pattern::new(&path("%d.png")).unwrap();
    std::os::unix::fs::symlink("/dev/full", path("2.png")).unwrap();
    let mut sink = PictureSink::new(pattern, size(5, 3), &Direct).unwrap();
    assert_eq!(give(&mut sink, &frame(size(5, 3), 0)).unwrap(), ControlFlow::Continue(()));
    assert_says(give(&mut sink, &frame(size(5, 3), 1)), &["2.png", "No space"]);
    drop(sink);
    assert_eq!(names(dir.path()), ["1.png", "2.png"]);
    assert_eq!(image::open(path("1.png")).unwrap().width(), 5);
}
