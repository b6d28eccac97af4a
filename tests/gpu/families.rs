//! Every network on a GPU, in every precision. See `check_family`.

use pollster::block_on;
use wgvae::{Device, Gpu, GpuOptions, Precision};

use crate::family::check_family;
use crate::golden::Golden;

pub(crate) const PRECISIONS: [(Precision, bool); 3] =
    [(Precision::F32, false), (Precision::F16, false), (Precision::F16, true)];

/// Checks fixture `name` in all precisions.
fn family(name: &str) {
    let golden = Golden::open(name);
    for (precision, without_shader_f16) in PRECISIONS {
        let options = GpuOptions { without_shader_f16, ..GpuOptions::default() };
        let gpu = block_on(Gpu::request(&options)).unwrap();
        check_family(&golden, name, &Device::Gpu(gpu), precision);
    }
}

#[test]
fn kl() {
    family("toy_odd");
    family("toy_no_attention");
}

#[test]
fn borders_of_kl() {
    for name in [
        "toy_reflect",
        "toy_reflect_direct",
        "toy_replicate",
        "toy_circular",
        "toy_circular_direct",
        "toy_hunyuan_image_reflect",
    ] {
        family(name);
    }
}

#[test]
fn flux2() {
    family("toy_flux2");
    family("toy_flux2_small_decoder");
}

#[test]
fn flux2_relatives() {
    family("toy_ideogram4");
    family("toy_fibo2");
}

#[test]
fn tiny() {
    family("taesd");
    family("taesd3");
    family("toy_tiny");
}

#[test]
fn taef2() {
    family("taef2");
}

#[test]
fn tiny_without_a_class() {
    for name in ["toy_taeqi2_1", "toy_taesana", "toy_taew2_1", "toy_lighttaew2_1", "toy_taew2_2", "toy_taeltx2_3"] {
        family(name);
    }
}

#[test]
fn wan() {
    family("toy_wan");
    family("toy_wan_one_block");
    family("lightvae");
}

#[test]
fn wan_of_odd_widths() {
    family("toy_wan_odd");
    family("toy_wan_odd_levels");
}

#[test]
fn wan_for_images() {
    family("toy_qwen2d");
    family("toy_wan_upscale2x");
}

#[test]
fn rgba() {
    family("toy_layered");
    family("toy_ming_image");
}

#[test]
fn qwen_image21() {
    family("toy_qwen_image21");
    family("toy_qwen_image21_narrow");
    family("toy_qwen_image21_one_block");
}

#[test]
fn wan22() {
    family("toy_wan22");
    family("toy_wan22_time");
    family("toy_wan22_no_patches");
}

#[test]
fn dc_ae() {
    family("toy_sana");
    family("toy_dc_ae");
    family("toy_dc_ae_narrow");
    family("toy_dc_ae_batch");
}

#[test]
fn hunyuan_image() {
    family("toy_hunyuan_image");
    family("toy_hunyuan_image_uneven");
    family("toy_hunyuan_image_narrow");
}

#[test]
fn hunyuan_video() {
    family("toy_hunyuan_video");
    family("toy_hunyuan_video_uneven");
}

#[test]
fn ltx2() {
    family("toy_ltx2");
    family("toy_ltx2_3");
}

#[test]
fn seedvr() {
    family("toy_seedvr");
}
