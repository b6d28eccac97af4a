//! Clips that cannot be decoded or encoded: the error comes before a GPU is opened and names the
//! cause, and no file is written.

use test_kit::formula;
use wgvae::HostTensor;
use wgvae::internals::npy::write_npy;

use super::long;
use crate::tool::Folder;

/// Runs the command without an adapter: it must fail with `words` before it opens one.
#[track_caller]
fn refuse(folder: &Folder, what: &str, args: &[&str], words: &[&str]) {
    let (before, frames) = (folder.names(), folder.frames());
    folder.run_without_adapter(args).failed(what, 1, words);
    assert_eq!((folder.names(), folder.frames()), (before, frames), "{what}: files changed");
}

#[test]
fn arguments_of_a_decode() {
    let folder = Folder::for_video();
    let refused = |more: &[&str], words: &[&str]| {
        refuse(&folder, &format!("{more:?}"), &Folder::decoding(more), words);
    };
    refused(&["-o", "out.png"], &["--output", "a clip: numbered pictures (frames/%05d.png)", "found out.png"]);
    refused(&["-o", "out.avi"], &["out.avi", "mp4, webm, mov, gif"]);
    refused(&["-o", "missing/%05d.png"], &["missing/00001.png", "expected an existing folder missing, found none"]);
    refused(&["-o", "frames/%05d.bmp"], &["frames/%05d.bmp", "png"]);
    refused(&["-o", "frames/%5d.png"], &["frames/%5d.png", "%05d for five digits"]);
    refused(&["-o", "missing/out.y4m"], &["missing/out.y4m", "expected an existing folder missing, found none"]);
    refused(&["-o", "out.y4m", "--tiling", "estimate"], &["--tiling", "exact, blend or cosine for a clip", "estimate"]);
    refused(&["-o", "out.y4m", "--tiling", "blend", "--tile-size", "12"], &["--tile-size", "a multiple of 8 pixels"]);
    refused(&["-o", "out.y4m", "--tile-size", "64"], &["--tile-size"]);
    refused(&["-o", "out.y4m", "--repeat", "3"], &["--repeat", "1 for a clip", "found 3"]);
    refused(&["-o", "frames/%d.png", "--bit-depth", "16"], &["--bit-depth", "images", "a clip (--bits is for clips)"]);
    refused(&["-o", "frames/%d.png", "--bits", "10"], &["--bits", "pictures have 8 bits", "found 10"]);
    refused(&["-o", "frames/%d.png", "--fps", "16"], &["--fps", "y4m or a video", "found 16/1"]);
    refused(&["-o", "out.npy", "--fps", "16"], &["--fps", "arrays have no frames per second"]);
    refused(&["-o", "out%%05d.y4m.x"], &["--output", "a clip: numbered pictures", "found out%%05d.y4m.x"]);
    refused(&["-o", "out.mov", "--bits", "8"], &["--bits", "10 for out.mov", "found 8"]);
    refused(&["-o", "clip.npy"], &["--output", "a different file than --latents names", "clip.npy"]);
    refused(&["-o", "out.y4m", "--report", "out.y4m"], &["--report", "--output"]);
    refused(&["-o", "frames/%d.png", "--report", "frames/1.png"], &["--report", "--output"]);
    refused(&["-o", "out.y4m", "--tensor", "z"], &["--tensor", ".npy file has one array"]);
    for more in [["-o", "out.y4m", "--bits", "9"], ["-o", "out.y4m", "--fps", "-3"], ["-o", "out.y4m", "--fps", "0"]] {
        assert_eq!(folder.run_without_adapter(&Folder::decoding(&more)).code, Some(2), "{more:?}");
    }
}

#[test]
fn latents_that_are_no_clip() {
    let folder = Folder::for_video();
    let decoding = Folder::decoding(&["-o", "out.y4m"]);
    let refused = |shape: &[usize], words: &[&str]| {
        folder.write_clip(&formula::latents(shape));
        refuse(&folder, &format!("{shape:?}"), &decoding, &[&["clip.npy"], words].concat());
    };
    refused(&[1, 8, 3, 3, 5], &["a clip [1, 16, t, h, w] or [16, t, h, w]", "8 channels, 3 frames of 5x3"]);
    refused(&[1, 16, 3, 5], &["a clip [1, 16, t, h, w]", "1 channels, 16 frames of 5x3"]);
    refused(&[2, 16, 3, 3, 5], &["a clip [1, c, t, h, w]", "[2, 16, 3, 3, 5]"]);
    refused(&[1, 16, 0, 3, 5], &["no axis of extent 0"]);
    refused(&[16, 3], &["a clip", "[16, 3]"]);
    // Values of frames are known only when they are read.
    let mut latents = long(3);
    latents.data[7] = f32::NAN;
    folder.write_clip(&latents);
    let before = folder.names();
    folder.decode_clip(&["-o", "out.y4m"]).failed("NaN", 1, &["clip.npy", "finite values", "NaN at element 7"]);
    assert_eq!(folder.names(), before);
}

#[test]
fn clips_that_cannot_be_encoded() {
    let folder = Folder::for_video();
    let refused = |image: &str, more: &[&str], words: &[&str]| {
        let args = Folder::encoding(image, &[&["-o", "out.npy"], more].concat());
        refuse(&folder, &format!("{image} {more:?}"), &args, words);
    };
    refused("frames/%05d.png", &[], &["frames/%05d.png", "at least one such file", "none"]);
    refused("frames/%x%d.png", &[], &["frames/%x%d.png", "one %d"]);
    refused("missing.y4m", &[], &["missing.y4m", "No such file"]);
    refused("missing.mp4", &[], &["missing.mp4", "No such file"]);
    refused("pixels.npy", &["--resize", "32x32"], &["--resize", "pictures by themselves", "pixels.npy"]);
    refused("pixels.npy", &["--repeat", "2"], &["--repeat", "1 for a clip"]);
    refused("pixels.npy", &["--exact-size"], &["pixels.npy", "multiples of 8 pixels", "47x31"]);
    refused("clip.npy", &[], &["clip.npy", "a clip [1, 3, t, h, w]", "[1, 16, 5, 3, 5]"]);

    for (number, width) in [(1, 16), (2, 16), (3, 24)] {
        folder.write(&format!("frames/{number}.png"), &gray(width, 16));
    }
    refused("frames/%d.png", &[], &["frames/%d.png", "--pad repeat or mirror adds 2", "found 3"]);
    folder.write("y4m.y4m", b"YUV4MPEG2 W8 H8 F24:1 C420p16\n");
    refused("y4m.y4m", &[], &["colour space of y4m.y4m", "444p10", "\"420p16\""]);
    folder.write("y4m.y4m", b"RIFF");
    refused("y4m.y4m", &[], &["y4m.y4m", "not a y4m file"]);
    folder.write("y4m.y4m", b"YUV4MPEG2 W8 H8 F24:1 C444\n");
    refused("y4m.y4m", &[], &["y4m.y4m", "at least one", "none"]);
    folder.write("y4m.y4m", b"YUV4MPEG2 W8 H7 F24:1 Cmono\nFRAME\n");
    refused("y4m.y4m", &[], &["size of y4m.y4m", "at least 8 pixels", "8x7"]);
    let two = Folder::encoding("pixels.npy", &["--image", "frames/1.png", "-o", "out.npy"]);
    refuse(&folder, "two", &two, &["--image", "one clip, or images", "pixels.npy and 1 more"]);
    let image = Folder::encoding("frames/1.png", &["--pad", "mirror", "-o", "out.npy"]);
    refuse(&folder, "an image", &image, &["--pad", "a clip"]);
    let image = Folder::encoding("frames/1.png", &["--clip-latents", "5", "-o", "out.npy"]);
    refuse(&folder, "an image", &image, &["--clip-latents", "a clip as the input", "images"]);
    refused("pixels.npy", &["--each"], &["--each", "images as the input", "a clip"]);
    refused("frames/1.png", &["--tensor", "x"], &["--tensor", "a .safetensors file", "\"x\" with frames/1.png"]);
    let picture = Folder::encoding("pixels.npy", &["-o", "out.png"]);
    refuse(&folder, "a picture", &picture, &["out.png", "safetensors, npy", "\"png\""]);
    let over = Folder::encoding("pixels.npy", &["-o", "pixels.npy"]);
    refuse(&folder, "over the frames", &over, &["--output", "a different file than --image names"]);

    // Errors that are found when the input is read.
    let fails = |image: &str, more: &[&str], words: &[&str]| {
        let before = folder.names();
        folder.run(&Folder::encoding(image, &[&["-o", "out.npy"], more].concat())).failed(image, 1, words);
        assert_eq!(folder.names(), before, "{image}: files changed");
    };
    fails("frames/%d.png", &["--pad", "repeat"], &["frames/3.png", "16x16, as the first frame", "24x16"]);
    folder.write("y4m.y4m", &[&b"YUV4MPEG2 W8 H8 F24:1 Cmono\nFRAME\n"[..], &[7; 64], b"FRAME\n", &[7; 63]].concat());
    fails("y4m.y4m", &["--pad", "repeat"], &["y4m.y4m", "cut short within frame 2"]);
    std::fs::remove_file(folder.path("frames/2.png")).unwrap();
    refused("frames/%d.png", &[], &["frames/%d.png", "every number from 1 to 3", "no frames/2.png"]);
}

/// Encodes a grey picture as PNG.
fn gray(width: u32, height: u32) -> Vec<u8> {
    crate::encode::png(&vec![99; width as usize * height as usize], width, height, image::ExtendedColorType::L8)
}

/// Tests that a model for images makes no clips, and that images have neither a frame rate nor
/// bits.
#[test]
fn models_and_options_of_images() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("frames")).unwrap();
    folder.write_clip(&formula::latents(&[1, 8, 3, 9, 10]));
    // Each frame is an image by itself.
    folder.decode_clip(&["-o", "out-of-clip.npy"]).ok();
    assert_eq!(folder.npy("out-of-clip.npy").shape, [3, 3, 18, 20]);
    let decode = |latents: &str, more: &[&str], words: &[&str]| {
        let args = [&["decode", "--model", "model", "--latents", latents], more].concat();
        refuse(&folder, &format!("{more:?}"), &args, words);
    };
    decode("clip.npy", &["-o", "out.y4m"], &["out.y4m", "not for video"]);
    decode("latents.safetensors", &["-o", "frames/%05d.png"], &["frames/%05d.png", "not for video"]);
    decode("latents.safetensors", &["-o", "out.npy", "--fps", "24"], &["--fps", "latents of a clip", "24/1"]);
    decode("latents.safetensors", &["-o", "out.png", "--bits", "10"], &["--bits", "latents of a clip", "10"]);

    folder.write("clip.gif", b"GIF89a");
    let encode = ["encode", "--model", "model", "--image", "clip.gif", "-o", "out.npy"];
    refuse(&folder, "a clip to encode", &encode, &["clip.gif", "PNG, JPEG or WebP", "not for video"]);

    // A model for images of a network for video: it lacks the weights for time.
    let folder = Folder::for_video();
    let one = HostTensor { shape: vec![1, 16, 2, 1, 1], data: vec![0.0; 32] };
    folder.write("clip.npy", &write_npy(&one));
    let name = folder.without_time();
    let words = ["missing tensor", name.as_str()];
    refuse(&folder, "no weights of time", &Folder::decoding(&["-o", "out.y4m"]), &words);
}
