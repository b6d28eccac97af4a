//! c = epilogue(a b) for each batch entry: 1x1 convolutions, linear layers, the 36 products of a
//! Winograd convolution, and both products of attention.
//!
//! A tile of the result stays in registers for the whole sum. b comes in blocks of 16 columns whose
//! rows follow one another, and a in rows, so neither is packed again in f32. Of halves, a task
//! copies its rows of a and the columns of b that a tile needs. `gemm` 0.19 packs both always. It
//! took up to 10 % longer for the 36 products of convolutions on two cores with AVX-512, and as
//! long with 128 channels (`docs/internals/cpu.md`).

use pulp::{Arch, Simd, WithSimd};

use crate::cpu::call::{Call, at, at4};
use crate::cpu::lanes::{dispatch, load, store};
use crate::cpu::parallel::*;
use crate::cpu::stored::{Stored, floats};
use crate::kernels::matmul::MatmulParams;

/// Most rows of a task: they stay in the second cache while all columns pass, and are whole tiles
/// of every size.
const ROWS: usize = 48;

/// Rows of the largest tile, a multiple of the others'.
const TILE: usize = 12;

/// Columns of a block of b.
const BLOCK: usize = 16;

/// Operations as a product is stored, see `Epilogue` of the shader's Rust half.
#[derive(Clone, Copy)]
struct Finish<'a> {
    scale: f32,
    /// `[n]`; empty without a bias.
    bias: &'a [f32],
    accumulate: bool,
    /// `[m]`; empty without factors.
    row_factors: &'a [f32],
}

/// The operands of one batch entry of one frame.
#[derive(Clone, Copy)]
struct Product<'a, E> {
    a: &'a [E],
    b: &'a [E],
    /// Elements from row to row of a.
    a_row: usize,
    /// Rows of a.
    m: usize,
    /// Terms of each sum.
    depth: usize,
    /// Elements from row to row of a block of b.
    b_row: usize,
    /// Elements from block to block of b.
    b_block: usize,
    /// Columns of b.
    columns: usize,
    finish: Finish<'a>,
}

pub(super) fn run<E: Stored, O: Stored>(mut call: Call<'_>) {
    let p: MatmulParams = call.params();
    let arch = call.arch;
    let [has_bias, accumulate, with_factors, transposed] =
        ["HAS_BIAS", "ACCUMULATE", "ROW_FACTORS", "TRANSPOSED"].map(|flag| call.variant.flag(flag));
    let frames = at(call.workgroups[2] / p.batch);
    let [a, b, bias, row_factors, c] = call.take();
    let (a, b, c) = (a.read::<E>(), b.read::<E>(), c.write::<O>());
    assert!(p.a_column == 1, "the rows of a follow one another");
    let finish = Finish {
        scale: p.scale,
        bias: if has_bias { bias.read() } else { &[] },
        accumulate,
        row_factors: if with_factors { row_factors.read() } else { &[] },
    };
    let product = |entry: usize, frame: usize| Product {
        a: &a[at4(p.a_offset) + entry * at4(p.a_batch) + frame * at4(p.a_frame)..],
        b: &b[at4(p.b_offset) + entry * at4(p.b_batch)..],
        a_row: at4(p.a_row),
        m: at(p.m),
        depth: at4(p.k4),
        b_row: at4(p.b_row),
        b_block: at4(p.b_block),
        columns: at4(p.n4),
        finish,
    };
    let c = &mut c[at4(p.c_offset)..];
    if transposed {
        // c is [n, m / 4]: a task has the rows of one block of columns.
        let (c_row, m_stored) = (at4(p.c_row), at(p.m_stored));
        for (entry, frame) in (0..at(p.batch)).flat_map(|entry| (0..frames).map(move |frame| (entry, frame))) {
            let c = &mut c[entry * at4(p.c_batch) + frame * at4(p.c_frame)..];
            let blocks = c.par_chunks_mut(BLOCK * c_row).enumerate().take(at4(p.n4).div_ceil(BLOCK));
            let product = product(entry, frame);
            blocks.for_each(|(block, c)| dispatch(arch, Transposed { product, block, c, c_row, m_stored }));
        }
        return;
    }
    // The entries are groups of columns of the same rows, or follow one another.
    let (c_row, batch) = (at4(p.c_row), at(p.batch));
    let in_rows = if p.c_batch < p.c_row { batch } else { 1 };
    let c_batch = if in_rows < batch { at4(p.c_batch) } else { c.len() };
    let entries = c.chunks_mut(c_batch).take(batch / in_rows).enumerate();
    let stored = at(p.m_stored);
    // Few rows of few entries are shared out evenly.
    let tasks = threads().div_ceil(batch / in_rows);
    let most = ROWS.min(stored.div_ceil(tasks).next_multiple_of(TILE)).max(TILE);
    let tasks: Vec<(usize, usize, &mut [O])> = entries
        .flat_map(|(entry, c)| {
            let tasks = c.chunks_mut(most * c_row).take(stored.div_ceil(most)).enumerate();
            tasks.map(move |(task, c)| (entry, task * most, c))
        })
        .collect();
    tasks.into_par_iter().for_each(|(entry, first, c)| {
        let rows = most.min(stored - first);
        for (part, frame) in (0..in_rows).flat_map(|part| (0..frames).map(move |frame| (part, frame))) {
            let c = &mut c[part * at4(p.c_batch) + frame * at4(p.c_frame)..];
            rows_of(arch, Rows { product: product(entry * in_rows + part, frame), first, rows, c, c_row });
        }
    });
}

/// Some rows of a product.
struct Rows<'a, 'c, E, O> {
    product: Product<'a, E>,
    /// First row of a.
    first: usize,
    rows: usize,
    /// These rows of c.
    c: &'c mut [O],
    c_row: usize,
}

fn rows_of<E: Stored, O: Stored>(arch: Arch, Rows { product, first, rows, c, c_row }: Rows<'_, '_, E, O>) {
    let computed = rows.min(product.m.saturating_sub(first));
    // Rows after the last of a are padding.
    for row in computed..rows {
        c[row * c_row..][..product.columns].fill(O::zeroed());
    }
    if computed > 0 {
        dispatch(arch, Rows { product, first, rows: computed, c, c_row });
    }
}

impl<E: Stored, O: Stored> WithSimd for Rows<'_, '_, E, O> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Rows by vectors of a tile: as many sums as registers hold beside a row of b.
        match S::F32_LANES {
            16 => self.columns::<S, 12, 2>(simd),
            8 => self.columns::<S, 6, 2>(simd),
            4 if cfg!(target_arch = "aarch64") => self.columns::<S, 6, 4>(simd),
            4 => self.columns::<S, 2, 4>(simd),
            _ => self.columns::<S, 2, 1>(simd),
        }
    }
}

impl<E: Stored, O: Stored> Rows<'_, '_, E, O> {
    /// Computes tiles of `M` rows by `V` vectors. The last columns, which fill no tile, come one
    /// vector at a time.
    #[inline(always)]
    fn columns<S: Simd, const M: usize, const V: usize>(mut self, simd: S) {
        let (mut a_space, mut b_space) = (Vec::new(), Vec::new());
        let a = self.product.rows(self.first, self.rows, &mut a_space);
        let (lanes, columns) = (S::F32_LANES, self.product.columns);
        let whole = columns / (V * lanes) * (V * lanes);
        for column in (0..whole).step_by(V * lanes) {
            let b = self.product.columns::<S, V>(simd, column, lanes, &mut b_space);
            self.tiles::<S, M, V>(simd, a, b, column, lanes);
        }
        for column in (whole..columns).step_by(lanes) {
            let count = lanes.min(columns - column);
            let b = self.product.columns::<S, 1>(simd, column, count, &mut b_space);
            self.tiles::<S, M, 1>(simd, a, b, column, count);
        }
    }

    /// Computes all rows of `V` vectors of columns from `column` on, of `count` columns each.
    #[inline(always)]
    fn tiles<S: Simd, const M: usize, const V: usize>(
        &mut self,
        simd: S,
        (a, a_row): (&[f32], usize),
        (b, b_row): ([&[f32]; V], usize),
        column: usize,
        count: usize,
    ) {
        let Product { depth, finish, .. } = self.product;
        for row in (0..self.rows).step_by(M) {
            // Rows beyond the last are computed as the last, and not stored.
            let rows: [&[f32]; M] =
                std::array::from_fn(|index| &a[(row + index).min(self.rows - 1) * a_row..][..depth]);
            let sums = sums(simd, rows, b, b_row, count);
            for (index, sums) in sums.into_iter().enumerate().take(self.rows - row) {
                let c = &mut self.c[(row + index) * self.c_row..];
                for (vector, sum) in sums.into_iter().enumerate() {
                    let column = column + vector * S::F32_LANES;
                    finish.store(simd, sum, (self.first + row + index, column, count), c);
                }
            }
        }
    }
}

impl<'a, E: Stored> Product<'a, E> {
    /// Returns `count` rows of a from `first` on, and the floats from row to row: where they lie,
    /// or in `space`.
    #[inline(always)]
    fn rows<'s>(&self, first: usize, count: usize, space: &'s mut Vec<f32>) -> (&'s [f32], usize)
    where
        'a: 's,
    {
        let a = &self.a[first * self.a_row..];
        if let Some(a) = E::floats(a) {
            return (a, self.a_row);
        }
        space.resize(count * self.depth, 0.0);
        for (a, row) in a.chunks(self.a_row).zip(space.chunks_exact_mut(self.depth)) {
            E::widen(a, row);
        }
        (space, self.depth)
    }

    /// Returns `V` vectors of columns of b from `column` on, of `count` columns each, and the
    /// floats from row to row: where they lie, or in `space`.
    #[inline(always)]
    fn columns<'s, S: Simd, const V: usize>(
        &self,
        simd: S,
        column: usize,
        count: usize,
        space: &'s mut Vec<f32>,
    ) -> ([&'s [f32]; V], usize)
    where
        'a: 's,
    {
        let lanes = S::F32_LANES;
        let mut b: [&[E]; V] = [&[]; V];
        let mut floats: [&[f32]; V] = [&[]; V];
        for (vector, (b, floats)) in b.iter_mut().zip(&mut floats).enumerate() {
            let column = column + vector * lanes;
            *b = &self.b[column / BLOCK * self.b_block + column % BLOCK..][..(self.depth - 1) * self.b_row + count];
            *floats = E::floats(b).unwrap_or_default();
        }
        if E::floats(&[]).is_some() {
            return (floats, self.b_row);
        }
        space.resize(self.depth * V * lanes, 0.0);
        for (k, row) in space.chunks_exact_mut(V * lanes).enumerate() {
            for (vector, b) in b.iter().enumerate() {
                store(simd, row, vector * lanes, lanes, load(simd, b, k * self.b_row, count));
            }
        }
        for (vector, floats) in floats.iter_mut().enumerate() {
            *floats = &space[vector * lanes..];
        }
        (floats, V * lanes)
    }
}

/// Returns the sums of `M` rows of a with `V` vectors of columns of b, whose rows are `step` apart.
/// A vector has `count` columns.
#[inline(always)]
fn sums<S: Simd, const M: usize, const V: usize>(
    simd: S,
    a: [&[f32]; M],
    b: [&[f32]; V],
    step: usize,
    count: usize,
) -> [[S::f32s; V]; M] {
    let mut sums = [[simd.splat_f32s(0.0); V]; M];
    for k in 0..a[0].len() {
        let mut columns = [simd.splat_f32s(0.0); V];
        for (column, b) in columns.iter_mut().zip(b) {
            *column = load(simd, b, k * step, count);
        }
        for (row, sums) in a.iter().zip(&mut sums) {
            let factor = simd.splat_f32s(row[k]);
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = simd.mul_add_e_f32s(factor, column, *sum);
            }
        }
    }
    sums
}

impl Finish<'_> {
    /// Returns the scaled sums of `count` columns from `column` on, with the bias.
    #[inline(always)]
    fn scaled<S: Simd>(&self, simd: S, sum: S::f32s, column: usize, count: usize) -> S::f32s {
        let value = simd.mul_f32s(sum, simd.splat_f32s(self.scale));
        if self.bias.is_empty() { value } else { simd.add_f32s(value, load(simd, self.bias, column, count)) }
    }

    /// Stores a vector of `count` columns from `column` on of row `row`, which begins with `c`.
    #[inline(always)]
    fn store<S: Simd, O: Stored>(
        &self,
        simd: S,
        sum: S::f32s,
        (row, column, count): (usize, usize, usize),
        c: &mut [O],
    ) {
        let mut value = self.scaled(simd, sum, column, count);
        if self.accumulate {
            value = simd.add_f32s(value, load(simd, c, column, count));
        }
        if let Some(factor) = self.row_factors.get(row)
            && *factor != 0.0
        {
            value = simd.mul_add_e_f32s(simd.splat_f32s(*factor), load(simd, c, column, count), value);
        }
        store(simd, c, column, count, value);
    }
}

/// One block of columns of a product, stored as rows.
struct Transposed<'a, 'c, E, O> {
    product: Product<'a, E>,
    block: usize,
    /// The rows of c that the block's columns become.
    c: &'c mut [O],
    c_row: usize,
    m_stored: usize,
}

impl<E: Stored, O: Stored> WithSimd for Transposed<'_, '_, E, O> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        const M: usize = 6;
        let Product { a, a_row, depth, m, columns, finish, .. } = self.product;
        let mut a_spaces: [Vec<f32>; M] = Default::default();
        let mut b_space = Vec::new();
        let first = self.block * BLOCK;
        let last = columns.min(first + BLOCK);
        for column in (first..last).step_by(S::F32_LANES) {
            let count = S::F32_LANES.min(last - column);
            let (b, b_row) = self.product.columns::<S, 1>(simd, column, count, &mut b_space);
            for row in (0..m).step_by(M) {
                let mut rows: [&[f32]; M] = [&[]; M];
                for (index, (space, floats_of_row)) in a_spaces.iter_mut().zip(&mut rows).enumerate() {
                    *floats_of_row = floats(&a[(row + index).min(m - 1) * a_row..][..depth], space);
                }
                let sums = sums(simd, rows, b, b_row, count);
                for (index, [sum]) in sums.into_iter().enumerate().take(m - row) {
                    let mut values = [0.0; BLOCK];
                    store(simd, &mut values, 0, count, finish.scaled(simd, sum, column, count));
                    for (lane, value) in values[..count].iter().enumerate() {
                        self.c[(column - first + lane) * self.c_row + row + index] = O::of(*value);
                    }
                }
            }
            for lane in 0..count {
                self.c[(column - first + lane) * self.c_row..][m..self.m_stored].fill(O::zeroed());
            }
        }
    }
}
