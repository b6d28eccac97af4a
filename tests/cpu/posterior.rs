//! Conversion of an encoder's output to latents: the distribution, samples, and the diffusion
//! model's scale.

use test_kit::fixture::Fixture;
use wgvae::HostTensor;
use wgvae::config::Packing;
use wgvae::images::Posterior;
use wgvae::internals::scale_latents;

/// Reads a tensor of the fixture, without its batch of one.
fn first(fixture: &Fixture, name: &str) -> HostTensor {
    let HostTensor { shape, data } = fixture.floats(name);
    assert_eq!(shape[0], 1);
    HostTensor { shape: shape[1..].to_vec(), data }
}

#[test]
fn mode_deviation_and_sample_are_those_of_diffusers() {
    let fixture = Fixture::open("posterior");
    let posterior = Posterior::new(first(&fixture, "moments"), 3).unwrap();
    assert_eq!(*posterior.mode(), first(&fixture, "mode"));
    let noise = first(&fixture, "noise");
    for (found, name) in
        [(posterior.deviation().unwrap(), "std"), (posterior.sample_with(&noise.data).unwrap(), "sample")]
    {
        let wanted = first(&fixture, name);
        assert_eq!(found.shape, wanted.shape);
        for (found, wanted) in found.data.iter().zip(&wanted.data) {
            assert!((found - wanted).abs() <= wanted.abs() * f32::EPSILON, "{name}: {found}, diffusers has {wanted}");
        }
    }
}

#[test]
fn samples_depend_on_seed_and_image_alone() {
    let fixture = Fixture::open("posterior");
    let posterior = Posterior::new(first(&fixture, "moments"), 3).unwrap();
    let sample = |seed, image| posterior.sample(seed, image).unwrap();
    assert_eq!(sample(5, 0), sample(5, 0));
    assert_ne!(sample(5, 0), sample(6, 0));
    assert_ne!(sample(5, 0), sample(5, 1));
    assert_eq!(sample(5, 0).shape, [3, 4, 5]);
}

/// Tests a known answer, so that a seed gives the same noise in every version. With mean 0 and
/// variance 1, the sample is the noise.
#[test]
fn noise_of_a_seed_never_changes() {
    let standard = HostTensor { shape: vec![2, 1, 5], data: vec![0.0; 10] };
    let sample = Posterior::new(standard, 1).unwrap().sample(42, 3).unwrap();
    assert_eq!(sample.data, [-0.427_327, -2.497_955_6, -0.593_485_53, -0.973_414_84, -1.505_585_1]);
}

#[test]
fn latents_that_are_certain_have_no_samples() {
    let latents = HostTensor { shape: vec![4, 1, 2], data: vec![0.25; 8] };
    let posterior = Posterior::new(latents.clone(), 4).unwrap();
    assert_eq!(*posterior.mode(), latents);
    assert_eq!(posterior.deviation(), None);
    let text = posterior.sample(1, 0).unwrap_err().to_string();
    assert!(text.contains("there is only the mode"), "{text}");
}

#[test]
fn moments_of_other_shapes_are_refused() {
    let new = |shape: &[usize], length: usize, channels| {
        let moments = HostTensor { shape: shape.to_vec(), data: vec![0.0; length] };
        Posterior::new(moments, channels).expect_err("another shape").to_string()
    };
    let text = new(&[6, 2, 2], 24, 4);
    assert!(text.contains("[8, h, w] or [4, h, w]") && text.contains("[6, 2, 2]"), "{text}");
    new(&[1, 8, 2, 2], 32, 4);
    new(&[8, 2, 2], 31, 4);
    new(&[0, 2, 2], 0, 0);
    new(&[8, usize::MAX, 2], 32, 4);
    let posterior = Posterior::new(HostTensor { shape: vec![2, 1, 2], data: vec![0.0; 4] }, 1).unwrap();
    let text = posterior.sample_with(&[1.0; 3]).unwrap_err().to_string();
    assert!(text.contains("2 values") && text.contains("found 3"), "{text}");
}

#[test]
fn each_channel_is_scaled_by_its_numbers() {
    let latents = HostTensor { shape: vec![2, 1, 2], data: vec![3.0, 5.0, 8.0, -1.0] };
    let scaled = scale_latents(&latents, &[2.0, 3.0], &[1.0, -1.0], 1, Packing::ByChannel).unwrap();
    assert_eq!(scaled, HostTensor { shape: vec![2, 1, 2], data: vec![1.0, 2.0, 3.0, 0.0] });
}

/// Tests patches: channel `c * 4 + py * 2 + px` of the diffusion model's pixel `[i, j]` is channel
/// `c` of pixel `[2 i + py, 2 j + px]`, as in diffusers' `Flux2Pipeline`.
#[test]
fn patches_become_channels() {
    let data: Vec<f32> = (0..2 * 2 * 6_u8).map(f32::from).collect();
    let latents = HostTensor { shape: vec![2, 2, 6], data };
    let scaled = scale_latents(&latents, &[1.0; 8], &[0.0; 8], 2, Packing::ByChannel).unwrap();
    assert_eq!(scaled.shape, [8, 1, 3]);
    let wanted = [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11], [12, 14, 16], [13, 15, 17], [18, 20, 22], [19, 21, 23]];
    assert_eq!(scaled.data, wanted.concat().into_iter().map(|value: u8| f32::from(value)).collect::<Vec<_>>());

    // Pixels that fill no patch are left out.
    let odd = HostTensor { shape: vec![1, 3, 3], data: (0..9_u8).map(f32::from).collect() };
    let scaled = scale_latents(&odd, &[1.0; 4], &[0.0; 4], 2, Packing::ByChannel).unwrap();
    assert_eq!(scaled, HostTensor { shape: vec![4, 1, 1], data: vec![0.0, 1.0, 3.0, 4.0] });

    let text = scale_latents(&odd, &[1.0; 8], &[0.0; 8], 2, Packing::ByChannel).unwrap_err().to_string();
    assert!(text.contains("[2, h, w]") && text.contains("[1, 3, 3]"), "{text}");
}
