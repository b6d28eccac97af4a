//! Image files and atomic writing.

use std::path::Path;

use image::ImageDecoder as _;
use image::codecs::jpeg::JpegDecoder;
use image::codecs::webp::WebPDecoder;
use wgvae::Size;
use wgvae_media::image_file::{
    ImageFormat, Pixels, PngPixels, PngRows, encode_image, encode_png, numbered, write_image,
};
use wgvae_media::part_file::{PartFile, check_writable, write_atomically};

const SIZE: Size = Size { width: 5, height: 3 };

/// Returns a picture in which every byte is different.
fn picture(channels: usize) -> Vec<u8> {
    (0..15 * channels).map(|index| u8::try_from(index * 4).expect("small")).collect()
}

#[test]
fn the_ending_chooses_the_format() {
    let cases = [
        ("a.png", ImageFormat::Png),
        ("a.b.JPG", ImageFormat::Jpeg),
        ("a.jpeg", ImageFormat::Jpeg),
        ("x/a.webp", ImageFormat::WebP),
    ];
    for (path, format) in cases {
        assert_eq!(ImageFormat::from_path(Path::new(path)).expect(path), format);
    }
    for path in ["a.gif", "a", "a.", "png", ".png"] {
        let text = ImageFormat::from_path(Path::new(path)).expect_err(path).to_string();
        assert!(text.contains("one of png, jpg, jpeg, webp"), "{text}");
    }
}

#[test]
fn pixels_survive_a_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for channels in [3, 4] {
        let data = picture(channels);
        for ending in ["png", "webp", "jpg"] {
            let path = folder.path().join(format!("a.{ending}"));
            write_image(&path, &Pixels { size: SIZE, data: &data }).expect(ending);
            let image = image::open(&path).expect(ending);
            assert_eq!((image.width(), image.height()), (5, 3), "{ending}");
            if ending != "jpg" {
                let read = if channels == 3 { image.into_rgb8().into_raw() } else { image.into_rgba8().into_raw() };
                assert_eq!(read, data, "{ending} {channels}");
            }
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 3, "no temporary file is left");
}

#[test]
fn impossible_images_are_errors() {
    let sizes = [(5, 3, 44), (5, 3, 30), (0, 3, 0), (5, 0, 0), (u32::MAX, u32::MAX, 15)];
    for (width, height, bytes) in sizes {
        let pixels = Pixels { size: Size { width, height }, data: &vec![0; bytes] };
        let text = encode_image(ImageFormat::Png, &pixels).expect_err("impossible").to_string();
        assert!(text.contains("3 or 4 bytes"), "{text}");
    }
    let wide = |width: u32| vec![0; width as usize * 3];
    for (format, width) in [(ImageFormat::Jpeg, 65_536), (ImageFormat::WebP, 16_385)] {
        let pixels = Pixels { size: Size { width, height: 1 }, data: &wide(width) };
        let text = encode_image(format, &pixels).expect_err("too wide").to_string();
        assert!(text.contains(&format!("{width}x1 image as {format:?}")), "{text}");
        let pixels = Pixels { size: Size { width: width - 1, height: 1 }, data: &wide(width - 1) };
        encode_image(format, &pixels).expect("the widest");
    }
}

#[test]
fn several_images_are_numbered() {
    let cases = [
        ("a/out.png", 0, 1, "a/out.png"),
        ("a/out.png", 0, 2, "a/out-1.png"),
        ("out.png", 8, 12, "out-09.png"),
        ("out.v2.png", 99, 100, "out.v2-100.png"),
        ("out", 1, 3, "out-2"),
    ];
    for (path, index, count, wanted) in cases {
        assert_eq!(numbered(Path::new(path), index, count), Path::new(wanted));
    }
}

#[test]
fn files_are_replaced_whole() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.bin");
    for content in [b"first".as_slice(), b"second, longer", b""] {
        check_writable(&path).expect("writable");
        write_atomically(&path, content).expect("written");
        assert_eq!(std::fs::read(&path).expect("a file"), content);
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing else is left");
    }
}

#[test]
fn unwritable_paths_are_noticed_early() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("file"), b"x").expect("a file");
    for path in ["missing/a.png", "file/a.png", "", ".."] {
        let path = folder.path().join(path);
        for result in [check_writable(&path), write_atomically(&path, b"x")] {
            let text = result.expect_err("unwritable").to_string();
            assert!(text.starts_with(&format!("{}: ", path.display())), "{text}");
        }
    }
    check_writable(&folder.path().join("new.png")).expect("writable");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing is left behind");
}

#[cfg(unix)]
#[test]
fn links_and_devices_stay_what_they_are() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [target, link] = ["target", "link"].map(|name| folder.path().join(name));
    std::fs::write(&target, b"old").expect("a file");
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    write_atomically(&link, b"new").expect("written");
    assert_eq!(std::fs::read(&target).expect("a file"), b"new");
    assert!(link.is_symlink());
    // A dangling link: its target is created.
    std::fs::remove_file(&target).expect("a file");
    check_writable(&link).expect("writable");
    write_atomically(&link, b"anew").expect("written");
    assert_eq!(std::fs::read(&target).expect("a file"), b"anew");
    assert!(link.is_symlink());
    let circle = folder.path().join("circle");
    std::os::unix::fs::symlink(&circle, &circle).expect("a link");
    write_atomically(&circle, b"x").expect_err("a link to itself");
    check_writable(Path::new("/dev/null")).expect("writable");
    write_atomically(Path::new("/dev/null"), b"x").expect("written");
    assert!(!Path::new("/dev/null").is_file());
}

#[cfg(unix)]
#[test]
fn files_are_as_readable_as_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [ours, other] = ["ours", "other"].map(|name| folder.path().join(name));
    write_atomically(&ours, b"x").expect("written");
    std::fs::write(&other, b"x").expect("written");
    let mode = |path: &Path| std::fs::metadata(path).expect("a file").permissions().mode();
    assert_eq!(mode(&ours), mode(&other));
    // A replaced file passes on its permissions.
    std::fs::set_permissions(&ours, std::fs::Permissions::from_mode(0o600)).expect("permissions");
    write_atomically(&ours, b"secret").expect("written");
    assert_eq!((mode(&ours) & 0o777, std::fs::read(&ours).expect("a file")), (0o600, b"secret".to_vec()));
    let mut named = PartFile::create_named(&ours).expect("a part");
    std::io::Write::write_all(&mut named, b"again").expect("written");
    assert!(named.part().expect("a name").exists());
    named.persist().expect("the place");
    assert_eq!((mode(&ours) & 0o777, std::fs::read(&ours).expect("a file")), (0o600, b"again".to_vec()));
}

#[test]
fn a_png_written_row_by_row_is_the_same_picture() {
    let size = Size { width: 61, height: 40 };
    let data: Vec<u8> = (0..61 * 40 * 4_u32).map(|index| (index * index / 7 % 251) as u8).collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("rows.png");
    let mut part = PartFile::create(&path).expect("a part");
    let file = part.file().expect("a part").expect("a file");
    let mut rows = PngRows::new(file, size, PngPixels::Rgba8).expect("a header");
    for band in data.chunks(61 * 4 * 7) {
        rows.write(band).expect("rows");
    }
    rows.finish().expect("the end");
    assert!(!path.exists(), "it appears when it is complete");
    part.persist().expect("the place");
    let read = image::open(&path).expect("a png").into_rgba8();
    assert_eq!((read.width(), read.height()), (61, 40));
    assert_eq!(read.into_raw(), data);
    let whole = encode_image(ImageFormat::Png, &Pixels { size, data: &data }).expect("a png");
    assert_eq!(image::load_from_memory(&whole).expect("a png").into_rgba8().into_raw(), data);
}

/// Tests that JPEG and WebP files hold the profile that Little CMS made.
#[test]
fn files_say_that_their_levels_are_srgb() {
    let srgb = include_bytes!("../../crates/media/src/image_file/srgb.icc");
    for channels in [3, 4] {
        let encoded = |format| {
            let file = encode_image(format, &Pixels { size: SIZE, data: &picture(channels) });
            std::io::Cursor::new(file.expect("a file"))
        };
        let mut jpeg = JpegDecoder::new(encoded(ImageFormat::Jpeg)).expect("a JPEG file");
        let mut webp = WebPDecoder::new(encoded(ImageFormat::WebP)).expect("a WebP file");
        assert_eq!(jpeg.icc_profile().expect("readable").as_deref(), Some(&srgb[..]));
        assert_eq!(webp.icc_profile().expect("readable").as_deref(), Some(&srgb[..]));
        assert!(encoded(ImageFormat::Png).into_inner().windows(4).any(|chunk| chunk == b"sRGB"));
    }
}

/// Tests 16-bit levels of floats whose exact levels are known, planes of any number of rows, and
/// the chunk that says what levels mean.
#[test]
fn sixteen_bits_are_rounded_half_to_even_and_marked_as_srgb() {
    let size = Size { width: 4, height: 2 };
    let level = |level: f32| level / 32_767.5 - 1.0;
    // 0 is level 32767.5; 2 and -7 are clamped.
    let red = [-1.0, 1.0, 0.0, 2.0, -7.0, level(1000.0), level(30_000.5), level(32_766.5)];
    let wanted = [0, 65_535, 32_768, 65_535, 0, 1000, 30_000, 32_766];
    for (channels, pixels) in [(3_u16, PngPixels::Rgb16), (4, PngPixels::Rgba16)] {
        assert_eq!(PngPixels::sixteen_bits(channels.into()), pixels);
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut rows = PngRows::new(file.reopen().expect("a file"), size, pixels).expect("a header");
        let planes = |row: usize| -> Vec<f32> {
            let plane = |channel: u16| red[row * 4..][..4].iter().map(move |value| value / f32::from(1 + channel));
            (0..channels).flat_map(plane).collect()
        };
        let mut data = Vec::new();
        for row in [0, 1] {
            rows.write_floats(&planes(row)).expect("rows");
            data.extend(pixels.sixteen_bit_rows(&planes(row)));
        }
        rows.finish().expect("the end");
        let whole = encode_png(size, pixels, &data).expect("a png");
        let read = std::fs::read(file.path()).expect("a file");
        for file in [&read, &whole] {
            assert!(file.windows(4).any(|chunk| chunk == b"sRGB"));
            let image = image::load_from_memory(file).expect("a png");
            assert_eq!((image.color().bits_per_pixel(), image.color().has_alpha()), (16 * channels, channels == 4));
            let levels = if channels == 4 { image.into_rgba16().into_raw() } else { image.into_rgb16().into_raw() };
            let first: Vec<u16> = levels.iter().step_by(channels.into()).copied().collect();
            assert_eq!(first, wanted);
            assert_eq!(levels[1..3], [16_384, 21_845], "-1/2 is level 16383.75, -1/3 is 21845");
        }
    }
    let text = encode_png(size, PngPixels::Rgb16, &[0; 10]).expect_err("too short").to_string();
    assert!(text.contains("4x2 image as Png"), "{text}");
}

#[test]
fn a_png_with_rows_missing_is_an_error_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut part = PartFile::create(&folder.path().join("short.png")).expect("a part");
    let file = part.file().expect("a part").expect("a file");
    let mut rows = PngRows::new(file, Size { width: 4, height: 4 }, PngPixels::Rgba8).expect("a header");
    rows.write(&[0; 16]).expect("a row");
    rows.finish().expect_err("three rows are missing");
    drop(part);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}
