//! Twin: unfolds places into channels and takes means, or copies channels and folds them into
//! places.

use wgvae::kernels::regroup::RegroupParams;

use super::{Call, at, each};

pub(super) fn run(call: &mut Call<'_>) {
    let p: RegroupParams = call.params();
    let (input, output) = (call.storage("Stored"), call.storage("Output"));
    let by_place = call.variant.flag("BY_PLACE");
    call.assert_covers(p.pixels * p.channels4);
    let x = call.vec4s(1, input);
    let [side, places, count] = [p.side, p.places, p.count].map(at);
    let number = |row: usize, column: usize, channel: usize| {
        let pixel = at(p.x_offset) + (row * at(p.x_width) + column) * at(p.x_channels4);
        f64::from(x[pixel + channel / 4][channel % 4])
    };
    for pixel in 0..at(p.pixels) {
        let (row, column) = (pixel / at(p.width), pixel % at(p.width));
        let copied = |channel: usize| {
            let own = places - side * side + row % side * side + column % side;
            let index = if by_place { own * at(p.channels) + channel } else { channel * places + own };
            number(row / side, column / side, index / count)
        };
        let mean = |channel: usize| {
            // All numbers of the pixels that become one: a channel's places in time are zero but
            // the last.
            let unfolded = |index: usize| {
                let all = at(p.channels) * count / places;
                let (place, channel) =
                    if by_place { (index / all, index % all) } else { (index % places, index / places) };
                match place.checked_sub(places - side * side) {
                    Some(place) => number(row * side + place / side, column * side + place % side, channel),
                    None => 0.0,
                }
            };
            #[expect(clippy::cast_precision_loss, reason = "few numbers")]
            let all = count as f64;
            (0..count).map(|k| unfolded(channel * count + k)).sum::<f64>() / all
        };
        for group in 0..at(p.channels4) {
            let element = at(p.y_offset) + row * at(p.y_row) + column * at(p.channels4) + group;
            let before = if call.variant.flag("SUM") { call.get(2, output, element) } else { [0.0; 4] };
            let value = each(|lane| match group * 4 + lane {
                channel if channel >= at(p.channels) => f64::from(before[lane]),
                channel => {
                    let value = if call.variant.flag("COPIES") { copied(channel) } else { mean(channel) };
                    let value = value * f64::from(p.scale);
                    let value = if call.variant.flag("RELU") { value.max(0.0) } else { value };
                    f64::from(before[lane]) + value
                }
            });
            call.set(2, output, element, value);
        }
    }
}
