// winograd_in_params: the flags and parameters of `winograd_in` and `winograd_in_pairs`.

const NORMALIZE: bool = true;     // x * scale[c] + shift[c] first
const ACTIVATION: u32 = 1u;       // then: 0 none, 1 SiLU, 2 ReLU
const SHIFT: u32 = 0u;            // 1: the input is half the size of the image
const SHUFFLE: bool = false;      // channel (2 py + px) c + k of a frame of the input is channel k of pixel (py, px) of four
const HALVES: bool = false;       // v is kept in f16, at V_SCALE of its value: f16 ends at 65504, and v is up to 26.2 times d

struct Params {
    tiles: u32,        // tiles of this band
    tiles_x: u32,      // tiles in a row of this band
    tile_x0: u32,      // first tile column
    y0: u32,           // first image row of this band
    width: u32,        // image width (after doubling), pixels
    height: u32,       // image height (after doubling), pixels
    x_width: u32,      // width of x, pixels
    x_row0: i32,       // image row (before doubling) that x starts with
    channels4: u32,    // channels of d / 4, all frames
    frame4: u32,       // channels of one frame of d / 4
    v_channels4: u32,  // channels of v / 4
    v_channel0: u32,   // first channel of v that this launch writes, / 4
}

@group(0) @binding(0) var<uniform> params: Params;
