//! Tiles and their blending as values: positions of tiles, weights that sum to 1, and diffusers'
//! arithmetic.

use proptest::prelude::*;
use wgvae::config::{AutoencoderConfig, Family, Network};
use wgvae::internals::NOT_FINITE;
use wgvae::tiling::{Blend, BlendRule};
use wgvae::tiling::{Blender, Grid, Planes};
use wgvae::{Error, Size, Tiling};

const RULES: [BlendRule; 2] = [BlendRule::Linear, BlendRule::Cosine];

fn grid(rule: BlendRule, tile: u32, overlap: u32, width: u32, height: u32) -> Grid {
    let blend = Blend::new(rule, tile, overlap).unwrap();
    Tiling::Blend(blend).grid(Size { width, height }).expect("more than one tile")
}

/// Returns pixels `[3, h, w]` of a tile at `(left, top)`, by a function of channel, column and row
/// in the image.
fn planes(left: u32, top: u32, size: Size, value: impl Fn(usize, u32, u32) -> f32) -> Planes {
    let mut data = Vec::new();
    for channel in 0..3 {
        for row in top..top + size.height {
            data.extend((left..left + size.width).map(|column| value(channel, column, row)));
        }
    }
    Planes::new(size, data)
}

/// Blends tiles, whose pixels are a function of the tile's number and of channel, column and row in
/// the image.
fn blend(grid: &Grid, factor: u32, value: impl Fn(usize, usize, u32, u32) -> f32) -> Planes {
    let size = Size { width: grid.latents().width * factor, height: grid.latents().height * factor };
    let mut image = vec![f32::NAN; 3 * size.width as usize * size.height as usize];
    let (mut blender, mut finished) = (Blender::new(grid, factor), 0);
    for (index, tile) in grid.tiles().enumerate() {
        let extent = Size { width: tile.size().width * factor, height: tile.size().height * factor };
        let (left, top) = (tile.columns.start * factor, tile.rows.start * factor);
        let decoded = planes(left, top, extent, |channel, column, row| value(index, channel, column, row));
        let Some(band) = blender.add(decoded) else { continue };
        assert_eq!(band.rows.start, finished, "bands follow each other");
        finished = band.rows.end;
        let part = band.pixels.data().len() / 3;
        for channel in 0..3 {
            let at = (channel * size.height as usize + band.rows.start as usize) * size.width as usize;
            image[at..][..part].copy_from_slice(&band.pixels.data()[channel * part..][..part]);
        }
    }
    assert_eq!(finished, size.height);
    Planes::new(size, image)
}

#[test]
fn tiles_of_diffusers_lie_on_its_grid() {
    let spans = |extent| grid(BlendRule::Linear, 64, 16, extent, 65).columns().to_vec();
    assert_eq!(spans(128), [0..64, 48..112, 96..128]);
    // The last tile lies wholly within the one before; diffusers decodes it all the same.
    assert_eq!(spans(97), [0..64, 48..97, 96..97]);
    // If one side exceeds a tile, there are tiles along the other side, too.
    assert_eq!(spans(50), [0..50, 48..50]);
    assert_eq!(spans(48), vec![0..48; 1]);
}

#[test]
fn tiles_of_seedvr2_that_bring_nothing_new_are_left_out() {
    let spans = |extent| grid(BlendRule::Cosine, 64, 8, extent, 65).columns().to_vec();
    assert_eq!(spans(120), [0..64, 56..120]);
    assert_eq!(spans(121), [0..64, 56..120, 112..121]);
    assert_eq!(spans(64), vec![0..64; 1]);
}

#[test]
fn sizes_of_tiles_are_few() {
    let sizes = grid(BlendRule::Linear, 8, 2, 28, 20).sizes();
    let size = |width, height| Size { width, height };
    assert_eq!(sizes, [(size(8, 8), 12), (size(4, 8), 3), (size(8, 2), 4), (size(4, 2), 1)]);
    assert_eq!(grid(BlendRule::Linear, 8, 2, 28, 20).count(), 20);
}

#[test]
fn what_fits_one_tile_is_not_divided() {
    for rule in RULES {
        let tiling = Tiling::Blend(Blend::new(rule, 64, 16).unwrap());
        assert_eq!(tiling.grid(Size { width: 64, height: 64 }), None);
        assert!(tiling.grid(Size { width: 65, height: 1 }).is_some());
    }
    assert_eq!(Tiling::Exact.grid(Size { width: 4096, height: 1 }), None);
}

/// Tests tiles of 4 x 2 pixels that share two columns, worked out by hand from diffusers' formula.
#[test]
fn linear_weights_are_those_of_diffusers() {
    let grid = grid(BlendRule::Linear, 4, 2, 6, 2);
    assert_eq!(grid.columns(), [0..4, 2..6, 4..6]);
    let image = blend(&grid, 1, |tile, _, _, _| [1.0, 3.0, 7.0][tile]);
    // Shared columns 2 and 3 have weights 1 and 0, then 1/2 and 1/2. Columns 4 and 5 blend the
    // second with the third tile in the same way.
    assert_eq!(image.data()[..6], [1.0, 1.0, 1.0, 2.0, 3.0, 5.0]);
}

/// Tests the order of blending: first with the tile above, then with the tile at the left. Each
/// neighbour counts after its own blending.
#[test]
fn neighbours_count_as_they_are_after_blending() {
    let grid = grid(BlendRule::Linear, 2, 1, 3, 3);
    // Tiles 0 1 2 / 3 4 5 / 6 7 8 share two pixels in each direction, with weights 0 and 1/2.
    let image = blend(&grid, 2, |tile, _, _, _| [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0][tile]);
    // Pixel (3, 3): tile 1 blended with tile 0 is 1.5, tile 4 with the result above is 8.75, and
    // tile 3 with tile 0 above is 4.5. The last step blends across.
    assert_eq!(image.data()[3 * 6 + 3], 0.5 * 4.5 + 0.5 * 8.75);
}

#[test]
fn cosine_weights_are_those_of_seedvr2() {
    let grid = grid(BlendRule::Cosine, 4, 3, 5, 4);
    assert_eq!(grid.columns(), [0..4, 1..5]);
    let image = blend(&grid, 1, |tile, _, _, _| [0.0, 1.0][tile]);
    // The ramp over three pixels is 0, 1/2, 1.
    assert_eq!(image.data()[..5], [0.0, 0.0, 0.5, 1.0, 1.0]);
}

#[test]
fn tiles_are_those_of_the_tools_by_default() {
    let blend = |rule, config: &AutoencoderConfig| Blend::for_model(rule, config, None, None).unwrap();
    let cases = [("sd15", 64, 16), ("sd21", 96, 24), ("sdxl", 128, 32), ("sd3", 128, 32), ("flux1", 128, 32)];
    for (family, tile, overlap) in cases {
        let config = Family::find(family).unwrap().config();
        let linear = blend(BlendRule::Linear, &config);
        assert_eq!((linear.tile(), linear.overlap()), (tile, overlap), "{family}");
        let cosine = blend(BlendRule::Cosine, &config);
        assert_eq!((cosine.tile(), cosine.overlap()), (128, 16), "{family}");
    }
    for (family, tile, overlap) in [("wan21", 32, 8), ("hunyuan_video15", 16, 4), ("ltx2", 16, 2)] {
        let linear = blend(BlendRule::Linear, &Family::find(family).unwrap().config());
        assert_eq!((linear.tile(), linear.overlap()), (tile, overlap), "{family}");
    }
    let ft_mse = AutoencoderConfig { sample_size: Some(256), ..Family::find("sd15").unwrap().config() };
    assert_eq!(blend(BlendRule::Linear, &ft_mse).tile(), 32);
}

#[test]
fn lengths_that_make_no_sense_are_errors() {
    let sd15 = Family::find("sd15").unwrap().config();
    let cases: [(Option<u32>, Option<u32>, &[&str]); 9] = [
        (Some(0), None, &["tile size", "multiple of 8 pixels", "0 pixels"]),
        (Some(100), None, &["tile size", "multiple of 8 pixels", "100 pixels"]),
        (Some(4), None, &["tile size", "4 pixels"]),
        (Some(80), None, &["tile size", "multiple of 32 pixels", "80 pixels"]),
        (Some(64), Some(12), &["tile overlap", "multiple of 8", "12 pixels"]),
        (Some(64), Some(64), &["tile overlap", "less than the tile's 8 latents", "8 latents"]),
        (Some(64), Some(128), &["tile overlap", "less than the tile's 8 latents", "16 latents"]),
        (None, Some(u32::MAX - 7), &["tile overlap", "less than the tile's 64 latents"]),
        (Some(u32::MAX - 7), Some(8), &["tile size", "1 to 65536 latents", "536870911 latents"]),
    ];
    for (tile, overlap, words) in cases {
        let error = Blend::for_model(BlendRule::Linear, &sd15, tile, overlap).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{tile:?}, {overlap:?}: {error}");
    }
    for sample_size in [None, Some(0), Some(513)] {
        let config = AutoencoderConfig { sample_size, ..sd15.clone() };
        let error = Blend::for_model(BlendRule::Linear, &config, None, None).unwrap_err();
        assert!(matches!(&error, Error::Config { field, .. } if field == "sample_size"), "{error}");
        assert!(Blend::for_model(BlendRule::Linear, &config, Some(512), None).is_ok());
        assert!(Blend::for_model(BlendRule::Cosine, &config, None, None).is_ok());
    }
    let mut wan = Family::find("wan21").unwrap().config();
    let Network::Wan(network) = &mut wan.network else { panic!("{:?}", wan.network) };
    network.upscale = 0;
    let error = Blend::for_model(BlendRule::Cosine, &wan, None, None).unwrap_err();
    assert!(matches!(error, Error::Config { .. }), "{error}");
    assert!(Blend::for_model(BlendRule::Linear, &sd15, Some(64), Some(0)).is_ok());
    assert!(Blend::new(BlendRule::Cosine, 0, 0).is_err());
}

#[test]
fn pictures_round_half_to_even_and_mark_what_is_not_finite() {
    let level = |level: f32| level / 255.0 * 2.0 - 1.0;
    let size = Size { width: 2, height: 1 };
    let planes = Planes::new(size, vec![-3.0, level(7.0), 0.0, f32::NAN, 5.0, level(9.4)]);
    assert_eq!(planes.to_rgba8()[..4], [0, 128, 255, 255]);
    assert_eq!(planes.to_rgba8()[4..], NOT_FINITE);
    let see_through = Planes::new(size, vec![0.0, 1.0, 0.0, 1.0, 0.0, 1.0, level(7.0), -1.0]);
    assert_eq!(see_through.to_rgba8(), [128, 128, 128, 7, 255, 255, 255, 0]);
}

/// Generates a rule, a tile and its overlap, an image larger than a tile, and the pixels of a
/// latent.
fn cases() -> impl Strategy<Value = (Grid, u32)> {
    let rule = prop_oneof![Just(BlendRule::Linear), Just(BlendRule::Cosine)];
    (rule, 1_u32..10, 0_u32..10, (1_u32..40, 1_u32..40), 1_u32..5).prop_filter_map(
        "one tile",
        |(rule, tile, overlap, (width, height), factor)| {
            let blend = Blend::new(rule, tile, overlap % tile).unwrap();
            Some((Tiling::Blend(blend).grid(Size { width, height })?, factor))
        },
    )
}

proptest! {
    /// Tests that equal tiles blend to their common value: the weights sum to 1 everywhere, and
    /// every pixel is written.
    #[test]
    fn weights_sum_to_one((grid, factor) in cases()) {
        let value = |channel: usize, column: u32, row: u32| [-20.0, 0.5, 7.0][channel] + (column * 3 + row) as f32;
        let image = blend(&grid, factor, |_, channel, column, row| value(channel, column, row));
        let wanted = planes(0, 0, image.size(), value);
        for (found, wanted) in image.data().iter().zip(wanted.data()) {
            prop_assert!((found - wanted).abs() <= 1e-4 * wanted.abs().max(1.0), "{found}, not {wanted}");
        }
    }

    /// Tests that no pixel is outside the range of the tiles that cover it.
    #[test]
    fn blends_stay_between_tiles((grid, factor) in cases()) {
        let image = blend(&grid, factor, |tile, _, _, _| if tile % 2 == 0 { -1.0 } else { 1.0 });
        prop_assert!(image.data().iter().all(|value| value.abs() <= 1.0 + 1e-5));
    }
}
