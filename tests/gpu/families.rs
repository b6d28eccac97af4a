//! Every network on a GPU, in every precision. See `check_family`.

use pollster::block_on;
use test_kit::each_network;
use test_kit::family::check_family;
use test_kit::golden::Golden;
use wgvae::{Device, Gpu, GpuOptions, Precision};

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

each_network!(family);
