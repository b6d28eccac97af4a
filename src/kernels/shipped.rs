//! Kernels that were measured to be faster than those of the rules, on drivers that say which they
//! are: the start where nobody has measured the machine itself. What a caller asks for and what
//! [`crate::Gpu::tune`] found there come before. The bits are the same.

use crate::kernels::choice::MatmulTile;

/// What was measured, and on what: see `benches/results`.
struct Row {
    /// How the driver's name and version begin, up to the version's number.
    driver: &'static str,
    /// The first version that was measured, major and minor.
    since: [u32; 2],
    /// The tile of all products.
    tile: MatmulTile,
}

/// Later rows count before earlier ones.
const ROWS: [Row; 1] = [
    // lavapipe-26.2.md: a sixth to a quarter off the products of Mesa 26.1 and 26.2 on an AMD EPYC
    // of Zen 4; 22.3 takes longer with it.
    Row { driver: "llvmpipe Mesa ", since: [26, 1], tile: MatmulTile::Quad { rows: 8, columns4: 8 } },
];

/// The tile for products on `driver`, as [`crate::AdapterReport::driver`] names it.
pub(crate) fn tile(driver: &str) -> Option<MatmulTile> {
    let is_of = |row: &&Row| driver.strip_prefix(row.driver).and_then(version).is_some_and(|found| found >= row.since);
    ROWS.iter().rev().find(is_of).map(|row| row.tile)
}

/// Major and minor version: what `text` begins with.
fn version(text: &str) -> Option<[u32; 2]> {
    let mut numbers = text.split(|character: char| !character.is_ascii_digit()).map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::choice::Choice;
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
            Choice::for_device(&limits).with_tile(row.tile).check(&limits).expect(row.driver);
        }
    }
}
