//! Video files: the arguments for `ffmpeg`, and its failures. Scripts in `tests/fixtures/ffmpeg`
//! replace it; if this machine has a real one, clips go through that too.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use test_kit::repository;
use wgvae::Result;
use wgvae_media::clip_files::{
    Bits, ClipName, Codec, Direct, Ffmpeg, FfmpegSink, FfmpegSource, Fps, FrameSink as _, FrameSource as _,
    PlanarFrame, SinkOptions, Y4mSink, Y4mSource, create_sink, open_source,
};
use wgvae_media::picture::Remark;

use super::{assert_says, folder, frame, furthest, give, give_all, names, size, take_all};

/// Returns one of the scripts.
fn script(name: &str) -> Ffmpeg {
    let program = repository().join("tests/fixtures/ffmpeg").join(name);
    Ffmpeg { program, ..Ffmpeg::default() }
}

fn sink(ffmpeg: &Ffmpeg, path: &Path, bits: Option<Bits>, side: u32) -> Result<FfmpegSink<'static>> {
    let fps = Fps { frames: 30000, seconds: 1001 };
    FfmpegSink::start(ffmpeg, path, &Codec::of(path, bits)?, (size(side, side), fps), &Direct)
}

/// Reads the recorded arguments, joined by spaces. Replaces the file name that differs in every
/// run.
fn arguments(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let hidden = |line: &str| if line.starts_with("file:") { "FILE".to_owned() } else { line.to_owned() };
    text.lines().map(hidden).collect::<Vec<_>>().join(" ")
}

#[test]
fn it_gets_twelve_bits_and_is_told_what_they_mean() {
    let (dir, path) = folder();
    let pixels = PlanarFrame { size: size(2, 2), data: [[1.0; 4], [-1.0; 4], [0.0; 4]].concat() };
    let expected = [
        ("a.mp4", None, "-c:v libx264 -crf 16 -preset medium -movflags +faststart -pix_fmt yuv420p", "mp4"),
        (
            "a.mp4",
            Some(Bits::Ten),
            "-c:v libx265 -crf 16 -tag:v hvc1 -x265-params log-level=error -movflags +faststart -pix_fmt yuv420p10le",
            "mp4",
        ),
        ("a.webm", Some(Bits::Twelve), "-c:v libvpx-vp9 -crf 20 -b:v 0 -row-mt 1 -pix_fmt yuv420p12le", "webm"),
        ("a.mov", None, "-c:v prores_ks -profile:v 3 -vendor apl0 -pix_fmt yuv422p10le", "mov"),
    ];
    for (name, bits, codec, container) in expected {
        give_all(&mut sink(&script("records"), &path(name), bits, 2).unwrap(), &[pixels.clone(), pixels.clone()])
            .unwrap();
        assert_eq!(
            arguments(&path("arguments")),
            format!(
                "-hide_banner -loglevel error -f yuv4mpegpipe -i pipe:0 \
                -vf setparams=range=tv:color_primaries=bt709:color_trc=bt709:colorspace=bt709,\
                scale=in_color_matrix=bt709:in_range=tv:out_color_matrix=bt709:out_range=tv:flags=bicubic+accurate_rnd+full_chroma_int \
                {codec} \
                -color_primaries bt709 -color_trc bt709 -colorspace bt709 -color_range tv -f {container} -y FILE"
            )
        );
        let given = std::fs::read(path(name)).unwrap();
        assert!(given.starts_with(b"YUV4MPEG2 W2 H2 F30000:1001 XCOLORRANGE=LIMITED C444p12\nFRAME\n"), "{name}");
        let mut read = Y4mSource::open(&path(name)).unwrap();
        let found = take_all(&mut read).unwrap();
        assert!(found.len() == 2 && found.iter().all(|found| furthest(found, &pixels) < 2e-3), "{name}");
    }
    give_all(&mut sink(&script("records"), &path("a.gif"), None, 2).unwrap(), &[pixels]).unwrap();
    let gif = arguments(&path("arguments"));
    assert!(gif.contains("palettegen=stats_mode=single") && gif.ends_with("-f gif -y FILE"), "{gif}");
    assert_eq!(names(dir.path()), ["a.gif", "a.mov", "a.mp4", "a.webm", "arguments"]);
}

#[test]
fn whatever_it_says_it_is_listened_to() {
    let (dir, path) = folder();
    let frames = [0, 1].map(|number| frame(size(200, 200), number));
    give_all(&mut sink(&script("noisy"), &path("a.mp4"), None, 200).unwrap(), &frames).unwrap();
    assert_eq!(std::fs::metadata(path("a.mp4")).unwrap().len(), 2 * (200 * 200 * 6 + 6) + 60);
    assert_eq!(names(dir.path()), ["a.mp4"]);
}

/// Writes frames that are larger than a pipe's buffer, until there is an error.
fn first_error(mut sink: FfmpegSink<'_>) -> wgvae::Error {
    let frames = (0..20).map(|number| give(&mut sink, &frame(size(200, 200), number)));
    let failed = frames.into_iter().find_map(Result::err);
    failed.unwrap_or_else(|| sink.finish().unwrap_err())
}

#[test]
fn its_last_words_are_shown_and_nothing_is_left() {
    let (dir, path) = folder();
    let cases = [
        ("fails", ["ffmpeg failed (exit status: 8)", "39999; 40000; Unknown encoder 'libx264'"]),
        ("stops", ["ffmpeg ended before the last frame", ""]),
        ("late", ["ffmpeg failed (exit status: 1)", "No space left on device"]),
    ];
    for (name, parts) in cases {
        let error = first_error(sink(&script(name), &path("a.mp4"), None, 200).unwrap());
        assert_says(Err::<(), _>(error), &[&path("a.mp4").display().to_string(), parts[0], parts[1]]);
        assert_eq!(names(dir.path()), Vec::<String>::new(), "{name}");
    }
    // One frame fits into the pipe's buffer.
    let mut quiet = sink(&script("stops"), &path("a.mp4"), None, 2).unwrap();
    let given = give(&mut quiet, &frame(size(2, 2), 0)).map(|_| ());
    assert_says(given.and_then(|()| quiet.finish()), &["ffmpeg"]);
}

#[test]
fn one_that_hangs_is_ended() {
    let (dir, path) = folder();
    let ffmpeg = Ffmpeg { patience: Duration::from_millis(300), ..script("hangs") };
    let start = Instant::now();
    let error = first_error(sink(&ffmpeg, &path("a.mp4"), None, 200).unwrap());
    assert_says(Err::<(), _>(error), &["a.mp4", "ffmpeg hangs: it read no data for 0.3 s", "I sleep"]);
    assert!(start.elapsed() < Duration::from_secs(20));
    let mut last = sink(&ffmpeg, &path("a.mp4"), None, 200).unwrap();
    assert!(give(&mut last, &frame(size(200, 200), 0)).unwrap().is_continue());
    assert_says(last.finish(), &["ffmpeg hangs"]);
    std::fs::write(path("b.mp4"), b"").unwrap();
    assert_says(
        FfmpegSource::open(&ffmpeg, &path("b.mp4")),
        &["b.mp4", "ffmpeg hangs: it delivered no data for 0.3 s", "I sleep"],
    );
    std::fs::remove_file(path("b.mp4")).unwrap();
    // Dropped early, as after Ctrl-C.
    drop(sink(&ffmpeg, &path("a.mp4"), None, 200).unwrap());
    drop(last);
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[test]
fn where_there_is_none_that_is_said() {
    let (dir, path) = folder();
    let ffmpeg = Ffmpeg { program: PathBuf::from("no-such-ffmpeg"), ..Ffmpeg::default() };
    let parts = ["a.mp4", "no-such-ffmpeg on the path", "install it, or use .y4m"];
    assert_says(sink(&ffmpeg, &path("a.mp4"), None, 2), &parts);
    assert_eq!(names(dir.path()), Vec::<String>::new());
    assert_says(FfmpegSource::open(&ffmpeg, &path("a.mp4")), &["a.mp4", "No such file"]);
    std::fs::write(path("a.mp4"), b"").unwrap();
    assert_says(FfmpegSource::open(&ffmpeg, &path("a.mp4")), &parts);
    let ffmpeg = Ffmpeg { program: path("a.mp4"), ..Ffmpeg::default() };
    assert_says(sink(&ffmpeg, &path("b.mp4"), None, 2), &["a.mp4", "ermission denied"]);
}

#[test]
fn odd_sides_are_refused_where_chroma_has_half_of_them() {
    let (_dir, path) = folder();
    let start = |name: &str, extent| {
        let codec = Codec::of(&path(name), None)?;
        FfmpegSink::start(&script("records"), &path(name), &codec, (extent, Fps::default()), &Direct).map(drop)
    };
    assert_says(start("a.mp4", size(4, 3)), &["a.mp4", "even sides", "4x3"]);
    assert_says(start("a.mov", size(3, 4)), &["even width", "3x4"]);
    start("a.mov", size(4, 3)).unwrap();
    start("a.gif", size(3, 3)).unwrap();
}

#[test]
fn what_it_delivers_is_read() {
    let (_dir, path) = folder();
    let frames: Vec<_> = (0..3).map(|number| frame(size(4, 2), number)).collect();
    give_all(&mut Y4mSink::create(&path("a.mp4"), size(4, 2), Fps::default(), Bits::Twelve, &Direct).unwrap(), &frames)
        .unwrap();
    let mut source = FfmpegSource::open(&script("delivers"), &path("a.mp4")).unwrap();
    assert_eq!((source.size(), source.frames()), (size(4, 2), None));
    let found = take_all(&mut source).unwrap();
    assert!(found.len() == 3 && found.iter().zip(&frames).all(|(found, frame)| furthest(found, frame) < 2e-3));
    assert_eq!(
        arguments(&path("arguments")),
        " -hide_banner -loglevel error -nostdin -xerror -protocol_whitelist file -format_whitelist \
        mov,mp4,matroska,webm,avi,gif,apng,flv,asf,mpeg,mpegts,mpegvideo,ogg,mxf,ivf,nut,rm,dv,\
        h264,hevc,av1,obu,m4v,vc1,yuv4mpegpipe,webp_pipe -i FILE -map 0:v:0 \
        -vf crop=w='if(eq(iw,4)*eq(ih,2),iw,0)':h=ih:x=0:y=0:exact=1,\
        scale=out_color_matrix=bt709:out_range=tv:flags=bicubic+accurate_rnd+full_chroma_int,format=yuv444p12le \
        -fps_mode passthrough -f yuv4mpegpipe -strict -1 pipe:1"
    );
    // The script fails after the last frame, in the middle of one, and before the first.
    let whole = std::fs::read(path("a.mp4")).unwrap();
    for end in [whole.len(), whole.len() - 1, 10, 0] {
        std::fs::write(path("b.mp4"), &whole[..end]).unwrap();
        let taken = FfmpegSource::open(&script("breaks"), &path("b.mp4")).and_then(|mut source| take_all(&mut source));
        assert_says(taken, &["b.mp4: ffmpeg failed (exit status: 1): moov atom not found"]);
    }
    std::fs::write(path("b.mp4"), &whole[..whole.len() - 1]).unwrap();
    let mut cut = FfmpegSource::open(&script("delivers"), &path("b.mp4")).unwrap();
    assert_says(take_all(&mut cut), &["b.mp4: ffmpeg delivered wrong data: cut short within frame 3"]);
    std::fs::write(path("b.mp4"), b"YUV4MPEG2 W2 H2\n").unwrap();
    assert_says(
        take_all(&mut FfmpegSource::open(&script("delivers"), &path("b.mp4")).unwrap()),
        &["at least one", "none"],
    );
    assert_says(FfmpegSource::open(&script("stops"), &path("b.mp4")), &["b.mp4", "at least one", "showinfo"]);
}

/// Returns an answer to a probe by a version of `ffmpeg`.
fn answer(version: &str, pixels: &str, matrix: &str, transfer: &str) -> String {
    let shown = "[Parsed_showinfo_0 @ 0x5581] [info]";
    format!(
        "[info] ffmpeg version {version} Copyright\n[info]     title : ffmpeg version 1.0\n\
        {shown} n:   0 pts:      0 fmt:{pixels} sar:1/1 s:4x2 i:P iskey:1\n\
        {shown} color_range:unknown color_space:{matrix} color_primaries:unknown color_trc:{transfer}\n\
        {shown} n:   1 pts:      1 fmt:rgb24 sar:1/1 s:8x8 i:P iskey:1\n"
    )
}

/// Writes a clip of three frames as `a.mp4`, which scripts deliver as it is.
fn delivered(path: &Path) {
    let frames: Vec<_> = (0..3).map(|number| frame(size(4, 2), number)).collect();
    give_all(&mut Y4mSink::create(path, size(4, 2), Fps::default(), Bits::Twelve, &Direct).unwrap(), &frames).unwrap();
}

#[test]
fn colours_without_tags_are_those_of_players_and_remarks_name_what_is_ignored() {
    let (_dir, path) = folder();
    delivered(&path("a.mp4"));
    let small = Remark::NoMatrix("BT.601");
    let cases: [(_, _, _, _, &[Remark]); 10] = [
        ("yuv420p", "unknown", "unknown", true, &[small]),
        ("yuv420p", "gbr", "unknown", true, &[small]),
        ("yuv420p", "smpte170m", "smpte170m", false, &[]),
        ("yuv420p10le", "bt2020nc", "smpte2084", false, &[Remark::Hdr("PQ")]),
        ("yuv420p10le", "bt2020nc", "arib-std-b67", false, &[Remark::Hdr("HLG")]),
        ("yuva444p12le", "unknown", "unknown", true, &[small, Remark::Alpha]),
        ("bgra", "gbr", "unknown", false, &[Remark::Alpha]),
        ("pal8", "unknown", "unknown", false, &[]),
        ("rgb24", "unknown", "unknown", false, &[]),
        ("gray", "unknown", "unknown", false, &[]),
    ];
    for (pixels, matrix, transfer, assumes, expected) in cases {
        std::fs::write(path("probe"), answer("6.0", pixels, matrix, transfer)).unwrap();
        let source = FfmpegSource::open(&script("delivers"), &path("a.mp4")).unwrap();
        let found: Vec<Remark> = source.remarks().iter().map(|(_, remark)| *remark).collect();
        assert_eq!(found, expected, "{pixels} {matrix} {transfer}");
        let given = arguments(&path("arguments"));
        assert_eq!(given.contains("scale=in_color_matrix=bt601:out_color_matrix"), assumes, "{given}");
    }
    for (extent, assumed) in [("1280x2", "BT.709"), ("1279x576", "BT.601"), ("4x577", "BT.709")] {
        let probed = answer("6.0", "yuv420p", "unknown", "unknown").replace("s:4x2", &format!("s:{extent}"));
        std::fs::write(path("probe"), probed).unwrap();
        let source = FfmpegSource::open(&script("delivers"), &path("a.mp4")).unwrap();
        assert!(matches!(source.remarks(), [(_, Remark::NoMatrix(found))] if *found == assumed), "{extent}");
        let matrix = format!("scale=in_color_matrix={}:", assumed.to_lowercase().replace('.', ""));
        assert!(arguments(&path("arguments")).contains(&matrix), "{extent}");
    }
    assert!(small.to_string().contains("as BT.601, as players do") && small.to_string().contains("h264_metadata"));
    let gif = answer("6.0", "bgra", "gbr", "unknown") + "[info] Input #0, gif, from 'file:a.gif':\n";
    std::fs::write(path("probe"), gif).unwrap();
    let source = FfmpegSource::open(&script("delivers"), &path("a.mp4")).unwrap();
    assert!(source.remarks().is_empty(), "{:?}", source.remarks());
    let vp9 = answer("6.0", "yuv420p", "bt709", "bt709") + "[info]       ALPHA_MODE      : 1\n";
    std::fs::write(path("probe"), vp9).unwrap();
    let source = FfmpegSource::open(&script("delivers"), &path("a.mp4")).unwrap();
    assert!(matches!(source.remarks(), [(_, Remark::Alpha)]), "{:?}", source.remarks());
    std::fs::write(path("probe"), answer("6.0", "yuv420p10le", "ictcp", "smpte2084")).unwrap();
    let parts = ["colour matrix of", "a.mp4", "expected one of bt709", "found \"ictcp\": convert the video"];
    assert_says(FfmpegSource::open(&script("delivers"), &path("a.mp4")), &parts);
}

#[test]
fn versions_without_fps_mode_are_asked_for_every_frame_in_their_words() {
    let (_dir, path) = folder();
    delivered(&path("a.mp4"));
    for version in ["4.2.2-static", "n4.4.1", "4.4.2-0ubuntu0.22.04.1", "5.0.3"] {
        std::fs::write(path("probe"), answer(version, "yuv420p", "bt709", "bt709")).unwrap();
        let found = take_all(&mut FfmpegSource::open(&script("old"), &path("a.mp4")).unwrap()).unwrap();
        assert_eq!(found.len(), 3, "{version}");
    }
    for version in ["5.1", "n7.1", "9.0.2-static", "2024-05-01-git-full_build", "N-115000-g1"] {
        std::fs::write(path("probe"), answer(version, "yuv420p", "bt709", "bt709")).unwrap();
        let opened = FfmpegSource::open(&script("old"), &path("a.mp4"));
        assert_says(opened, &["ffmpeg failed (exit status: 1): Unrecognized option 'fps_mode'"]);
    }
}

#[test]
fn errors_of_one_that_ends_well_are_errors() {
    let (_dir, path) = folder();
    delivered(&path("a.mp4"));
    let read = |messages: &str, code: &str| {
        std::fs::write(path("messages"), messages).unwrap();
        std::fs::write(path("code"), code).unwrap();
        let mut source = FfmpegSource::open(&script("warns"), &path("a.mp4")).unwrap();
        take_all(&mut source).map(|frames| (frames.len(), source.remarks().to_vec()))
    };
    let many = "[h264 @ 0x2346] mmco: unref short failure\n".repeat(200);
    for loss in [
        "[matroska,webm @ 0x2346] File ended prematurely\n",
        "[in#0/avi @ 0x2346] corrupt input packet in stream 0\n",
        "[mov,mp4,m4a,3gp,3g2,mj2 @ 0x2346] stream 0, offset 0x2b: partial file\n",
        "[dec:h264 @ 0x2347] Error processing packet in decoder: Invalid data\n",
        "[gif @ 0x2346] LZW decode failed\n",
    ] {
        assert_says(read(loss, "0"), &["a.mp4: ffmpeg reports errors after frame 3", loss.trim()]);
        assert_says(read(&(loss.to_owned() + &many), "0"), &["ffmpeg reports errors", loss.trim()]);
    }
    for harmless in [
        "[h264 @ 0x2346] mmco: unref short failure\n    Last message repeated 1 times\n",
        "ref short failure\n[h264 @ 0x2346] mmco: unref short failure\n",
        "[mov,mp4,m4a,3gp,3g2,mj2 @ 0x2346] Referenced QT chapter track not found\n",
        "[theora @ 0x2346] 7 bits left in packet 82\n",
    ] {
        let (frames, remarks) = read(harmless, "0").unwrap();
        assert!(frames == 3 && matches!(remarks[..], [(_, Remark::Messages)]), "{harmless}: {remarks:?}");
    }
    assert_eq!(read("", "0").unwrap(), (3, Vec::new()));
    let resized = "[Parsed_crop_0 @ 0x7fbf] Invalid too big or non positive size for width '0' or height '120'\n";
    assert_says(read(resized, "234"), &["frames of", "a.mp4", "expected 4x2 throughout", "another size"]);
}

#[test]
fn frames_that_cannot_be_used_are_named_instead_of_a_closed_pipe() {
    let (_dir, path) = folder();
    std::fs::write(path("a.mp4"), b"").unwrap();
    let opened = FfmpegSource::open(&script("interlaced"), &path("a.mp4"));
    assert_says(opened, &["frames of", "a.mp4", "deinterlace them first", "It, which is interlaced"]);
}

/// Returns a smooth frame, which suits chroma of half the size and a lossy codec: a ramp of two
/// colours, slightly different in each frame.
fn ramp(number: u32) -> PlanarFrame {
    let value = |channel: u32, x: u32, y: u32| match channel {
        0 => x as f32 / 63.0,
        1 => 0.2 + number as f32 * 0.02,
        _ => y as f32 / 47.0,
    };
    let rows = (0..3).flat_map(|channel| (0..48).flat_map(move |y| (0..64).map(move |x| value(channel, x, y))));
    PlanarFrame { size: size(64, 48), data: rows.map(|value| 2.0 * value - 1.0).collect() }
}

/// Returns the ffmpeg of this machine, if any.
fn real() -> Option<Ffmpeg> {
    let ffmpeg = Ffmpeg::default();
    if Command::new(&ffmpeg.program).arg("-version").output().is_err() {
        eprintln!("SKIPPED: there is no ffmpeg on the path");
        return None;
    }
    Some(ffmpeg)
}

/// Prints a notice and returns false if `ffmpeg` lacks one of the encoders.
fn has_encoders(ffmpeg: &Ffmpeg, names: &[&str]) -> bool {
    let output = Command::new(&ffmpeg.program).args(["-hide_banner", "-encoders"]).output().unwrap();
    let all = String::from_utf8_lossy(&output.stdout);
    let missing = names.iter().find(|name| !all.split_whitespace().any(|word| word == **name));
    missing.inspect(|name| eprintln!("SKIPPED: ffmpeg has no encoder {name}")).is_none()
}

/// Tests every kind of video and number of bits with the real ffmpeg: colours and number of frames
/// must be right.
#[test]
fn clips_go_through_the_ffmpeg_of_this_machine() {
    let Some(ffmpeg) = real() else { return };
    let (_dir, path) = folder();
    let frames: Vec<_> = (0..5).map(ramp).collect();
    // Largest and mean error, in a range of 2.
    let cases = [
        ("a.mp4", None, 0.12, 0.012),
        ("a.mp4", Some(Bits::Ten), 0.12, 0.012),
        ("a.mp4", Some(Bits::Twelve), 0.12, 0.012),
        ("a.webm", None, 0.12, 0.015),
        ("a.webm", Some(Bits::Ten), 0.12, 0.015),
        ("a.webm", Some(Bits::Twelve), 0.12, 0.015),
        ("a.mov", None, 0.06, 0.006),
        ("a.gif", None, 0.5, 0.06),
    ];
    for (name, bits, most, mean) in cases {
        let clip = ClipName::of(&path(name)).unwrap().unwrap();
        let options = SinkOptions { size: size(64, 48), frames: 5, fps: None, bits, files: &Direct, ffmpeg: &ffmpeg };
        give_all(&mut *create_sink(&clip, options).unwrap(), &frames).unwrap();
        let found = take_all(&mut *open_source(&clip, None, &ffmpeg).unwrap()).unwrap();
        assert_eq!(found.len(), 5, "{name} {bits:?}");
        for (found, frame) in found.iter().zip(&frames) {
            let off = furthest(found, frame);
            let sum: f32 = found.data.iter().zip(&frame.data).map(|(found, frame)| (found - frame).abs()).sum();
            let off_by = sum / found.data.len() as f32;
            println!("{name} {bits:?}: off by {off} at most, {off_by} in the mean");
            assert!(off < most && off_by < mean, "{name} {bits:?}: {off} at most, {off_by} in the mean");
        }
    }
    for name in ["a.mp4", "a.webm", "a.mov"] {
        let said = Command::new(&ffmpeg.program).arg("-i").arg(path(name)).output().unwrap().stderr;
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("bt709"), "{name}: {said}");
    }
    // A playlist with any file name must open no other file.
    std::fs::write(path("list.mp4"), "ffconcat version 1.0\nfile a.mp4\n").unwrap();
    assert_says(FfmpegSource::open(&ffmpeg, &path("list.mp4")), &["list.mp4: ffmpeg failed"]);
    std::fs::write(path("hls.mp4"), "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.mp4\n#EXT-X-ENDLIST\n").unwrap();
    assert_says(FfmpegSource::open(&ffmpeg, &path("hls.mp4")), &["hls.mp4: ffmpeg failed"]);
    std::fs::write(path("b.mp4"), &std::fs::read(path("a.mp4")).unwrap()[..300]).unwrap();
    assert_says(FfmpegSource::open(&ffmpeg, &path("b.mp4")), &["b.mp4: ffmpeg failed"]);
}

/// Tests videos that the real ffmpeg would convert, shorten or stretch in silence.
#[test]
fn the_ffmpeg_of_this_machine_hides_nothing() {
    let Some(ffmpeg) = real().filter(|ffmpeg| has_encoders(ffmpeg, &["libx264", "prores_ks"])) else { return };
    let (_dir, path) = folder();
    let make = |size: &str, more: &[&str], name: &str| {
        let source = format!("testsrc2=size={size}:rate=10:duration=2");
        let mut command = Command::new(&ffmpeg.program);
        command.args(["-v", "error", "-y", "-f", "lavfi", "-i", &source]).args(more).arg(path(name));
        assert!(command.status().unwrap().success(), "{name}");
    };
    // As tools make most videos: of RGB, and without tags.
    let lossless = ["-c:v", "libx264", "-qp", "0", "-pix_fmt", "yuv444p"];
    make("160x120", &[&["-vf", "format=gbrp"], &lossless[..]].concat(), "a.mkv");
    let filters = "format=gbrp,scale=out_color_matrix=bt709:out_range=tv:flags=accurate_rnd,format=yuv444p12le";
    make("160x120", &["-vf", filters, "-strict", "-1"], "a.y4m");
    let mut video = FfmpegSource::open(&ffmpeg, &path("a.mkv")).unwrap();
    assert!(matches!(video.remarks(), [(_, Remark::NoMatrix("BT.601"))]), "{:?}", video.remarks());
    let found = take_all(&mut video).unwrap();
    let expected = take_all(&mut Y4mSource::open(&path("a.y4m")).unwrap()).unwrap();
    assert_eq!(found.len(), expected.len());
    let off = found.iter().zip(&expected).map(|(found, expected)| furthest(found, expected));
    let off = off.fold(0.0, f32::max);
    assert!(off < 0.03, "{off}");

    let whole = std::fs::read(path("a.mkv")).unwrap();
    std::fs::write(path("cut.mkv"), &whole[..whole.len() * 2 / 3]).unwrap();
    assert_says(
        take_all(&mut FfmpegSource::open(&ffmpeg, &path("cut.mkv")).unwrap()),
        &["cut.mkv", "ended prematurely"],
    );

    let parts = ["160x120", "80x60"].map(|size| {
        make(size, &["-c:v", "libx264", "-f", "h264"], "part.h264");
        std::fs::read(path("part.h264")).unwrap()
    });
    std::fs::write(path("b.mp4"), parts.concat()).unwrap();
    let taken = take_all(&mut FfmpegSource::open(&ffmpeg, &path("b.mp4")).unwrap());
    assert_says(taken, &["frames of", "b.mp4", "expected 160x120 throughout"]);

    make("160x120", &[], "a.gif");
    let mut gif = FfmpegSource::open(&ffmpeg, &path("a.gif")).unwrap();
    assert_eq!(take_all(&mut gif).unwrap().len(), 20);
    assert!(gif.remarks().is_empty(), "{:?}", gif.remarks());

    make("160x120", &["-vf", "format=rgba", "-c:v", "prores_ks", "-pix_fmt", "yuva444p10le"], "alpha.mov");
    let alpha = FfmpegSource::open(&ffmpeg, &path("alpha.mov")).unwrap();
    assert!(alpha.remarks().iter().any(|(_, remark)| *remark == Remark::Alpha), "{:?}", alpha.remarks());
}

/// Tests that the real ffmpeg reads our y4m with the right colours, given the matrix that y4m does
/// not name: within a level of 8 bits, because `ffmpeg` is no more exact (zimg is: 2 levels of 12
/// bits).
#[test]
fn our_y4m_has_the_colours_that_it_had_for_the_ffmpeg_of_this_machine() {
    let Some(ffmpeg) = real() else { return };
    let (_dir, path) = folder();
    let (y4m, frame) = (path("c.y4m"), ramp(0));
    give_all(
        &mut Y4mSink::create(&y4m, frame.size, Fps::default(), Bits::Twelve, &Direct).unwrap(),
        std::slice::from_ref(&frame),
    )
    .unwrap();
    let mut command = Command::new(&ffmpeg.program);
    command.args(["-v", "error", "-i"]).arg(&y4m);
    command.args([
        "-vf",
        "scale=in_color_matrix=bt709:in_range=tv:flags=accurate_rnd+full_chroma_int",
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb48le",
        "-",
    ]);
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stdout.len() == 64 * 48 * 6);
    let plane = 64 * 48;
    for (index, pixel) in output.stdout.as_chunks::<6>().0.iter().enumerate() {
        for channel in 0..3 {
            let level = u16::from_le_bytes([pixel[2 * channel], pixel[2 * channel + 1]]);
            let value = f32::from(level) / 65535.0 * 2.0 - 1.0;
            assert!((value - frame.data[channel * plane + index]).abs() < 9e-3, "pixel {index}, channel {channel}");
        }
    }
}
