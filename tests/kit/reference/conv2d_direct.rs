//! Twin: 3x3 convolution with zero padding 1, of an image that may be twice the size of x. With
//! taps in time, it is a convolution of frames.

use wgvae::Storage;
use wgvae::kernels::conv2d_direct::Conv2dDirectParams;

use super::{Call, RELU, activate, at, each, place_of, seen_at};

pub(super) fn run(call: &mut Call<'_>) {
    let p: Conv2dDirectParams = call.params();
    let (input, output) = (call.storage("Stored"), call.storage("Output"));
    let shift = call.variant.number("SHIFT");
    assert!(p.spans * call.variant.number("TILE_X") >= p.width, "{p:?}");
    let [columns, spans, _] = call.workgroups;
    assert!(spans * wgvae::kernels::WORKGROUP >= p.spans * p.rows, "{p:?}");
    assert_eq!(columns, p.c_out4.div_ceil(call.variant.number("TILE_N")) * p.frames, "{p:?}");
    let beyond = call.variant.number("BEYOND");
    let times = call.variant.number("TAPS_T");
    assert!(p.frames_in + 1 >= p.frames + times, "{p:?}");
    let (x, w, bias) = (call.vec4s(1, input), call.vec4s(2, input), call.vec4s(3, Storage::F32));
    let (c_in4, c_out4) = (at(p.c_in4), at(p.c_out4));
    let activation = if call.variant.flag("RELU") { RELU } else { 0 };
    for image_y in i64::from(p.y0)..i64::from(p.y0 + p.rows) {
        for (image_x, frame) in (0..i64::from(p.width)).flat_map(|x| (0..at(p.frames)).map(move |frame| (x, frame))) {
            let mut sums = vec![[0.0_f64; 4]; c_out4];
            for tap in 0..i64::from(times) * 9 {
                let (py, px) = (image_y + tap / 3 % 3 - 1, image_x + tap % 3 - 1);
                let [py, px] = [seen_at(py, p.height, beyond), seen_at(px, p.width, beyond)];
                let (Some(py), Some(px)) = (py, px) else { continue };
                let row = place_of(py >> shift, p.x_row0, p.height >> shift, beyond);
                let pixel = row * at(p.x_width) + at(px >> shift);
                let source = (pixel * at(p.frames_in) + frame + at(tap / 9)) * c_in4;
                for k in 0..c_in4 * 4 {
                    let factor = f64::from(x[source + k / 4][k % 4]);
                    for (column, sum) in sums.iter_mut().enumerate() {
                        let weight = w[(at(tap) * c_in4 * 4 + k) * c_out4 + column];
                        sum.iter_mut().zip(weight).for_each(|(sum, weight)| *sum += factor * f64::from(weight));
                    }
                }
            }
            let pixel = at(image_y - i64::from(p.y_row0)) * at(p.width) + at(image_x);
            let target = (pixel * at(p.frames) + frame) * c_out4;
            for (column, sum) in sums.iter().enumerate() {
                let value =
                    each(|lane| activate(sum[lane] * f64::from(p.scale) + f64::from(bias[column][lane]), activation));
                call.set(4, output, target + column, value);
            }
        }
    }
}
