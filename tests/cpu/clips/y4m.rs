//! y4m, written and read: round trips, files of other programs, and broken files.

use std::io::{Cursor, Write};
use std::ops::ControlFlow;
use std::path::Path;

use proptest::prelude::*;
use wgvae::Result;
use wgvae_media::clip_files::{Bits, Direct, Fps, FrameSink as _, FrameSource as _, PlanarFrame, Y4mSink, Y4mSource};

use super::{assert_says, folder, frame, furthest, give, give_all, names, size, take_all};

fn read(bytes: impl Into<Vec<u8>>) -> Result<Vec<PlanarFrame>> {
    take_all(&mut Y4mSource::from_reader(Box::new(Cursor::new(bytes.into())), "a.y4m")?)
}

/// Returns the largest error of R', G' and B' from rounding Y', Cb and Cr, in a range of 2.
fn rounding(bits: Bits) -> f32 {
    let levels = (1 << (bits.get() - 8)) as f32;
    2.0 * (0.5 / 219.0 + 1.8556 * 0.5 / 224.0) / levels + 1e-5
}

proptest! {
    #[test]
    fn frames_come_back_within_rounding(width in 1_u32..7, height in 1_u32..5, count in 1_u64..4, seed in any::<u16>()) {
        let (_dir, path) = folder();
        let size = size(width, height);
        let frames: Vec<_> = (0..count).map(|number| frame(size, number + u64::from(seed))).collect();
        for bits in [Bits::Eight, Bits::Ten, Bits::Twelve] {
            let file = path("a.y4m");
            give_all(&mut Y4mSink::create(&file, size, Fps::default(), bits, &Direct).unwrap(), &frames).unwrap();
            let mut source = Y4mSource::open(&file).unwrap();
            prop_assert_eq!((source.size(), source.frames()), (size, Some(count)));
            let found = take_all(&mut source).unwrap();
            prop_assert_eq!(found.len(), frames.len());
            for (found, frame) in found.iter().zip(&frames) {
                prop_assert!(furthest(found, frame) < rounding(bits));
            }
        }
    }

    #[test]
    fn no_header_makes_it_panic(fields in proptest::collection::vec("[WHFACIX][0-9a-z:.+]{0,21}", 0..6), rest in ".{0,20}") {
        let _ = read(format!("YUV4MPEG2 {}\nFRAME{rest}\n{rest}", fields.join(" ")));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = read([b"YUV4MPEG2 W2 H2\n".as_slice(), &bytes].concat());
        let _ = read([b"YUV4MPEG2 ".as_slice(), &bytes].concat());
        let _ = read(bytes);
    }
}

#[test]
fn the_file_is_what_others_read() {
    let (dir, path) = folder();
    let red = PlanarFrame { size: size(1, 2), data: vec![1.0, 1.0, -1.0, -1.0, -1.0, -1.0] };
    let fps = Fps { frames: 30000, seconds: 1001 };
    give_all(&mut Y4mSink::create(&path("a.y4m"), red.size, fps, Bits::Eight, &Direct).unwrap(), &[red]).unwrap();
    let mut expected = b"YUV4MPEG2 W1 H2 F30000:1001 XCOLORRANGE=LIMITED C444\nFRAME\n".to_vec();
    expected.extend([63, 63, 102, 102, 240, 240]);
    assert_eq!(std::fs::read(path("a.y4m")).unwrap(), expected);
    assert_eq!(names(dir.path()), ["a.y4m"]);
}

/// Tests a row of four pixels in limited range, with chroma and the red values worked out by hand:
/// grey 126 is (126 - 16) / 219, and Cr 128 + 56 a quarter.
#[test]
fn chroma_lies_where_the_file_says() {
    let grey = (110.0 / 219.0) * 2.0 - 1.0;
    let quarter = 2.0 * 1.5748 * 56.0 / 224.0;
    let cases: [(&str, &[u8], [f32; 4]); 5] = [
        ("444", &[128, 128, 128, 128, 128, 184, 128, 184], [0.0, 1.0, 0.0, 1.0]),
        // Chroma lies at the first pixel of each pair: the second is halfway to the next, and the
        // last is held.
        ("422", &[128, 128, 128, 184], [0.0, 0.5, 1.0, 1.0]),
        ("420mpeg2", &[128, 128, 128, 184], [0.0, 0.5, 1.0, 1.0]),
        // Chroma lies between the pixels of each pair.
        ("420jpeg", &[128, 128, 128, 184], [0.0, 0.25, 0.75, 1.0]),
        ("420", &[128, 128, 128, 184], [0.0, 0.25, 0.75, 1.0]),
    ];
    for (space, chroma, parts) in cases {
        let header = format!("YUV4MPEG2 W4 H1 F24:1 Ip A1:1 C{space}\nFRAME\n");
        let frames = read([header.as_bytes(), &[126; 4], chroma].concat()).expect(space);
        for (found, part) in frames[0].data.iter().zip(parts) {
            assert!((found - (grey + quarter * part)).abs() < 1e-5, "{space}: {found} where Cr is {part}");
        }
    }
    // The same applies along columns.
    let frames =
        read([b"YUV4MPEG2 W1 H4 C420paldv\nFRAME\n".as_slice(), &[126; 4], &[128, 128, 128, 184]].concat()).unwrap();
    assert!((frames[0].data[1] - (grey + quarter * 0.5)).abs() < 1e-5);
    let frames =
        read([b"YUV4MPEG2 W1 H4 C420\nFRAME\n".as_slice(), &[126; 4], &[128, 128, 128, 184]].concat()).unwrap();
    assert!((frames[0].data[1] - (grey + quarter * 0.25)).abs() < 1e-5);
}

#[test]
fn grey_deep_and_full_range_files_are_read() {
    let frames = read(b"YUV4MPEG2 W2 H1 Cmono\nFRAME Ip\n\x10\xeb".as_slice()).unwrap();
    assert_eq!(frames[0].data, [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0]);
    let frames = read(b"YUV4MPEG2 W2 H1 Cmono XCOLORRANGE=FULL\nFRAME\n\x00\xff".as_slice()).unwrap();
    assert_eq!(frames[0].data, [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0]);
    let frames = read(b"YUV4MPEG2 W2 H1 Cmono12\nFRAME\n\x00\x01\xb0\x0e".as_slice()).unwrap();
    assert_eq!(frames[0].data, [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0]);
    for (space, bytes) in
        [("420p10", 2), ("420p12", 2), ("422p10", 2), ("422p12", 2), ("444p10", 2), ("444p12", 2), ("420jpeg", 1)]
    {
        let odd = |samples: usize| [128_u8, 0][..bytes].repeat(samples);
        let chroma = if space.starts_with("444") {
            15
        } else if space.starts_with("422") {
            9
        } else {
            6
        };
        let file = [format!("YUV4MPEG2 W5 H3 C{space}\nFRAME\n").as_bytes(), &odd(15 + 2 * chroma)].concat();
        let found = read(file.clone()).expect(space);
        assert_eq!(found[0].size, size(5, 3), "{space}");
        assert_says(read(&file[..file.len() - 1]), &["cut short within frame 1"]);
    }
}

#[test]
fn what_is_cut_short_is_an_error_after_the_whole_frames() {
    let frame = |level: u8| [b"FRAME\n".as_slice(), &[level, level, level]].concat();
    let header = b"YUV4MPEG2 W1 H1 C444\n".as_slice();
    let file = [header, &frame(16), &frame(128)].concat();
    assert_eq!(read(file.clone()).unwrap().len(), 2);
    assert_eq!(read(header).unwrap().len(), 0);
    for end in 1..header.len() {
        let text = if end < 10 { "a.y4m" } else { "cut short within its header" };
        assert_says(read(&file[..end]), &[text]);
    }
    for end in header.len() + 9 + 1..file.len() {
        let mut source = Y4mSource::from_reader(Box::new(Cursor::new(file[..end].to_vec())), "a.y4m").unwrap();
        assert!(source.next().unwrap().is_some());
        assert_says(source.next(), &["a.y4m", "cut short within frame 2"]);
    }
}

#[test]
fn bad_files_are_errors() {
    let cases: [(&[u8], &[&str]); 13] = [
        (b"", &["a.y4m", "empty"]),
        (b"RIFF....AVI ", &["does not begin with YUV4MPEG2"]),
        (b"YUV4MPEG2 H2\n", &["size of a.y4m", "W- H2"]),
        (b"YUV4MPEG2 W0 H2\n", &["W0 H2"]),
        (b"YUV4MPEG2 W-1 H2\n", &["W-1 H2"]),
        (b"YUV4MPEG2 W4294967295 H4294967295\n", &["1 to 1073741824 pixels"]),
        (b"YUV4MPEG2 W99999999999999999999 H2\n", &["W99999999999999999999 H2"]),
        (b"YUV4MPEG2 W2 H2 C411\n", &["colour space of a.y4m", "420, 420jpeg", "\"411\""]),
        (b"YUV4MPEG2 W2 H2 C444p16\n", &["\"444p16\""]),
        (b"YUV4MPEG2 W2 H2 It\n", &["frames of a.y4m", "whole pictures (Ip)", "It, which is interlaced"]),
        (b"YUV4MPEG2 W2 H2 F24\n", &["its header"]),
        (b"YUV4MPEG2 W2 H2\nGRAME\n", &["frame 1 is not that of a y4m file"]),
        (b"YUV4MPEG2 W2 H2\nFRAMES\n", &["frame 1 is not that of a y4m file"]),
    ];
    for (bytes, parts) in cases {
        assert_says(read(bytes), parts);
    }
    assert_says(read([b"YUV4MPEG2 W2 H2 X".as_slice(), &[b'a'; 2000]].concat()), &["more than 1024 bytes"]);
    assert_says(Y4mSource::open(Path::new("/none.y4m")), &["/none.y4m"]);
    assert_says(Y4mSource::open(Path::new("/")), &["/"]);
}

#[test]
fn a_sample_with_more_bits_than_the_colour_space_is_refused() {
    let file = |sample: u16| {
        let samples: Vec<u8> = [0, 1023, 5, 7, sample, 9].map(u16::to_le_bytes).concat();
        [b"YUV4MPEG2 W2 H2 Ip F24:1 C420p10\nFRAME\n", samples.as_slice()].concat()
    };
    read(file(1023)).unwrap();
    assert_says(read(file(1024)), &["frame 1 of a.y4m", "at most 1023", "1024 at sample 0 of plane U"]);
}

#[test]
fn a_pipe_that_closes_ends_in_peace() {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut sink = Y4mSink::to_writer(Box::new(writer), "a pipe", size(64, 64), Fps::default(), Bits::Eight).unwrap();
    drop(reader);
    for number in 0..2 {
        assert_eq!(give(&mut sink, &frame(size(64, 64), number)).unwrap(), ControlFlow::Break(()));
    }
    sink.finish().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut sink = Y4mSink::to_writer(Box::new(writer), "a pipe", size(1, 1), Fps::default(), Bits::Eight).unwrap();
    assert_eq!(give(&mut sink, &frame(size(1, 1), 0)).unwrap(), ControlFlow::Break(()));
}

/// Disk that is full after this number of bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = bytes.len().min(self.0);
        self.0 -= count;
        if count == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(count) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let sink = |room| Y4mSink::to_writer(Box::new(Full(room)), "a.y4m", size(4, 4), Fps::default(), Bits::Eight);
    assert_says(sink(0), &["a.y4m", "no storage space"]);
    let mut sink = sink(120).unwrap();
    assert_eq!(give(&mut sink, &frame(size(4, 4), 0)).unwrap(), ControlFlow::Continue(()));
    assert_says(give(&mut sink, &frame(size(4, 4), 1)), &["a.y4m", "no storage space"]);
    #[cfg(target_os = "linux")]
    assert_says(
        Y4mSink::create(Path::new("/dev/full"), size(4, 4), Fps::default(), Bits::Eight, &Direct),
        &["/dev/full", "No space"],
    );
}

#[test]
fn a_file_appears_when_it_is_complete_and_a_wrong_frame_is_refused() {
    let (dir, path) = folder();
    let mut sink = Y4mSink::create(&path("a.y4m"), size(4, 4), Fps::default(), Bits::Ten, &Direct).unwrap();
    assert_eq!(give(&mut sink, &frame(size(4, 4), 0)).unwrap(), ControlFlow::Continue(()));
    assert_says(give(&mut sink, &frame(size(4, 3), 0)), &["4x4 of planar RGB floats", "36 floats"]);
    assert!(!path("a.y4m").exists());
    drop(sink);
    assert_eq!(names(dir.path()), Vec::<String>::new());
}
