//! Twin: unfolds places into channels and takes means, or copies channels and folds them into
//! places.

use wgvae::kernels::regroup::RegroupParams;

use super::{Call, RELU, activate, at, each};

pub(super) fn run(call: &mut Call<'_>) {
    let p: RegroupParams = call.params();
    let (input, output) = (call.storage("Stored"), call.storage("Output"));
    let by_place = call.variant.flag("BY_PLACE");
    let activation = if call.variant.flag("RELU") { RELU } else { 0 };
    call.assert_covers(p.pixels * p.frames * p.channels4);
    let x = call.vec4s(1, input);
    let [side, places, count] = [p.side, p.places, p.count].map(at);
    let number = |row: usize, column: usize, frame: usize, channel: usize| {
        let pixel = (row * at(p.x_width) + column) * at(p.x_frames) + frame;
        f64::from(x[at(p.x_offset) + pixel * at(p.x_channels4) + channel / 4][channel % 4])
    };
    let (square, missing) = (side * side, at(p.missing));
    // The place of a pixel in its square, and back.
    let in_square =
        |down: usize, right: usize| if p.column_step == 1 { down * side + right } else { right * side + down };
    let pixels = (0..square).map(|pixel| (in_square(pixel / side, pixel % side), (pixel / side, pixel % side)));
    let pixels: std::collections::BTreeMap<usize, (usize, usize)> = pixels.collect();
    let times = places / square;
    for index in 0..at(p.pixels) * at(p.frames) {
        let (pixel, frame) = (index / at(p.frames), index % at(p.frames));
        let (row, column) = (pixel / at(p.width), pixel % at(p.width));
        let copied = |channel: usize| {
            let time = frame + missing;
            let own = time % times * square + in_square(row % side, column % side);
            let index = if by_place { own * at(p.channels) + channel } else { channel * places + own };
            let all = at(p.channels) * places / count;
            let source = if p.tiled == 1 { index % all } else { index / count };
            number(row / side, column / side, time / times, source)
        };
        let mean = |channel: usize| {
            // All numbers of the pixels and frames that become one. Missing frames are zero, or the
            // first.
            let unfolded = |index: usize| {
                let all = at(p.channels) * count / places;
                let (place, channel) =
                    if by_place { (index / all, index % all) } else { (index % places, index / places) };
                let (down, right) = pixels[&(place % square)];
                match (frame * times + place / square).checked_sub(missing) {
                    Some(time) => number(row * side + down, column * side + right, time, channel),
                    None if p.repeats_first == 1 => number(row * side + down, column * side + right, 0, channel),
                    None => 0.0,
                }
            };
            #[expect(clippy::cast_precision_loss, reason = "few numbers")]
            let all = count as f64;
            (0..count).map(|k| unfolded(channel * count + k)).sum::<f64>() / all
        };
        for group in 0..at(p.channels4) {
            let of_row = (column * at(p.frames) + frame) * at(p.channels4) + group;
            let element = at(p.y_offset) + row * at(p.y_row) + of_row;
            let before = if call.variant.flag("SUM") { call.get(2, output, element) } else { [0.0; 4] };
            let value = each(|lane| match group * 4 + lane {
                channel if channel >= at(p.channels) => f64::from(before[lane]),
                channel => {
                    let value = if call.variant.flag("COPIES") { copied(channel) } else { mean(channel) };
                    f64::from(before[lane]) + activate(value * f64::from(p.scale), activation)
                }
            });
            call.set(2, output, element, value);
        }
    }
}
