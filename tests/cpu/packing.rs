//! Packing of weights, by written-out examples.

use half::f16;
use test_kit::formula;
use test_kit::reference::graph::evaluate;
use test_kit::reference::interpreter::interpret;
use wgvae::Storage;
use wgvae::device::DeviceLimits;
use wgvae::images::Output;
use wgvae::kernels::weights::{WeightLayout, pack};
use wgvae::model::graph::{Conv2d, Ending, Graph, Shape, Transform, WeightSlice, Window};
use wgvae::model::tensors::file_tensors;
use wgvae::plan::{Plan, PlanOptions};

/// Packs `values`, times 1. Returns f32.
#[track_caller]
fn packed(values: &[f32], layout: WeightLayout, take: WeightSlice) -> Vec<f32> {
    let bytes = pack(values, layout, take, Storage::F32, 1.0);
    assert_eq!(layout.bytes(Storage::F32).0, bytes.len() as u64);
    bytemuck::pod_collect_to_vec(&bytes)
}

#[test]
fn a_linear_layer_is_transposed_and_padded() {
    let layout = WeightLayout::filter(1, 1, 3, 2);
    let found = packed(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], layout, WeightSlice::All);
    #[rustfmt::skip]
    assert_eq!(found, [
        1.0, 4.0, 0.0, 0.0,
        2.0, 5.0, 0.0, 0.0,
        3.0, 6.0, 0.0, 0.0,
        0.0, 0.0, 0.0, 0.0,
    ]);
}

/// Tests a filter like Wan's `time_conv`: `[2, 2, 3, 1, 1]`.
#[test]
fn taps_in_time_are_the_outermost_axis() {
    #[rustfmt::skip]
    let values = [
        // To channel 0, from channels 0 and 1.
        1.0, 2.0, 3.0,
        4.0, 5.0, 6.0,
        // To channel 1.
        7.0, 8.0, 9.0,
        10.0, 11.0, 12.0,
    ];
    let layout = WeightLayout::filter(3, 1, 2, 2);
    #[rustfmt::skip]
    assert_eq!(packed(&values, layout, WeightSlice::All), [
        1.0, 7.0, 0.0, 0.0,
        4.0, 10.0, 0.0, 0.0,
        0.0, 0.0, 0.0, 0.0,
        0.0, 0.0, 0.0, 0.0,

        2.0, 8.0, 0.0, 0.0,
        5.0, 11.0, 0.0, 0.0,
        0.0, 0.0, 0.0, 0.0,
        0.0, 0.0, 0.0, 0.0,

        3.0, 9.0, 0.0, 0.0,
        6.0, 12.0, 0.0, 0.0,
        0.0, 0.0, 0.0, 0.0,
        0.0, 0.0, 0.0, 0.0,
    ]);
}

/// Tests takes of `[1, 1, 3, 3, 3]`: all taps, one in time, their sum.
#[test]
fn a_filter_of_three_frames_is_taken_whole_or_in_part() {
    let values: Vec<f32> = (1_u8..=27).map(f32::from).collect();
    // One input and one output channel: every sixteenth number is not padding.
    let found = |times, take| -> Vec<f32> {
        let layout = WeightLayout::filter(times, 3, 1, 1);
        let packed = packed(&values, layout, take);
        assert!(packed.iter().enumerate().all(|(index, value)| index % 16 == 0 || *value == 0.0));
        packed.into_iter().step_by(16).collect()
    };
    assert_eq!(found(3, WeightSlice::All), values);
    assert_eq!(
        found(1, WeightSlice::Tap { taps: 3, index: 2 }),
        [19.0, 20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0]
    );
    assert_eq!(found(1, WeightSlice::SumOfTaps { taps: 3 }), [30.0, 33.0, 36.0, 39.0, 42.0, 45.0, 48.0, 51.0, 54.0]);
}

/// Tests takes of `[2, 3 * 2, 1, 1]`: three groups of two input channels.
#[test]
fn groups_of_input_channels_are_taken_alone_or_added_up() {
    let values: Vec<f32> = (1_u8..=12).map(f32::from).collect();
    let found = |start, count| -> Vec<f32> {
        let layout = WeightLayout::filter(1, 1, 2, 2);
        let packed = packed(&values, layout, WeightSlice::Inputs { start, count, of: 3 });
        // Output channels of the first input channel, then of the second.
        [0, 1, 4, 5].map(|index| packed[index]).to_vec()
    };
    assert_eq!(found(0, 1), [1.0, 7.0, 2.0, 8.0]);
    assert_eq!(found(2, 1), [5.0, 11.0, 6.0, 12.0]);
    assert_eq!(found(0, 2), [4.0, 16.0, 6.0, 18.0]);
    assert_eq!(found(0, 3), [9.0, 27.0, 12.0, 30.0]);
}

/// Tests takes of `[2, 2 * 2, 1, 1]`: two groups of two input channels, which become taps in time.
#[test]
fn groups_of_input_channels_become_taps_in_time() {
    let values: Vec<f32> = (1_u8..=8).map(f32::from).collect();
    let found = |latest_first| -> Vec<f32> {
        let layout = WeightLayout::filter(2, 1, 2, 2);
        let packed = packed(&values, layout, WeightSlice::InputTaps { taps: 2, latest_first });
        // Output channels of each input channel of the first tap, then of the second.
        [0, 1, 4, 5, 16, 17, 20, 21].map(|index| packed[index]).to_vec()
    };
    assert_eq!(found(false), [1.0, 5.0, 2.0, 6.0, 3.0, 7.0, 4.0, 8.0]);
    assert_eq!(found(true), [3.0, 7.0, 4.0, 8.0, 1.0, 5.0, 2.0, 6.0]);
}

/// Take like `SeedVR`'s `upscale_conv`: two frames of four pixels of two channels, which the file
/// stores by pixel, frame and channel.
const FRAMES: WeightSlice = WeightSlice::Frames { frames: 2, parts: 4, block: 2 };
const IN_ORDER: [f32; 16] = [
    0.0, 1.0, 4.0, 5.0, 8.0, 9.0, 12.0, 13.0, // The first frame.
    2.0, 3.0, 6.0, 7.0, 10.0, 11.0, 14.0, 15.0,
];

#[test]
fn frames_come_before_parts() {
    let rows: Vec<f32> = (0_u8..16).map(f32::from).collect();
    assert_eq!(packed(&rows, WeightLayout::Vector { channels: 16 }, FRAMES), IN_ORDER);
    let found = packed(&rows, WeightLayout::filter(1, 1, 1, 16), FRAMES);
    assert_eq!(found[..16], IN_ORDER);
    assert_eq!(found[16..], [0.0; 48]);
}

#[test]
fn frames_of_a_filter_with_taps_in_time() {
    // Output channel 1 of two frames of two parts is row 2 of the file, with two taps in time.
    let values = [1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 4.0, 40.0];
    let layout = WeightLayout::filter(2, 1, 1, 4);
    let found = packed(&values, layout, WeightSlice::Frames { frames: 2, parts: 2, block: 1 });
    assert_eq!(found[..4], [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(found[16..20], [10.0, 30.0, 20.0, 40.0]);
}

#[test]
fn halves_and_factors() {
    let layout = WeightLayout::filter(2, 1, 1, 1);
    for storage in [Storage::F16, Storage::PackedF16] {
        let bytes = pack(&[1.0, 0.1], layout, WeightSlice::All, storage, 0.5);
        assert_eq!(layout.bytes(storage).0, bytes.len() as u64);
        let halves: Vec<f16> = bytemuck::pod_collect_to_vec(&bytes);
        assert_eq!([halves[0], halves[16]], [f16::from_f32(0.5), f16::from_f32(0.05)]);
    }
}

/// Tests a graph that takes frames of a filter and of a bias. The file's tensors have all frames,
/// and the plan agrees with the definition.
#[test]
fn a_plan_takes_frames() {
    let mut graph = Graph::default();
    let x = graph.input(Shape::image(5, 7, 6), Transform::none(6));
    let mut conv = Conv2d::of("wide", Window::same(1)).taking(FRAMES);
    conv.bias.take = FRAMES;
    let x = graph.convolution("wide", x, 16, conv);
    graph.output(x, Ending::NONE);
    let tensors = file_tensors(&graph);
    assert_eq!((tensors["wide.weight"].as_slice(), tensors["wide.bias"].as_slice()), (&[16, 6, 1, 1][..], &[16][..]));
    let weights = formula::weights(&tensors);
    let input = formula::latents(&[6, 5, 7]);
    let options = PlanOptions::new(Storage::F32, Output::Raw);
    let plan = Plan::new(&graph, &DeviceLimits::webgpu_default(), &options).unwrap();
    let found = interpret(&plan, &weights, &input.data);
    let wanted = evaluate(&graph, &weights, &input.data);
    let error = found.iter().zip(&wanted).fold(0.0_f64, |most, (a, b)| most.max((f64::from(*a) - b).abs()));
    assert!(error <= 1e-6, "{error:.1e} from the definition");
}
