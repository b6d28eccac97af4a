//! Names of clips, and options for them.

use std::path::Path;

use proptest::prelude::*;
use wgvae::internals::clips::is_clip;
use wgvae_media::clip_files::{Bits, ClipName, Codec, Fps, Pattern};

use super::{assert_says, folder};

#[test]
fn patterns_are_those_of_printf() {
    let cases = [
        ("frames/%05d.png", 7, "frames/00007.png"),
        ("%d.png", 12, "12.png"),
        ("a-%03d-b.webp", 1234, "a-1234-b.webp"),
        ("100%% %02d.jpg", 3, "100% 03.jpg"),
        ("%02d%%.png", 3, "03%.png"),
        ("50%/%02d.png", 3, "50%/03.png"),
    ];
    for (text, number, file) in cases {
        let path = Path::new(text);
        assert!(Pattern::is_meant(path), "{text}");
        assert_eq!(Pattern::new(path).expect(text).file(number), Path::new(file), "{text}");
    }
    let wrong = [
        "a.png",
        "%5d.png",
        "%-5d.png",
        "%05i.png",
        "%d-%d.png",
        "%0d.png",
        "%099d.png",
        "%0+5d.png",
        "a%",
        "%05d/a.png",
    ];
    for text in wrong {
        assert_says(Pattern::new(Path::new(text)), &[text, "one %d, or %05d"]);
    }
    for text in ["a.png", "100%.png", "%s.png", "a%%.png", "%05d/a.png"] {
        assert!(!Pattern::is_meant(Path::new(text)), "{text}");
    }
}

#[test]
fn files_of_a_pattern_are_found_and_none_may_be_missing() {
    let (_folder, path) = folder();
    let pattern = Pattern::new(&path("%03d.png")).unwrap();
    assert_eq!(pattern.find().unwrap(), None);
    assert_says(pattern.find_all(), &["%03d.png", "at least one", "none"]);
    let others = ["1.png", "0001.png", "00x.png", "001.jpg", "+01.png", ".png", "099999999999999999999999.png"];
    for name in others.into_iter().chain(["007.png", "008.png", "009.png"]) {
        std::fs::write(path(name), b"").unwrap();
    }
    let found = pattern.find_all().unwrap();
    assert_eq!((found.first, found.last, found.count), (7, 9, 3));
    std::fs::write(path("1000.png"), b"").unwrap();
    assert_says(pattern.find_all(), &["every number from 7 to 1000", "no ", "010.png"]);
    assert_says(Pattern::new(&path("none/%d.png")).unwrap().find(), &["none"]);
}

#[test]
fn names_say_what_a_clip_is_in() {
    let of = |name: &str| ClipName::of(Path::new(name)).unwrap();
    assert_eq!(of("-"), Some(ClipName::Standard));
    assert!(matches!(of("a/%d.png"), Some(ClipName::Pictures(_))));
    assert!(matches!(of("a.Y4M"), Some(ClipName::Y4m(_))));
    assert!(matches!(of("a.npy"), Some(ClipName::Array(_))));
    for name in ["a.mp4", "a.WEBM", "a.mov", "a.gif", "a.mkv"] {
        assert!(of(name).unwrap().is_only_clip() && matches!(of(name), Some(ClipName::Video(_))), "{name}");
    }
    assert!(!of("a.safetensors").unwrap().is_only_clip());
    for name in ["a.png", "a.jpg", "100%.png", "a", "", "a.txt"] {
        assert_eq!(of(name), None, "{name}");
        assert_says(ClipName::expect(Path::new(name), "--output"), &["--output", "%05d.png", ".y4m"]);
    }
    assert_says(ClipName::of(Path::new("%d-%d.png")), &["two of them"]);
}

#[test]
fn images_stay_images() {
    for shape in [
        vec![4, 64, 64],
        vec![1, 4, 64, 64],
        vec![16, 5, 8, 8],
        vec![1, 16, 1, 8, 8],
        vec![3, 16, 1, 8, 8],
        vec![1, 16, 0, 8, 8],
    ] {
        assert!(!is_clip(&shape), "{shape:?}");
    }
    assert!(is_clip(&[1, 16, 2, 8, 8]));
}

#[test]
fn frames_a_second_are_a_fraction() {
    let cases = [("24", 24, 1), ("29.97", 2997, 100), ("30000/1001", 30000, 1001), ("0.5", 5, 10), ("24.", 24, 1)];
    for (text, frames, seconds) in cases {
        assert_eq!(text.parse(), Ok(Fps { frames, seconds }), "{text}");
    }
    for text in
        ["", "0", "24/0", "0/1", "-24", "+24", "1e3", "24/1/1", "a", "99999999999", "24.0000000000001", "nan", " 24"]
    {
        assert!(text.parse::<Fps>().is_err(), "{text}");
    }
    assert_eq!(Fps::default().to_string(), "24/1");
    assert_eq!("10".parse(), Ok(Bits::Ten));
    assert!("9".parse::<Bits>().is_err());
}

#[test]
fn codecs_have_the_bits_that_they_have() {
    let of = |name: &str, bits| Codec::of(Path::new(name), bits);
    for (name, bits) in [("a.mp4", None), ("a.webm", Some(Bits::Twelve)), ("a.mov", Some(Bits::Ten)), ("a.GIF", None)] {
        of(name, bits).expect(name);
    }
    assert_ne!(of("a.mp4", None).unwrap(), of("a.mp4", Some(Bits::Ten)).unwrap());
    assert_says(of("a.gif", Some(Bits::Ten)), &["--bits", "8 for a.gif", "10"]);
    assert_says(of("a.mov", Some(Bits::Eight)), &["--bits", "10 for a.mov"]);
    assert_says(of("a.mkv", None), &["a.mkv", "one of mp4, webm, mov, gif"]);
}

proptest! {
    #[test]
    fn a_pattern_knows_its_own_files(number in any::<u64>(), digits in 1_usize..12) {
        let (_folder, path) = folder();
        let pattern = Pattern::new(&path(&format!("a%0{digits}d.b"))).unwrap();
        std::fs::write(pattern.file(number), b"").unwrap();
        let found = pattern.find_all().unwrap();
        prop_assert_eq!((found.first, found.last, found.count), (number, number, 1));
    }

    #[test]
    fn any_text_is_a_name_or_an_error(text in "[%0-9d.+a/-]{0,12}") {
        if let Ok(pattern) = Pattern::new(Path::new(&text)) {
            let _ = pattern.file(3);
        }
        let _ = ClipName::of(Path::new(&text));
        let _ = text.parse::<Fps>();
    }
}
