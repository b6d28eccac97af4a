// winograd_out_params: the flags and parameters of `winograd_out` and `winograd_out_pairs`.

const ACCUMULATE: bool = false;     // add the old value of y: the residual
const RELU: bool = false;           // max(y, 0)
const MOMENTS: bool = true;         // write count, mean and M2 of the stored values

struct Params {
    tiles: u32,        // tiles of this band
    tiles_x: u32,      // tiles in a row of this band
    tile_x0: u32,      // first tile column
    run: u32,          // tiles of one run
    runs_x: u32,       // runs in a row of tiles
    runs: u32,         // runs of this band
    y0: u32,           // first image row of this band
    width: u32,        // image width, pixels
    height: u32,       // first image row after this band's chunk; rows from this one on are not written
    y_row0: i32,       // image row that y starts with
    channels4: u32,    // channels / 4, all frames
    bias4: u32,        // channels of one frame / 4
    moments_offset: u32, // first run of this band in moments
    scale: f32,        // factor of the product
}

@group(0) @binding(0) var<uniform> params: Params;
