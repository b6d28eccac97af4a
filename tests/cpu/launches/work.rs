//! Work of a launch, computed from its parameters: multiply-adds, bytes of each binding, and the
//! turns of loops that wait for memory one after the other.

use bytemuck::{AnyBitPattern, pod_read_unaligned};
use wgvae::kernels::attention::{FinishParams, SoftmaxParams};
use wgvae::kernels::choice::SHARED_TILE;
use wgvae::kernels::conv2d_depthwise::DepthwiseParams;
use wgvae::kernels::conv2d_direct::Conv2dDirectParams;
use wgvae::kernels::group_norm::{self, ApplyParams, StatsParams};
use wgvae::kernels::linear_attention::{self, SumsParams, elements};
use wgvae::kernels::matmul::MatmulParams;
use wgvae::kernels::pixel_norm::PixelNormParams;
use wgvae::kernels::winograd::{InParams, OutParams, PAIRS_OUT, POINTS, WeightsParams};
use wgvae::kernels::{Value, Variant, WORKGROUP};

/// Bytes of a binding.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moved {
    /// Distinct bytes: the traffic of memory if no cache holds them.
    pub(super) once: u64,
    /// All bytes that workgroups load or store: the traffic of the last cache.
    pub(super) all: u64,
}

impl Moved {
    fn once(bytes: u64) -> Self {
        Self { once: bytes, all: bytes }
    }

    fn often(bytes: u64, times: u64) -> Self {
        Self { once: bytes, all: bytes * times }
    }
}

/// Work of a launch.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    /// Name for people.
    pub(super) name: &'static str,
    /// Multiply-adds that are executed.
    pub(super) macs: u64,
    /// Bytes, by binding.
    pub(super) moved: Vec<Moved>,
    /// Turns of a loop that each wait for memory.
    pub(super) turns: u64,
    /// Invocations of a workgroup.
    pub(super) workgroup: u32,
}

/// Approximate multiply-adds to transform four channels of one tile, activation included.
const TRANSFORM_MACS: u64 = 1400;

/// Returns the work of the launch of `variant` with these `params`. Small kernels that only move
/// data count as four floats in and out per invocation.
pub(super) fn work(variant: &Variant, workgroups: [u32; 3], params: &[u8]) -> Work {
    let invocations: u64 = workgroups.iter().map(|count| u64::from(*count)).product::<u64>() * u64::from(WORKGROUP);
    let work = match variant.file {
        "matmul_shared" | "matmul_matrix" => product(variant, &read(params), workgroups),
        "winograd_in_pairs" => input(variant, &read(params)),
        "winograd_out_pairs" => output(variant, &read(params)),
        "winograd_weights" => filters(variant, &read(params)),
        "conv2d_direct" => direct(variant, &read(params), workgroups),
        "group_norm_apply" => apply(variant, &read(params)),
        "group_norm_stats" => stats(variant, &read(params)),
        "group_norm_finish" => finish(variant, &read(params)),
        "conv2d_depthwise" => depthwise(variant, &read(params)),
        "linear_attention_sums" => linear_sums(variant, &read(params), workgroups),
        "linear_attention_finish" => linear_finish(&read(params)),
        "linear_attention_apply" => linear_apply(variant, &read(params)),
        "pixel_norm_apply" => pixel_norm(variant, &read(params)),
        "attention_softmax" => softmax(variant, &read(params), workgroups),
        "attention_finish" => divide(variant, &read(params)),
        name => Work { name, moved: vec![Moved::once(invocations * 16); 2], ..Work::default() },
    };
    let workgroup = variant.number("WORKGROUP");
    Work { workgroup: if workgroup == 0 { WORKGROUP } else { workgroup }, ..work }
}

fn read<T: AnyBitPattern>(params: &[u8]) -> T {
    pod_read_unaligned(params)
}

/// Returns the bytes of one element of the alias `name`.
fn bytes(variant: &Variant, name: &str) -> u64 {
    match variant.value(name) {
        Some(Value::Type("vec4<f32>")) => 16,
        Some(Value::Type("vec4<f16>" | "vec2<u32>" | "vec2<f32>")) => 8,
        Some(Value::Type("vec2<f16>" | "u32")) => 4,
        other => panic!("{}: {name} is {other:?}", variant.file),
    }
}

fn product(variant: &Variant, p: &MatmulParams, [rows, columns, batch]: [u32; 3]) -> Work {
    let [m, n4, k4, batch] = [p.m, p.n4, p.k4, batch].map(u64::from);
    let (stored, kept) = (bytes(variant, "Stored"), bytes(variant, "Output"));
    let tile_rows = u64::from(SHARED_TILE);
    let tile_columns4 = match variant.file {
        "matmul_shared" => u64::from(variant.number("WIDTH4")),
        _ => tile_rows / 4,
    };
    let names = match (variant.flag("ROW_FACTORS"), variant.flag("HAS_BIAS"), p.batch == POINTS) {
        (true, ..) => ["matmul_shared: probabilities times values", "matmul_matrix: probabilities times values"],
        (_, true, _) => ["matmul_shared: 1x1", "matmul_matrix: 1x1"],
        (.., true) => ["matmul_shared: 36 points", "matmul_matrix: 36 points"],
        (false, false, false) => ["matmul_shared: queries times keys", "matmul_matrix: queries times keys"],
    };
    let name = names[usize::from(variant.file == "matmul_matrix")];
    let reads = u64::from(variant.flag("ROW_FACTORS") || variant.flag("ACCUMULATE"));
    Work {
        name,
        // Workgroups multiply whole tiles.
        macs: batch * m.next_multiple_of(tile_rows) * n4.next_multiple_of(tile_columns4) * k4 * 16,
        moved: vec![
            Moved::often(batch * m * k4 * stored, u64::from(columns)),
            Moved::often(batch * n4 * k4 * 4 * stored, u64::from(rows)),
            Moved::default(),
            Moved::default(),
            Moved::once(batch * m * n4 * kept * (1 + reads)),
        ],
        ..Work::default()
    }
}

fn input(variant: &Variant, p: &InParams) -> Work {
    let tile4 = u64::from(p.tiles) * u64::from(p.channels4);
    let x4 = bytes(variant, "Pair") * 2;
    // A tile reads 36 pixels, of which 16 are its own, or 4 if the image is doubled.
    let own = if variant.number("SHIFT") == 1 && !variant.flag("SHUFFLE") { 4 } else { 16 };
    Work {
        name: variant.file,
        macs: tile4 * TRANSFORM_MACS,
        moved: vec![
            Moved { once: tile4 * own * x4, all: tile4 * 36 * x4 },
            Moved::default(),
            Moved::once(tile4 * u64::from(POINTS) * bytes(variant, "Transformed") * 2),
        ],
        ..Work::default()
    }
}

fn output(variant: &Variant, p: &OutParams) -> Work {
    // Tiles that one workgroup computes at a time.
    const AT_ONCE: u32 = WORKGROUP / PAIRS_OUT;
    let tile4 = u64::from(p.tiles) * u64::from(p.channels4);
    let moments = if variant.flag("MOMENTS") { u64::from(p.runs) * u64::from(p.channels4) * 48 } else { 0 };
    Work {
        name: variant.file,
        macs: tile4 * TRANSFORM_MACS / 2,
        moved: vec![
            Moved::once(tile4 * u64::from(POINTS) * bytes(variant, "Transformed") * 2),
            Moved::default(),
            Moved::once(tile4 * 16 * bytes(variant, "Pair") * 2 * (1 + u64::from(variant.flag("ACCUMULATE")))),
            Moved::once(moments),
        ],
        turns: u64::from(p.run.div_ceil(AT_ONCE)),
        ..Work::default()
    }
}

fn filters(variant: &Variant, p: &WeightsParams) -> Work {
    let filters4 = u64::from(p.c_in) * u64::from(p.blocks) * u64::from(p.tile_n);
    let w4 = bytes(variant, "Stored");
    Work {
        name: variant.file,
        macs: filters4 * 4 * 100,
        moved: vec![
            Moved::once(filters4 * 9 * w4),
            Moved::once(filters4 * u64::from(POINTS) * bytes(variant, "Transformed")),
        ],
        ..Work::default()
    }
}

fn direct(variant: &Variant, p: &Conv2dDirectParams, [blocks, ..]: [u32; 3]) -> Work {
    // Neighbouring invocations are pixels apart. Of the 32 bytes of a load they use one vec4; in
    // the worst case, the others are evicted before the next load.
    const SECTOR: u64 = 32;
    let [rows, width, frames, c_in4, c_out4, spans] =
        [p.rows, p.width, p.frames, p.c_in4, p.c_out4, p.spans].map(u64::from);
    let pixels = rows * width * frames;
    let (x4, y4) = (bytes(variant, "Stored"), bytes(variant, "Output"));
    let sector = if c_in4 * x4 > SECTOR { SECTOR } else { x4 };
    Work {
        name: if c_in4 > c_out4 { "conv2d_direct: conv_out" } else { "conv2d_direct: conv_in" },
        macs: pixels * c_in4 * c_out4 * 16 * 9,
        moved: vec![
            Moved { once: pixels * c_in4 * x4, all: rows * spans * 18 * c_in4 * sector * u64::from(blocks) },
            Moved::default(),
            Moved::default(),
            Moved::once(pixels * c_out4 * y4),
        ],
        ..Work::default()
    }
}

fn depthwise(variant: &Variant, p: &DepthwiseParams) -> Work {
    let [rows, width, x4, y4] = [p.rows, p.width, p.x_channels4, p.y_channels4].map(u64::from);
    let side = u64::from(variant.number("SIDE"));
    let x = rows * width * x4 * bytes(variant, "Stored");
    Work {
        name: variant.file,
        // An activation counts as 20.
        macs: rows * width * x4 * 4 * (side * side + if variant.number("ACTIVATION") > 0 { side * 30 } else { 0 }),
        moved: vec![
            Moved::often(x, side),
            Moved::once(side * side * x4 * 16),
            Moved::once(x4 * 16),
            Moved::once(rows * width * y4 * bytes(variant, "Output")),
        ],
        ..Work::default()
    }
}

fn linear_sums(variant: &Variant, p: &SumsParams, [heads, runs, _]: [u32; 3]) -> Work {
    let head4 = variant.number("HEAD4");
    let sums = u64::from(elements(heads, head4)) * u64::from(runs) * 16;
    Work {
        name: variant.file,
        macs: u64::from(p.pixels) * u64::from(heads * head4 * head4) * 16,
        moved: vec![
            // Keys and values, two thirds of x.
            Moved::once(u64::from(p.pixels) * u64::from(p.channels4) * bytes(variant, "Stored") * 2 / 3),
            Moved::once(sums),
        ],
        turns: u64::from(p.run),
        ..Work::default()
    }
}

fn linear_finish(p: &linear_attention::FinishParams) -> Work {
    let table = u64::from(p.elements) * 16;
    Work {
        name: "linear_attention_finish",
        moved: vec![Moved::once(table * u64::from(p.runs)), Moved::once(table)],
        turns: u64::from(p.runs),
        ..Work::default()
    }
}

fn linear_apply(variant: &Variant, p: &linear_attention::ApplyParams) -> Work {
    let head4 = variant.number("HEAD4");
    let y = u64::from(p.pixels) * u64::from(p.heads * head4) * bytes(variant, "Stored");
    Work {
        name: variant.file,
        macs: u64::from(p.pixels) * u64::from(p.heads * head4 * head4) * 16,
        moved: vec![
            Moved::often(y, u64::from(head4)),
            Moved::once(u64::from(elements(p.heads, head4)) * 16),
            Moved::once(y),
        ],
        ..Work::default()
    }
}

fn apply(variant: &Variant, p: &ApplyParams) -> Work {
    let moved = Moved::once(u64::from(p.elements) * bytes(variant, "Stored"));
    Work { name: variant.file, moved: vec![moved, Moved::default(), moved], ..Work::default() }
}

fn pixel_norm(variant: &Variant, p: &PixelNormParams) -> Work {
    let x4 = u64::from(p.pixels) * u64::from(p.frames) * u64::from(p.channels4);
    let moved = Moved::once(x4 * bytes(variant, "Stored"));
    // A sum reads what it writes.
    let y = if variant.flag("SUM") { Moved::once(moved.once * 2) } else { moved };
    Work { name: variant.file, moved: vec![moved, Moved::default(), Moved::default(), y], ..Work::default() }
}

fn stats(variant: &Variant, p: &StatsParams) -> Work {
    let x = u64::from(p.pixels) * u64::from(p.channels4) * bytes(variant, "Stored");
    let moments = u64::from(p.runs) * u64::from(p.channels4) * 48;
    Work {
        name: variant.file,
        moved: vec![Moved::once(x), Moved::once(moments)],
        turns: u64::from(p.run),
        ..Work::default()
    }
}

fn finish(variant: &Variant, p: &group_norm::FinishParams) -> Work {
    // Runs that an invocation reads at once.
    const READS: u32 = 4;
    let runs = u64::from(p.runs) * u64::from(p.frames);
    let merged = u64::from(p.runs) * u64::from(p.channels_per_group);
    Work {
        name: variant.file,
        moved: vec![Moved::once(runs * u64::from(p.channels4) * 48)],
        turns: merged.div_ceil(u64::from(variant.number("WORKGROUP") * READS)),
        ..Work::default()
    }
}

fn softmax(variant: &Variant, p: &SoftmaxParams, [queries, ..]: [u32; 3]) -> Work {
    let scores4 = u64::from(queries) * u64::from(p.keys.div_ceil(4));
    Work {
        name: variant.file,
        macs: scores4 * 4 * 20,
        moved: vec![Moved::often(scores4 * 16, 2), Moved::once(scores4 * bytes(variant, "Stored"))],
        ..Work::default()
    }
}

fn divide(variant: &Variant, p: &FinishParams) -> Work {
    let outputs4 = u64::from(p.queries) * u64::from(p.channels4);
    let y = Moved::once(outputs4 * bytes(variant, "Stored"));
    Work { name: variant.file, moved: vec![Moved::once(outputs4 * 16), Moved::default(), y], ..Work::default() }
}
