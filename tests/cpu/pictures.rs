//! Pictures to encode: resizing against Pillow, preprocessing against diffusers, and files of every
//! kind.

use std::path::{Path, PathBuf};

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::codecs::webp::WebPEncoder;
use image::{ExtendedColorType, ImageEncoder};
use tempfile::TempDir;
use test_kit::fixture::Fixture;
use test_kit::png_header::png_header;
use test_kit::repository;
use wgvae::Size;
use wgvae_media::picture::{Fit, Levels, Picture, PictureFile, Remark, Resize};

fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

fn parsed(text: &str) -> Size {
    let (width, height) = text.split_once('x').unwrap();
    size(width.parse().unwrap(), height.parse().unwrap())
}

fn picture((size, levels): (Size, Vec<u8>)) -> Picture {
    Picture { size, levels: Levels::Eight(levels) }
}

/// Tests Lanczos against Pillow. Fixtures that end in `.down` are of Pillow 13, where it runs the
/// passes in the other order.
#[test]
fn lanczos_is_pillows_to_the_bit() {
    let fixture = Fixture::open("lanczos");
    let resized: Vec<&str> = fixture.names().filter(|name| name.contains('.') && !name.ends_with(".down")).collect();
    assert!(resized.len() > 40);
    for name in resized {
        let (from, to) = name.split_once('.').unwrap();
        let found = picture(fixture.picture(from)).resized(parsed(to));
        assert!(found == picture(fixture.picture(name)), "{name}");
    }
}

#[test]
fn sixteen_bits_are_resized_as_eight_are() {
    let fixture = Fixture::open("lanczos");
    let sixteen = |levels: Vec<u8>| Levels::Sixteen(levels.into_iter().map(|level| u16::from(level) * 257).collect());
    for (from, to, most) in [
        // 8 bits are rounded and clipped between the passes: an error of half a level of 255, plus
        // the filter's overshoot.
        ("noise_33x20", "32x16", 1.5),
        ("noise_33x20", "8x40", 1.5),
        ("noise_33x20", "34x21", 1.5),
        // Division by an alpha above a quarter multiplies the error by up to 4, and rounds down.
        ("rgba_33x20", "33x8", 7.0),
        ("rgba_33x20", "66x40", 7.0),
    ] {
        let (size, levels) = fixture.picture(from);
        let resized = Picture { size, levels: sixteen(levels) }.resized(parsed(to));
        let channels = resized.channels() as usize;
        let Levels::Sixteen(found) = resized.levels else { panic!("16 bits stay") };
        let (_, eight) = fixture.picture(&format!("{from}.{to}"));
        let opaque = |pixel: &&[u8]| pixel.get(3).is_none_or(|alpha| *alpha > 64);
        let pixels = found.chunks(channels).zip(eight.chunks(channels)).filter(|(_, eight)| opaque(eight));
        let errors: Vec<f64> = pixels
            .flat_map(|(found, eight)| found.iter().zip(eight))
            .map(|(&a, &b)| (f64::from(a) / 257.0 - f64::from(b)).abs())
            .collect();
        assert!(errors.len() * 2 > found.len() && errors.into_iter().fold(0.0, f64::max) < most, "{from} {to}");
    }
}

/// Tests that a transparent pixel's colour does not spread, and that a size that stays keeps it.
#[test]
fn transparent_colors_stay_where_they_are() {
    let levels = [[255, 0, 0, 0], [0, 0, 255, 255]].concat();
    for levels in [
        Levels::Eight(levels.clone()),
        Levels::Sixteen(levels.iter().map(|&level: &u8| u16::from(level) * 257).collect()),
    ] {
        let pair = Picture { size: size(2, 1), levels };
        assert_eq!(pair.clone().resized(size(2, 1)), pair);
        let floats = pair.resized(size(1, 1)).to_floats();
        assert_eq!(floats[..3], [-1.0, -1.0, 1.0], "red has no weight");
        assert!(floats[3].abs() < 0.01, "half of alpha: {}", floats[3]);
    }
}

#[test]
fn preprocessing_is_that_of_diffusers_to_the_bit() {
    let fixture = Fixture::open("preprocess");
    let sizes: Vec<[u32; 5]> = serde_json::from_str(&fixture.metadata()["sizes"]).unwrap();
    assert_eq!(sizes.len(), 8);
    for [width, height, factor, new_width, new_height] in sizes {
        let name = format!("noise_{width}x{height}");
        let fitted = Resize::default().fit(&name, size(width, height), factor).unwrap();
        assert_eq!((fitted.scaled, fitted.size), (size(new_width, new_height), size(new_width, new_height)));
        assert_eq!(fitted.wanted, size(width, height));
        let found = fitted.apply(picture(fixture.picture(&name))).to_floats();
        assert!(found == fixture.floats(&format!("{name}.{factor}")).data, "{name} for multiples of {factor}");
    }
}

#[test]
fn levels_become_floats() {
    let of = |levels| Picture { size: size(2, 1), levels }.to_floats();
    assert_eq!(of(Levels::Eight(vec![0, 255, 0, 255, 0, 0])), [-1.0, 1.0, 1.0, -1.0, -1.0, -1.0]);
    let sixteen = of(Levels::Sixteen(vec![0, 65_535, 257 * 100, 1, 2, 3]));
    assert_eq!(sixteen[..3], [-1.0, 2.0 * (1.0 / 65_535.0) - 1.0, 1.0]);
    assert_eq!(sixteen[4], of(Levels::Eight(vec![100; 6]))[0]);
    let rgba = of(Levels::Eight(vec![255, 0, 0, 0, 0, 255, 255, 255]));
    assert_eq!(rgba, [1.0, -1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0]);
}

#[test]
fn pictures_are_fitted_into_a_size() {
    let fit = |from: &str, to: &str, fit, factor| {
        let fitted = Resize { to: Some(parsed(to)), fit, exact: false }.fit("a.png", parsed(from), factor).unwrap();
        [fitted.scaled, fitted.size, fitted.wanted].map(|size| size.to_string())
    };
    // Cover: the middle of the resized picture. The last two sizes are the encoded and the wanted
    // one.
    assert_eq!(fit("100x50", "64x64", Fit::Cover, 8), ["128x64", "64x64", "64x64"]);
    assert_eq!(fit("50x100", "64x64", Fit::Cover, 8), ["64x128", "64x64", "64x64"]);
    assert_eq!(fit("333x200", "100x100", Fit::Cover, 8), ["159x96", "96x96", "100x100"]);
    assert_eq!(fit("64x64", "64x64", Fit::Cover, 8), ["64x64"; 3]);
    // Contain: one side may be smaller, at the next multiple.
    assert_eq!(fit("100x50", "64x64", Fit::Contain, 8), ["64x32", "64x32", "64x32"]);
    assert_eq!(fit("50x99", "64x64", Fit::Contain, 8), ["32x64", "32x64", "32x64"]);
    assert_eq!(fit("100x70", "64x64", Fit::Contain, 8), ["64x40", "64x40", "64x45"]);
    assert_eq!(fit("100x70", "70x70", Fit::Stretch, 8), ["64x64", "64x64", "70x70"]);
    let largest = size(u32::MAX, u32::MAX);
    for fit in [Fit::Cover, Fit::Contain, Fit::Stretch] {
        for from in [size(1, u32::MAX), size(u32::MAX, 1), largest] {
            drop(Resize { to: Some(largest), fit, exact: false }.fit("a.png", from, 8));
        }
    }
}

#[test]
fn sizes_that_the_model_cannot_have() {
    let own = Resize::default();
    let fails = |resize: Resize, from: Size, words: &[&str]| {
        let text = resize.fit("a.png", from, 8).expect_err("no such size").to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    fails(own, size(1, 1), &["size of a.png", "at least 8 pixels", "found 1x1"]);
    fails(own, size(7, 640), &["found 7x640"]);
    fails(Resize { exact: true, ..own }, size(100, 96), &["size of a.png", "multiples of 8 pixels", "found 100x96"]);
    assert!(Resize { exact: true, ..own }.fit("a.png", size(96, 8), 8).is_ok());
    let to = Resize { to: Some(size(100, 64)), exact: true, fit: Fit::Cover };
    fails(to, size(640, 640), &["--resize of a.png", "found 100x64"]);
    let thin = Resize { to: Some(size(64, 64)), fit: Fit::Contain, exact: false };
    fails(thin, size(1000, 10), &["--resize of a.png", "found 64x1"]);
}

/// Tests that the middle is where `VaeImageProcessor` with `resize_mode="crop"` takes it.
#[test]
fn the_middle_of_a_picture() {
    let levels: Vec<u8> = (0..7 * 5).flat_map(|pixel| [pixel, 100 + pixel, 200]).collect();
    let whole = Picture { size: size(7, 5), levels: Levels::Eight(levels) };
    let Levels::Eight(found) = whole.clone().middle(size(2, 3)).levels else { panic!("8 bits stay") };
    let red: Vec<u8> = found.chunks(3).map(|pixel| pixel[0]).collect();
    assert_eq!(red, [9, 10, 16, 17, 23, 24]);
    assert_eq!(whole.clone().middle(size(7, 5)), whole);
    let rgba = Picture { size: size(3, 1), levels: Levels::Eight((0..12).collect()) }.middle(size(1, 1));
    assert_eq!(rgba.levels, Levels::Eight(vec![4, 5, 6, 7]));
}

/// Temporary folder with files.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

const SIZE: Size = Size { width: 5, height: 3 };

fn png(data: &[u8], color: ExtendedColorType) -> Vec<u8> {
    let mut file = Vec::new();
    PngEncoder::new(&mut file).write_image(data, SIZE.width, SIZE.height, color).unwrap();
    file
}

fn rgb() -> Vec<u8> {
    (0..45).map(|index| index * 5).collect()
}

/// Returns a TIFF header with one entry: the orientation.
fn exif(orientation: u8) -> Vec<u8> {
    let start: &[u8] = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0";
    [start, &[orientation], &[0; 6]].concat()
}

fn jpeg_with_exif(orientation: u8) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut file, 100);
    encoder.set_exif_metadata(exif(orientation)).unwrap();
    encoder.write_image(&rgb(), SIZE.width, SIZE.height, ExtendedColorType::Rgb8).unwrap();
    file
}

fn read(path: &Path) -> (Picture, Vec<Remark>) {
    let file = PictureFile::open(path).unwrap();
    let picture = file.read().unwrap();
    assert_eq!(picture.size, file.size());
    (picture, file.remarks().to_vec())
}

fn with_alpha_of(path: &Path) -> Picture {
    PictureFile::open(path).unwrap().read_with_alpha().unwrap()
}

#[test]
fn every_kind_of_png() {
    let files = Files::new();
    let read = |data: &[u8], color| read(&files.write("a.png", &png(data, color)));
    let eight = |levels: Vec<u8>| Picture { size: SIZE, levels: Levels::Eight(levels) };
    assert_eq!(read(&rgb(), ExtendedColorType::Rgb8), (eight(rgb()), vec![]));

    let with_alpha: Vec<u8> =
        (0_u8..).zip(rgb().chunks(3)).flat_map(|(index, rgb)| [rgb[0], rgb[1], rgb[2], index]).collect();
    assert_eq!(read(&with_alpha, ExtendedColorType::Rgba8), (eight(rgb()), vec![Remark::Alpha]));
    let kept = |data: &[u8], color| with_alpha_of(&files.write("a.png", &png(data, color)));
    assert_eq!(kept(&with_alpha, ExtendedColorType::Rgba8), eight(with_alpha));
    assert_eq!(kept(&rgb(), ExtendedColorType::Rgb8), eight(rgb()));

    let grey: Vec<u8> = (0..15).map(|index| index * 17).collect();
    let thrice = |grey: &[u8]| grey.iter().flat_map(|&level| [level; 3]).collect();
    assert_eq!(read(&grey, ExtendedColorType::L8), (eight(thrice(&grey)), vec![Remark::Grey]));
    let with_alpha: Vec<u8> = grey.iter().flat_map(|&level| [level, 9]).collect();
    assert_eq!(read(&with_alpha, ExtendedColorType::La8), (eight(thrice(&grey)), vec![Remark::Grey, Remark::Alpha]));
    let rgba = grey.iter().flat_map(|&level| [level, level, level, 9]).collect();
    assert_eq!(kept(&with_alpha, ExtendedColorType::La8), eight(rgba));

    let deep: Vec<u16> = (0..45).map(|index| index * 1456).collect();
    let bytes: Vec<u8> = deep.iter().flat_map(|level| level.to_ne_bytes()).collect();
    let sixteen = Picture { size: SIZE, levels: Levels::Sixteen(deep) };
    assert_eq!(read(&bytes, ExtendedColorType::Rgb16), (sixteen, vec![Remark::SixteenBits]));
    let (picture, remarks) = read(&bytes[..30], ExtendedColorType::L16);
    assert!(matches!(picture.levels, Levels::Sixteen(levels) if levels[3..6] == [1456; 3]));
    assert_eq!(remarks, [Remark::Grey, Remark::SixteenBits]);
    let deep: Vec<u16> = (0..60).map(|index| index * 1092).collect();
    let bytes: Vec<u8> = deep.iter().flat_map(|level| level.to_ne_bytes()).collect();
    assert_eq!(kept(&bytes, ExtendedColorType::Rgba16).levels, Levels::Sixteen(deep));
}

/// WebP file of two frames of 2 x 2 pixels, a red and a blue one, as Pillow 13 writes it.
const ANIMATED_WEBP: &str = "524946468400000057454250565038580a00000002000000010000010000414e494d06000000000000000000\
     414e4d4628000000000000000000010000010000640000025650384c0f0000002f014000000710fd8ffe0722a2ff0100\
     414e4d4628000000000000000000010000010000640000005650384c0f0000002f014000000710d1fffe0722a2ff0100";

#[test]
fn an_animation_is_its_first_frame_and_says_so() {
    let files = Files::new();
    let mut animation = Vec::new();
    let mut encoder = png::Encoder::new(&mut animation, SIZE.width, SIZE.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_animated(2, 0).unwrap();
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&rgb()).unwrap();
    writer.write_image_data(&[0; 45]).unwrap();
    writer.finish().unwrap();
    let first = Picture { size: SIZE, levels: Levels::Eight(rgb()) };
    assert_eq!(read(&files.write("a.png", &animation)), (first, vec![Remark::Animated]));

    let digits = ANIMATED_WEBP.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    let webp: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
    let (picture, remarks) = read(&files.write("a.webp", &webp));
    assert_eq!(picture.levels, Levels::Eight([255, 0, 0].repeat(4)));
    assert!(remarks.contains(&Remark::Animated), "{remarks:?}");
}

#[test]
fn webp_and_jpeg_whatever_they_are_called() {
    let files = Files::new();
    let mut webp = Vec::new();
    WebPEncoder::new_lossless(&mut webp).write_image(&rgb(), 5, 3, ExtendedColorType::Rgb8).unwrap();
    let (picture, remarks) = read(&files.write("a.png", &webp));
    assert_eq!((picture.levels, remarks), (Levels::Eight(rgb()), vec![]));
    let rgba: Vec<u8> = (0..60).map(|index| index * 4).collect();
    let mut webp = Vec::new();
    WebPEncoder::new_lossless(&mut webp).write_image(&rgba, 5, 3, ExtendedColorType::Rgba8).unwrap();
    assert_eq!(with_alpha_of(&files.write("a.webp", &webp)).levels, Levels::Eight(rgba));

    let mut jpeg = Vec::new();
    let flat = [200; 45];
    JpegEncoder::new_with_quality(&mut jpeg, 100).write_image(&flat, 5, 3, ExtendedColorType::Rgb8).unwrap();
    let (picture, remarks) = read(&files.write("a", &jpeg));
    assert_eq!(remarks, []);
    assert!(matches!(picture.levels, Levels::Eight(levels) if levels.iter().all(|level| level.abs_diff(200) <= 1)));
    let mut grey = Vec::new();
    JpegEncoder::new_with_quality(&mut grey, 100).write_image(&flat[..15], 5, 3, ExtendedColorType::L8).unwrap();
    assert_eq!(read(&files.write("a", &grey)).1, [Remark::Grey]);
}

/// Tests JPEG files against Pillow's levels. Where colours are halved, both decoders interpolate,
/// and round differently.
#[test]
fn levels_of_a_jpeg_are_near_pillows() {
    let fixture = Fixture::open("jpeg");
    let mut files = 0;
    for file in fixture.names().filter(|name| name.ends_with(".file")) {
        let name = file.trim_end_matches(".file");
        let read = PictureFile::from_bytes(Path::new(name), fixture.bytes(file)).unwrap().read().unwrap();
        let (size, wanted) = fixture.picture(name);
        let Levels::Eight(found) = read.levels else { panic!("8 bits") };
        assert_eq!(read.size, size, "{name}");
        let most = found.iter().zip(&wanted).map(|(found, wanted)| found.abs_diff(*wanted)).max();
        assert!(most <= Some(if name.ends_with("444") { 3 } else { 5 }), "{name}: {most:?}");
        files += 1;
    }
    assert_eq!(files, 12);
}

/// Tests a CMYK file against Pillow's levels: two squares of one colour each.
#[test]
fn cmyk_becomes_rgb_as_by_pillow() {
    let path = repository().join("tests/fixtures/cmyk.jpg");
    let (picture, remarks) = read(&path);
    assert_eq!((picture.size, remarks), (size(16, 8), vec![Remark::Cmyk]));
    let Levels::Eight(levels) = picture.levels else { panic!("8 bits") };
    for (pixel, wanted) in [(3 * 16 + 3, [245, 122, 0]), (3 * 16 + 12, [42, 172, 195])] {
        let found = &levels[pixel * 3..][..3];
        assert!(
            found.iter().zip(wanted).all(|(found, wanted)| found.abs_diff(wanted) <= 1),
            "{found:?}, not {wanted:?}"
        );
    }
}

/// Tests a picture `ABCDE` over two more rows: the position of its first row for each of EXIF's
/// numbers.
#[test]
fn orientations_of_exif_are_undone() {
    let files = Files::new();
    let upright = match read(&files.write("a.jpg", &jpeg_with_exif(1))) {
        (Picture { levels: Levels::Eight(levels), .. }, remarks) if remarks.is_empty() => levels,
        other => panic!("{other:?}"),
    };
    let stored = |column: u32, row: u32| &upright[(row * 5 + column) as usize * 3..][..3];
    for number in 2..=8 {
        let (picture, remarks) = read(&files.write("a.jpg", &jpeg_with_exif(number)));
        assert_eq!(remarks, [Remark::Orientation(number)]);
        assert_eq!(picture.size, if number < 5 { size(5, 3) } else { size(3, 5) }, "{number}");
        let Levels::Eight(levels) = &picture.levels else { panic!("8 bits") };
        for row in 0..picture.size.height {
            for column in 0..picture.size.width {
                // By the standard: the row and column of the stored picture for each side.
                let from = match number {
                    2 => (4 - column, row),
                    3 => (4 - column, 2 - row),
                    4 => (column, 2 - row),
                    5 => (row, column),
                    6 => (row, 2 - column),
                    7 => (4 - row, 2 - column),
                    _ => (4 - row, column),
                };
                let found = &levels[(row * picture.size.width + column) as usize * 3..][..3];
                assert_eq!(found, stored(from.0, from.1), "{number}: {column}, {row}");
            }
        }
    }
    // Orientation 9 is undefined.
    assert_eq!(read(&files.write("a.jpg", &jpeg_with_exif(9))).1, []);
}

/// Returns a PNG file. `early` adds chunks before the pixels, `late` after them.
fn png_with(
    early: impl Fn(&mut png::Encoder<'_, &mut Vec<u8>>),
    late: impl Fn(&mut png::Writer<&mut Vec<u8>>),
) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIZE.width, SIZE.height);
    encoder.set_color(png::ColorType::Rgb);
    early(&mut encoder);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&rgb()).unwrap();
    late(&mut writer);
    drop(writer);
    file
}

/// Tests the other places where Pillow finds an orientation.
#[test]
fn orientations_are_found_where_pillow_finds_them() {
    let files = Files::new();
    let digits: String = exif(6).iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, second) = digits.split_at(20);
    let raw = format!("\nexif\n      {}\n{first}\n{second}\n", digits.len() / 2);
    let xmp = |orientation: &str| format!("<x:xmpmeta><rdf:Description {orientation}</x:xmpmeta>");
    let (attribute, element) = (xmp("tiff:Orientation=\"8\"/>"), xmp("><tiff:Orientation>3</tiff:Orientation>"));
    let pngs = [
        (6, png_with(|_| {}, |writer| writer.write_chunk(png::chunk::ChunkType(*b"eXIf"), &exif(6)).unwrap())),
        (6, png_with(|png| png.add_ztxt_chunk("Raw profile type exif".into(), raw.clone()).unwrap(), |_| {})),
        (6, png_with(|png| png.add_text_chunk("Raw profile type exif".into(), raw.clone()).unwrap(), |_| {})),
        (8, png_with(|png| png.add_itxt_chunk("XML:com.adobe.xmp".into(), attribute.clone()).unwrap(), |_| {})),
        (3, png_with(|png| png.add_itxt_chunk("XML:com.adobe.xmp".into(), element.clone()).unwrap(), |_| {})),
    ];
    for (number, file) in pngs {
        let (picture, remarks) = read(&files.write("a.png", &file));
        assert_eq!(remarks, [Remark::Orientation(number)]);
        assert_eq!(picture.size, if number < 5 { size(5, 3) } else { size(3, 5) }, "{number}");
    }
    let segment = [b"http://ns.adobe.com/xap/1.0/\0", attribute.as_bytes()].concat();
    let length = u16::try_from(segment.len() + 2).unwrap().to_be_bytes();
    // EXIF data comes first, even if its orientation is undefined.
    for number in [0, 1, 9] {
        let jpeg = jpeg_with_exif(number);
        let with_xmp = [&jpeg[..2], b"\xff\xe1", &length, &segment, &jpeg[2..]].concat();
        assert_eq!(read(&files.write("a.jpg", &with_xmp)).1, [], "{number}");
    }
    let untagged = exif(6).into_iter().enumerate().map(|(at, byte)| if at == 11 { 0 } else { byte });
    let (untagged, xmp): (Vec<u8>, _) = (untagged.collect(), attribute.clone());
    let png = png_with(
        |png| png.add_itxt_chunk("XML:com.adobe.xmp".into(), xmp.clone()).unwrap(),
        |writer| writer.write_chunk(png::chunk::ChunkType(*b"eXIf"), &untagged).unwrap(),
    );
    assert_eq!(read(&files.write("a.png", &png)).1, [Remark::Orientation(8)]);
    let mut plain = Vec::new();
    JpegEncoder::new_with_quality(&mut plain, 100).write_image(&rgb(), 5, 3, ExtendedColorType::Rgb8).unwrap();
    let with_xmp = [&plain[..2], b"\xff\xe1", &length, &segment, &plain[2..]].concat();
    assert_eq!(read(&files.write("a.jpg", &with_xmp)).1, [Remark::Orientation(8)]);
    let mut webp = Vec::new();
    let mut encoder = WebPEncoder::new_lossless(&mut webp);
    encoder.set_exif_metadata([b"Exif\0\0", &exif(6)[..]].concat()).unwrap();
    encoder.write_image(&rgb(), 5, 3, ExtendedColorType::Rgb8).unwrap();
    assert_eq!(read(&files.write("a.webp", &webp)).1, [Remark::Orientation(6)]);
}

/// Tests PNG files that are odd after their pixels, or have much metadata.
#[test]
fn odd_ends_of_png_files_keep_their_orientation() {
    let files = Files::new();
    let turned = |name: &str, file: &[u8]| {
        let remarks = PictureFile::open(&files.write("a.png", file)).unwrap().remarks().to_vec();
        assert_eq!(remarks, [Remark::Orientation(6)], "{name}");
    };
    let chunk = |kind: &[u8; 4], data: &[u8], writer: &mut png::Writer<&mut Vec<u8>>| {
        writer.write_chunk(png::chunk::ChunkType(*kind), data).unwrap();
    };
    let late = png_with(|_| {}, |writer| chunk(b"eXIf", &exif(6), writer));
    turned("bytes after the end", &[&late[..], &[0xff; 40]].concat());
    turned("another file after the end", &[&late[..], &png(&rgb(), ExtendedColorType::Rgb8)].concat());
    let text = "a".repeat(65 << 20);
    let long = png_with(
        |png| png.add_text_chunk("Comment".into(), text.clone()).unwrap(),
        |writer| chunk(b"eXIf", &exif(6), writer),
    );
    turned("more than 64 MiB of text", &long);
    // A chunk of an unknown kind ends the search, so only metadata before the pixels count.
    let odd = png_with(
        |_| {},
        |writer| {
            chunk(b"eXIf", &exif(6), writer);
            chunk(b"ABCD", &[], writer);
        },
    );
    // The last chunks have 12 bytes each, and the header has 33.
    let (rest, end) = odd.split_at(odd.len() - 24);
    let (pixels, turning) = rest.split_at(rest.len() - 12 - exif(6).len());
    let moved = [&pixels[..33], turning, &pixels[33..], end].concat();
    turned("a chunk of an unknown kind", &moved);
}

/// Tests that three components beside a JFIF marker are luma and chroma, as for libjpeg, even if
/// Adobe's marker says RGB.
#[test]
fn jfif_counts_more_than_adobe() {
    let files = Files::new();
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, 100).write_image(&rgb(), 5, 3, ExtendedColorType::Rgb8).unwrap();
    let expected = read(&files.write("a.jpg", &jpeg)).0;
    // The marker of JFIF has 18 bytes.
    let (start, rest) = jpeg.split_at(20);
    assert!(start.ends_with(b"\0\0") && start[6..].starts_with(b"JFIF") && rest.starts_with(b"\xff"), "{start:x?}");
    let adobe: &[u8] = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0";
    let file = [start, adobe, rest].concat();
    assert_eq!(read(&files.write("b.jpg", &file)).0, expected);
    let in_memory = PictureFile::from_bytes(Path::new("b.jpg"), file).unwrap();
    assert_eq!(in_memory.read().unwrap(), expected);
    // Without JFIF, Adobe's marker counts.
    let alone = [&jpeg[..2], adobe, rest].concat();
    assert_ne!(read(&files.write("c.jpg", &alone)).0, expected);
}

#[track_caller]
fn refused(path: &Path, words: &[&str]) {
    let read = PictureFile::open(path).and_then(|file| file.read());
    let text = read.expect_err("not a picture").to_string();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(text.contains(name) && words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn pictures_cut_anywhere_are_errors() {
    let files = Files::new();
    let mut webp = Vec::new();
    WebPEncoder::new_lossless(&mut webp).write_image(&rgb(), 5, 3, ExtendedColorType::Rgb8).unwrap();
    for whole in [png(&rgb(), ExtendedColorType::Rgb8), jpeg_with_exif(6), webp] {
        for length in 0..whole.len() {
            let path = files.write("cut", &whole[..length]);
            let read = PictureFile::open(&path).and_then(|file| file.read());
            // A PNG's end marker and checksums may be missing.
            if let Ok(read) = read {
                assert!(whole.starts_with(b"\x89PNG") && length + 16 >= whole.len(), "{length} of {}", whole.len());
                assert_eq!(read.levels, Levels::Eight(rgb()));
            }
        }
    }
}

#[test]
fn what_is_no_picture_is_an_error() {
    let files = Files::new();
    refused(&files.0.path().join("missing.png"), &["No such file"]);
    refused(&files.write("empty.png", b""), &["PNG, JPEG or WebP"]);
    refused(&files.write("a.gif", b"GIF89a\x01\0\x01\0\0\0\0;"), &["PNG, JPEG or WebP"]);
    refused(&files.write("text.png", b"not a picture at all"), &["PNG, JPEG or WebP"]);
    assert!(!PictureFile::is_picture(&files.write("a.npy", b"\x93NUMPY")).unwrap());
    assert!(PictureFile::is_picture(&files.write("a.npy", &png(&rgb(), ExtendedColorType::Rgb8))).unwrap());
    refused(files.0.path(), &[]);
}

#[test]
fn absurd_sizes_are_refused_before_memory_is_taken() {
    let files = Files::new();
    crate::allowance::within(1 << 20, "a header", || {
        refused(&files.write("a.png", &png_header(65_536, 65_536)), &["1 to 1073741824 pixels", "65536x65536"]);
        refused(&files.write("a.png", &png_header(i32::MAX as u32, 1)), &["exceed the decoder's limits"]);
        refused(&files.write("a.png", &png_header(0, 5)), &[]);
    });
    // Height and width, two bytes each, after the marker, the length and the precision.
    let mut jpeg = jpeg_with_exif(1);
    let frame = jpeg.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0x75, 0x30, 0x75, 0x30]);
    let path = files.write("a.jpg", &jpeg);
    crate::allowance::within(1 << 20, "a JPEG file", || refused(&path, &["cut short"]));
    // Memory is allocated for at most the pixels that the file could have, and only if there are
    // any.
    refused(&files.write("a.png", &png_header(16_384, 16_384)), &["cut short"]);
}

/// Tests that a damaged file gives a picture or an error.
#[test]
fn damaged_pictures_are_pictures_or_errors() {
    let files = Files::new();
    let mut webp = Vec::new();
    WebPEncoder::new_lossless(&mut webp).write_image(&rgb(), 5, 3, ExtendedColorType::Rgb8).unwrap();
    let mut state = 1_u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    for whole in [png(&rgb(), ExtendedColorType::Rgb8), jpeg_with_exif(6), webp] {
        let mut read = 0;
        for _ in 0..400 {
            let mut damaged = whole.clone();
            for _ in 0..=random(3) {
                damaged[random(whole.len())] = u8::try_from(random(256)).unwrap();
            }
            let path = files.write("damaged", &damaged);
            read += usize::from(PictureFile::open(&path).and_then(|file| file.read()).is_ok());
        }
        assert!(read < 400);
    }
}
