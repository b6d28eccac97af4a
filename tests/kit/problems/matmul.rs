//! Problems of products: 1x1 convolutions, linear layers, the batches of Winograd convolutions, and
//! both products of attention.

use wgvae::Storage;
use wgvae::device::{DeviceKind, DeviceLimits, MatrixUnits};
use wgvae::kernels::choice::{KernelChoice, MatmulTile, Products, Transforms};
use wgvae::kernels::matmul::{Epilogue, Matmul, MatmulParams};

use super::{Problem, STORAGES, noise, numbers, random, room, tolerance};

/// m, n / 4, k / 4, batch and frames: rows and columns that do and do not fill tiles.
const SHAPES: [[u32; 5]; 7] = [
    [64, 32, 32, 1, 1],
    [130, 33, 5, 1, 1],
    [1, 1, 1, 1, 1],
    [257, 7, 64, 1, 1],
    [37, 16, 16, 36, 1],
    [301, 5, 3, 4, 1],
    [70, 6, 5, 9, 3],
];

/// m, n / 4 and k / 4 of a group, and groups: those of DC-AE, and of a toy model.
const GROUPS: [[u32; 4]; 3] = [[70, 8, 8, 12], [33, 2, 2, 6], [1, 1, 1, 2]];

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    let tiles = [DeviceKind::Cpu, DeviceKind::Gpu].map(|kind| {
        let choice = KernelChoice::for_device(&DeviceLimits { kind, ..DeviceLimits::webgpu_default() });
        [choice.matmul_tile, choice.winograd_tile]
    });
    let mut tiles: Vec<MatmulTile> = tiles.into_iter().flatten().collect();
    tiles.extend([
        MatmulTile::Register { rows: 4, columns4: 2 },
        MatmulTile::Quad { rows: 8, columns4: 4 },
        MatmulTile::Quad { rows: 8, columns4: 8 },
        MatmulTile::Shared { rows4: 2, columns4: 2 },
        MatmulTile::Shared { rows4: 1, columns4: 2 },
        MatmulTile::Shared { rows4: 1, columns4: 1 },
    ]);
    tiles.sort_by_key(MatmulTile::to_string);
    tiles.dedup();
    let mut tiles: Vec<Products> = tiles.into_iter().map(Products::Tile).collect();
    tiles.extend([(2, 2), (1, 2), (1, 1)].map(|(rows4, columns4)| Products::Narrow { rows4, columns4 }));
    let units = [(8, 8), (16, 32), (16, 64)];
    let units = units.map(|(side, lanes)| Products::Matrix(MatrixUnits { side, lanes }));
    for storage in STORAGES {
        let units = units.iter().filter(|_| storage == Storage::F16);
        for products in tiles.iter().chain(units) {
            for shape in SHAPES {
                for epilogue in [
                    Epilogue::None,
                    Epilogue::Bias,
                    Epilogue::BiasAccumulate,
                    Epilogue::BiasTransposed,
                    Epilogue::RowFactors,
                ] {
                    // Such kernels join frames only if nothing follows.
                    if shape[4] == 1 || epilogue == Epilogue::None || !products.joins_frames() {
                        problems.push(problem(storage, *products, shape, epilogue, None));
                    }
                }
                for transforms in [Transforms::Runs, Transforms::Pairs] {
                    problems.push(problem(storage, *products, shape, Epilogue::None, Some(transforms)));
                }
            }
            for shape in GROUPS {
                problems.push(grouped_problem(storage, *products, shape));
            }
        }
    }
    problems
}

/// Makes a problem. With `transforms`, as in a Winograd convolution: a lies as they write it, and b
/// in blocks of the tile's columns. Frames lie within each row of a and of c; those of a transpose
/// follow one another.
fn problem(
    storage: Storage,
    products: Products,
    [m, n4, k4, batch, frames]: [u32; 5],
    epilogue: Epilogue,
    transforms: Option<Transforms>,
) -> Problem {
    let transposed = epilogue == Epilogue::BiasTransposed;
    let factors = epilogue == Epilogue::RowFactors;
    let in_columns = transforms == Some(Transforms::Runs);
    let block = products.block_columns4();
    let (b_row, b_block, b_size) = if transforms.is_some() {
        (block, k4 * 4 * block, n4.div_ceil(block) * block * k4 * 4)
    } else {
        (n4, block, n4 * k4 * 4)
    };
    let m_stored = if transposed { m.next_multiple_of(4) } else { m };
    let (c_row, c_frame, c_size) = if transposed {
        (m.div_ceil(4), n4 * 4 * m.div_ceil(4), frames * n4 * 4 * m.div_ceil(4))
    } else {
        let c_row = frames * n4 + u32::from(!products.joins_frames());
        (c_row, n4, m * c_row)
    };
    // Attention accumulates in f32.
    let output = if factors { Storage::F32 } else { storage };
    let params = MatmulParams {
        m,
        m_stored,
        n4,
        k4,
        a_offset: 3,
        a_row: if in_columns { 1 } else { frames * k4 },
        a_column: if in_columns { m } else { 1 },
        batch,
        a_batch: m * frames * k4,
        a_frame: if in_columns { m * k4 } else { k4 },
        b_offset: 2,
        b_row,
        b_block,
        b_batch: b_size,
        c_offset: 1,
        c_row,
        c_batch: c_size,
        c_frame,
        scale: 0.75,
    };
    let row_factors: Vec<f32> = noise(5, m, 1.0).iter().map(|value| if *value < 0.0 { 0.0 } else { *value }).collect();
    let old = epilogue == Epilogue::BiasAccumulate || factors;
    let has_bias = matches!(epilogue, Epilogue::Bias | Epilogue::BiasAccumulate | Epilogue::BiasTransposed);
    let c = if old { random(4, output, 1 + batch * c_size, 1.0) } else { room(output, 1 + batch * c_size) };
    Problem {
        name: format!(
            "matmul m{m} n{} k{} batch{batch} frames{frames} {epilogue:?}{} tile {products} {storage:?}",
            n4 * 4,
            k4 * 4,
            transforms.map_or(String::new(), |transforms| format!(" blocked {transforms:?}")),
        ),
        launch: Matmul { input: storage, output, epilogue, products, frames, params }.launch(),
        bindings: vec![
            random(1, storage, 3 + batch * m * frames * k4, 1.0),
            random(2, storage, 2 + batch * b_size, 1.0),
            if has_bias { random(3, Storage::F32, n4, 1.0) } else { None },
            if factors { numbers(Storage::F32, &row_factors) } else { None },
            c,
        ],
        tolerance: tolerance(output),
    }
}

/// Makes a problem of a 1x1 convolution in groups: each has columns of the rows of a, b and c.
fn grouped_problem(storage: Storage, products: Products, [m, n4, k4, groups]: [u32; 4]) -> Problem {
    let params = MatmulParams {
        a_row: groups * k4,
        batch: groups,
        a_batch: k4,
        b_row: groups * n4,
        b_batch: n4,
        c_row: groups * n4,
        c_batch: n4,
        ..MatmulParams::rows(products, m, n4, k4)
    };
    let epilogue = Epilogue::Bias;
    Problem {
        name: format!("matmul m{m} n{} k{} in {groups} groups tile {products} {storage:?}", n4 * 4, k4 * 4),
        launch: Matmul { input: storage, output: storage, epilogue, products, frames: 1, params }.launch(),
        bindings: vec![
            random(1, storage, m * groups * k4, 1.0),
            random(2, storage, k4 * 4 * groups * n4, 1.0),
            random(3, Storage::F32, n4, 1.0),
            None,
            room(storage, m * groups * n4),
        ],
        tolerance: tolerance(storage),
    }
}
