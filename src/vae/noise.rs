//! Standard normal noise that is the same on every machine. It uses a counter-based generator of
//! integers, and functions that are computed in software.
//!
//! Numbers `2 k` and `2 k + 1` of image `i` come from four words of Philox4x32-10 (Salmon et al.,
//! "Parallel random numbers: as easy as 1, 2, 3"). Its counter is `[k mod 2^32, k div 2^32, i, 0]`,
//! and its key is `[seed mod 2^32, seed div 2^32]`. The first two words, the first being the upper
//! half, form a 64-bit number. Its upper 53 bits, plus 1, divided by 2^53, are a number `u` in (0,
//! 1]. The upper 53 bits of the other two words, divided by 2^53, are a number `v` in [0, 1). Then,
//! by Box and Muller and in f64, `r = sqrt(-2 ln u)`, and the two numbers are `r cos(2 pi v)` and
//! `r sin(2 pi v)`.

use std::f64::consts::TAU;

/// Returns the first `count` numbers of `image` for a `seed`.
pub(super) fn normals(seed: u64, image: u32, count: usize) -> Vec<f32> {
    let pairs = (0..count.div_ceil(2) as u64).flat_map(|pair| {
        let [pair, pair_high, seed, seed_high] = [low(pair), high(pair), low(seed), high(seed)];
        box_muller(philox([pair, pair_high, image, 0], [seed, seed_high]))
    });
    pairs.take(count).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
fn low(word: u64) -> u32 {
    word as u32
}

fn high(word: u64) -> u32 {
    low(word >> 32)
}

const ROUNDS: usize = 10;
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// The increments of the key after each round: the fractions of the golden ratio and of the square
/// root of 3.
const STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let [first, second] = [0, 1].map(|half| u64::from(counter[2 * half]) * u64::from(MULTIPLIERS[half]));
        counter = [high(second) ^ counter[1] ^ key[0], low(second), high(first) ^ counter[3] ^ key[1], low(first)];
        key = [0, 1].map(|half| key[half].wrapping_add(STEPS[half]));
    }
    counter
}

fn box_muller([a, b, c, d]: [u32; 4]) -> [f32; 2] {
    let radius = (-2.0 * libm::log(fraction(a, b, 1))).sqrt();
    let angle = TAU * fraction(c, d, 0);
    #[expect(clippy::cast_possible_truncation, reason = "rounded")]
    let rounded = |value: f64| value as f32;
    [rounded(radius * libm::cos(angle)), rounded(radius * libm::sin(angle))]
}

/// Returns the upper 53 bits of two words, plus `added`, divided by 2^53.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
fn fraction(high: u32, low: u32, added: u64) -> f64 {
    let bits = ((u64::from(high) << 32 | u64::from(low)) >> 11) + added;
    bits as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are from the authors' own file of known answers.
    #[test]
    fn philox_has_its_known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        assert_eq!(philox(pi, [0xa409_3822, 0x299f_31d0]), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    /// The values were computed independently, in Python.
    #[test]
    fn numbers_of_a_seed_never_change() {
        let bits = |seed, image, count| normals(seed, image, count).into_iter().map(f32::to_bits).collect::<Vec<u32>>();
        assert_eq!(bits(0, 0, 4), [0xbdf8_de6b, 0xbfac_cddf, 0xbda7_adaa, 0xbe64_0dd8]);
        assert_eq!(bits(u64::MAX, 7, 3), [0x3e07_95b6, 0x3f0c_d6e4, 0x3f13_b72e]);
        assert_eq!(bits(0, 0, 3), bits(0, 0, 100)[..3]);
    }

    /// The mean of 100 000 numbers is within 5 standard errors of 0; the next three moments are
    /// within 5 of theirs.
    #[test]
    fn numbers_are_normal() {
        let numbers = normals(1, 0, 100_000);
        let moment = |power| numbers.iter().map(|&x| f64::from(x).powi(power)).sum::<f64>() / 1e5;
        for (power, wanted, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
            let error = moment(power) - wanted;
            assert!(error.abs() < 5.0 * f64::sqrt(variance / 1e5), "moment {power} is off by {error}");
        }
        let neighbours = numbers.windows(2).map(|pair| f64::from(pair[0] * pair[1])).sum::<f64>() / 1e5;
        assert!(neighbours.abs() < 0.02, "{neighbours}");
        let others: [f64; 2] = [normals(1, 1, 100_000), normals(2, 0, 100_000)]
            .map(|others| numbers.iter().zip(&others).map(|(a, b)| f64::from(a * b)).sum::<f64>() / 1e5);
        assert!(others.iter().all(|both| both.abs() < 0.02), "{others:?}");
    }
}
