//! Kernels that were measured to be faster than the rules' choice, on drivers that give their name
//! and version. They apply unless the caller asks for others or [`crate::Gpu::tune`] has measured
//! this machine. The bits are the same.

use crate::kernels::choice::MatmulTile;

/// A measured tile and its driver. The measurements are in `benches/results`.
struct MeasuredTile {
    /// Beginning of the driver's name and version, up to the version number.
    driver: &'static str,
    /// First version that was measured, major and minor.
    since: [u32; 2],
    /// Tile of all products.
    tile: MatmulTile,
}

/// Measured tiles. Later rows take precedence over earlier rows.
const ROWS: [MeasuredTile; 1] = [
    // lavapipe-26.2.md: a sixth to a quarter off the products of Mesa 26.1 and 26.2 on an AMD EPYC
    // of Zen 4. Mesa 22.3 takes longer with it.
    MeasuredTile { driver: "llvmpipe Mesa ", since: [26, 1], tile: MatmulTile::Quad { rows: 8, columns4: 8 } },
];

/// Returns the tile for products on `driver`, spelled as in
/// [`crate::device::AdapterReport::driver`].
pub(crate) fn tile(driver: &str) -> Option<MatmulTile> {
    let is_of =
        |row: &&MeasuredTile| driver.strip_prefix(row.driver).and_then(version).is_some_and(|found| found >= row.since);
    ROWS.iter().rev().find(is_of).map(|row| row.tile)
}

/// Returns the major and minor version at the beginning of `text`.
fn version(text: &str) -> Option<[u32; 2]> {
    let mut numbers = text.split(|character: char| !character.is_ascii_digit()).map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::choice::KernelChoice;
    use crate::limits::{DeviceKind, DeviceLimits};

    #[test]
    fn a_driver_is_known_by_name_and_version() {
        let wide = Some(MatmulTile::Quad { rows: 8, columns4: 8 });
        assert_eq!(tile("llvmpipe Mesa 26.2.6-1 (LLVM 22.1.8)"), wide);
        assert_eq!(tile("llvmpipe Mesa 26.1.0"), wide);
        assert_eq!(tile("llvmpipe Mesa 27.0.0-devel"), wide);
        for other in [
            "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)",
            "llvmpipe Mesa 26.0.9",
            "llvmpipe Mesa",
            "llvmpipe Mesa 26",
            "radv Mesa 26.2.6",
            "",
        ] {
            assert_eq!(tile(other), None, "{other}");
        }
    }

    #[test]
    fn every_row_is_one_that_measuring_could_find() {
        let limits = DeviceLimits { kind: DeviceKind::Cpu, quads: true, ..DeviceLimits::webgpu_default() };
        for row in ROWS {
            KernelChoice::for_device(&limits).with_tile(row.tile).check(&limits).expect(row.driver);
        }
    }
}
