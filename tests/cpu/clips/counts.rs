//! Counts of frames and latents, and padding at the end.

use wgvae::config::Family;
use wgvae::internals::clips::TimeFactor;
use wgvae_media::clip_files::{FrameSource as _, Pad, Padded, PlanarFrame};

use super::{Frames, assert_says, frame, size, take_all};

const FOUR: TimeFactor = TimeFactor::FOUR;

#[test]
fn the_first_latent_is_a_frame_and_each_later_one_four() {
    let cases = [(1, 1), (2, 5), (3, 9), (21, 81), (31, 121)];
    for (latents, frames) in cases {
        assert_eq!(FOUR.frames(latents), Some(frames));
        assert_eq!(FOUR.latents(frames), Some(latents));
        assert_eq!(FOUR.missing(frames), 0);
    }
    let missing: Vec<u64> = (0..10).map(|frames| FOUR.missing(frames)).collect();
    assert_eq!(missing, [1, 0, 3, 2, 1, 0, 3, 2, 1, 0]);
    for frames in [0, 2, 3, 4, 6] {
        assert_eq!(FOUR.latents(frames), None);
    }
    assert_eq!(FOUR.frames(0), None);
    assert_eq!(FOUR.frames(u64::MAX), None);
    assert_eq!(FOUR.missing(u64::MAX), 2, "2^64 - 1 is 4n + 3");
    assert_eq!(TimeFactor::new(0), None);
    let images = TimeFactor::new(1).unwrap();
    assert_eq!((images.frames(7), images.missing(7)), (Some(7), 0));
}

/// Tests that TAEHV takes any number of frames, and gives one of the first latent all the same.
#[test]
fn a_last_part_that_is_filled_up_takes_any_number_of_frames() {
    let factor = TimeFactor::of(&Family::find("taew2_1").unwrap().config()).unwrap();
    let latents: Vec<_> = (0..10).map(|frames| factor.latents(frames)).collect();
    assert_eq!(latents, [None, Some(1), Some(1), Some(1), Some(1), Some(2), Some(2), Some(2), Some(2), Some(3)]);
    assert_eq!((factor.frames(3), factor.missing(6), factor.missing(0)), (Some(9), 0, 1));
    assert_eq!(TimeFactor::of(&Family::find("wan21").unwrap().config()), Some(FOUR));
    assert_eq!(TimeFactor::of(&Family::find("sd15").unwrap().config()), None);
}

/// Tests that taecvx drops no frame of an even number of latents, and that taeh3 has chunks of five
/// latents, which are 17 frames.
#[test]
fn other_starts_give_other_numbers_of_frames() {
    let of = |family| TimeFactor::of(&Family::find(family).unwrap().config()).unwrap();
    let cogvideox = of("taecvx");
    let frames: Vec<_> = (0..6).map(|latents| cogvideox.frames(latents)).collect();
    assert_eq!(frames, [None, Some(1), Some(8), Some(9), Some(16), Some(17)]);
    assert_eq!((cogvideox.latents(49), cogvideox.decoded(5), cogvideox.missing(5)), (Some(13), Some(8), 0));
    let decodes = cogvideox.of_decodes();
    assert_eq!([9, 16, 5, 12].map(|frames| decodes.latents(frames)), [Some(3), Some(4), None, None]);
    assert_eq!([0, 1, 2, 8, 10].map(|frames| decodes.missing(frames)), [1, 0, 6, 0, 6]);
    let h3 = of("taeh3");
    let frames: Vec<_> = (1..13).map(|latents| h3.frames(latents)).collect();
    let (some, none) = ([5, 22, 39].map(Some), None);
    assert_eq!(frames, [none, some[0], none, none, none, none, some[1], none, none, none, none, some[2]]);
    assert_eq!([1, 5, 22, 39].map(|frames| h3.latents(frames)), [None, Some(2), Some(7), Some(12)]);
    assert_eq!([0, 1, 5, 6, 17, 22, 23].map(|frames| h3.missing(frames)), [5, 4, 0, 16, 5, 0, 16]);
}

/// Returns the numbers of the frames after padding `count` frames.
fn padded(count: u64, pad: Pad, is_known: bool) -> (Vec<u64>, Padded) {
    let mut source = Padded::new(Box::new(Frames::new(count, is_known)), FOUR, Some(pad)).unwrap();
    let frames = take_all(&mut source).unwrap();
    assert_eq!(source.next().unwrap(), None, "the end stays the end");
    let number = |found: &PlanarFrame| (0..count).find(|&number| frame(size(2, 1), number) == *found).unwrap();
    (frames.iter().map(number).collect(), source)
}

/// Tests padding against values worked out by hand from `pad_video_temporal` of numz' node, and
/// from `ByteDance`'s `torch.cat([video, last.repeat(...)])`.
#[test]
fn frames_are_repeated_or_mirrored() {
    for is_known in [true, false] {
        let frames = |count, pad| padded(count, pad, is_known).0;
        assert_eq!(frames(5, Pad::Repeat), [0, 1, 2, 3, 4]);
        assert_eq!(frames(6, Pad::Repeat), [0, 1, 2, 3, 4, 5, 5, 5, 5]);
        assert_eq!(frames(8, Pad::Repeat), [0, 1, 2, 3, 4, 5, 6, 7, 7]);
        assert_eq!(frames(6, Pad::Mirror), [0, 1, 2, 3, 4, 5, 4, 3, 2]);
        assert_eq!(frames(8, Pad::Mirror), [0, 1, 2, 3, 4, 5, 6, 7, 6]);
        assert_eq!(frames(3, Pad::Mirror), [0, 1, 2, 1, 0]);
        assert_eq!(frames(2, Pad::Mirror), [0, 1, 1, 1, 1], "too few to mirror");
        assert_eq!(frames(1, Pad::Mirror), [0]);
    }
}

#[test]
fn what_is_added_is_said() {
    for is_known in [true, false] {
        let (_, source) = padded(6, Pad::Mirror, is_known);
        assert_eq!(source.added(), 3);
        let text = source.remark().unwrap();
        assert!(
            text.contains("6 frames, and 3 added") && text.contains("backwards") && text.contains("cut 3"),
            "{text}"
        );
        assert_eq!(padded(5, Pad::Mirror, is_known).1.remark(), None);
        assert!(padded(2, Pad::Mirror, is_known).1.remark().unwrap().contains("the last one again"));
    }
    let source = Padded::new(Box::new(Frames::new(6, true)), FOUR, Some(Pad::Repeat)).unwrap();
    assert_eq!((source.frames(), source.added()), (Some(9), 3), "known beforehand");
}

#[test]
fn counts_that_do_not_fit_are_errors_without_padding() {
    let parts = ["frames of frames", "such as 9", "--pad repeat or mirror adds 3", "found 6"];
    assert_says(Padded::new(Box::new(Frames::new(6, true)), FOUR, None), &parts);
    let mut pipe = Padded::new(Box::new(Frames::new(6, false)), FOUR, None).unwrap();
    assert_says(take_all(&mut pipe), &parts);
    for pad in [None, Some(Pad::Repeat), Some(Pad::Mirror)] {
        assert_says(Padded::new(Box::new(Frames::new(0, true)), FOUR, pad), &["at least one", "none"]);
        let mut empty = Padded::new(Box::new(Frames::new(0, false)), FOUR, pad).unwrap();
        assert_says(take_all(&mut empty), &["at least one", "none"]);
    }
    let mut fits = Padded::new(Box::new(Frames::new(5, false)), FOUR, None).unwrap();
    assert_eq!(take_all(&mut fits).unwrap().len(), 5);
}
