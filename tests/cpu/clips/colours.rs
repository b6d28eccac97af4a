//! BT.709 colours, against the levels of its colour bars in handbooks, and against its formula in
//! f64.

use proptest::prelude::*;
use wgvae_media::clip_files::Bits;
use wgvae_media::clip_files::bt709::Quantiser;

/// Colour bars: R'G'B', and Y', Cb, Cr in 8 and in 10 bits.
const BARS: [([f32; 3], [u16; 3], [u16; 3]); 8] = [
    ([1.0, 1.0, 1.0], [235, 128, 128], [940, 512, 512]),
    ([1.0, 1.0, 0.0], [219, 16, 138], [877, 64, 553]),
    ([0.0, 1.0, 1.0], [188, 154, 16], [754, 615, 64]),
    ([0.0, 1.0, 0.0], [173, 42, 26], [691, 167, 105]),
    ([1.0, 0.0, 1.0], [78, 214, 230], [313, 857, 919]),
    ([1.0, 0.0, 0.0], [63, 102, 240], [250, 409, 960]),
    ([0.0, 0.0, 1.0], [32, 240, 118], [127, 960, 471]),
    ([0.0, 0.0, 0.0], [16, 128, 128], [64, 512, 512]),
];

const ALL_BITS: [Bits; 3] = [Bits::Eight, Bits::Ten, Bits::Twelve];

#[test]
fn colour_bars_have_their_levels() {
    for (rgb, eight, ten) in BARS {
        assert_eq!(Quantiser::limited(Bits::Eight).levels(rgb), eight, "{rgb:?}");
        assert_eq!(Quantiser::limited(Bits::Ten).levels(rgb), ten, "{rgb:?}");
    }
    assert_eq!(Quantiser::limited(Bits::Twelve).levels([1.0; 3]), [3760, 2048, 2048]);
    assert_eq!(Quantiser::limited(Bits::Twelve).levels([0.0; 3]), [256, 2048, 2048]);
}

#[test]
fn full_range_goes_from_end_to_end() {
    for bits in ALL_BITS {
        let (most, half) = ((1 << bits.get()) - 1, 1 << (bits.get() - 1));
        let quantiser = Quantiser::full(bits);
        assert_eq!(quantiser.levels([1.0; 3]), [most, half, half]);
        assert_eq!(quantiser.levels([0.0; 3]), [0, half, half]);
        assert_eq!(quantiser.rgb([f32::from(most), f32::from(half), f32::from(half)]), [1.0; 3]);
        assert_eq!(quantiser.grey(f32::from(most)), 1.0);
    }
}

#[test]
fn levels_beyond_the_range_are_cut_off() {
    let quantiser = Quantiser::limited(Bits::Eight);
    assert_eq!(quantiser.rgb([255.0, 128.0, 128.0]), [1.0; 3]);
    assert_eq!(quantiser.rgb([0.0, 128.0, 128.0]), [0.0; 3]);
    assert_eq!(quantiser.grey(0.0), 0.0);
}

/// Computes Y', Cb, Cr by items 3.2 to 3.5 of the recommendation.
fn by_the_standard([red, green, blue]: [f64; 3], bits: u32) -> [f64; 3] {
    let luma = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    let unit = f64::from(1 << (bits - 8));
    let (cb, cr) = ((blue - luma) / 1.8556, (red - luma) / 1.5748);
    [(219.0 * luma + 16.0) * unit, (224.0 * cb + 128.0) * unit, (224.0 * cr + 128.0) * unit]
}

proptest! {
    #[test]
    fn levels_are_those_of_the_formula(rgb in [0.0_f32..=1.0, 0.0_f32..=1.0, 0.0_f32..=1.0]) {
        for bits in ALL_BITS {
            let exact = by_the_standard(rgb.map(f64::from), bits.get());
            for (level, exact) in Quantiser::limited(bits).levels(rgb).into_iter().zip(exact) {
                prop_assert!((f64::from(level) - exact).abs() < 0.502, "{level} for {exact}");
            }
        }
    }
}
