//! Fixtures of every network but `AutoencoderKL`'s plain ones: one list for the tests on devices
//! and for those without.

/// Defines a test for each kind of network, which calls `family` with its fixtures.
#[macro_export]
macro_rules! each_network {
    ($family:ident) => {
        $crate::each_network! { $family:
            borders_of_kl: [
                "toy_reflect", "toy_reflect_direct", "toy_replicate", "toy_circular", "toy_circular_direct",
                "toy_hunyuan_image_reflect",
            ],
            flux2: ["toy_flux2", "toy_flux2_small_decoder"],
            flux2_relatives: ["toy_ideogram4", "toy_fibo2"],
            tiny: ["taesd", "taesd3", "toy_tiny"],
            taef2: ["taef2"],
            tiny_without_a_class: [
                "toy_taeqi2_1", "toy_taesana", "toy_taew2_1", "toy_lighttaew2_1", "toy_taew2_2", "toy_taeltx2_3",
            ],
            wan: ["toy_wan", "toy_wan_one_block", "lightvae"],
            wan_of_odd_widths: ["toy_wan_odd", "toy_wan_odd_levels"],
            wan_for_images: ["toy_qwen2d", "toy_wan_upscale2x"],
            rgba: ["toy_layered", "toy_ming_image"],
            qwen_image21: ["toy_qwen_image21", "toy_qwen_image21_narrow", "toy_qwen_image21_one_block"],
            wan22: ["toy_wan22", "toy_wan22_time", "toy_wan22_no_patches"],
            dc_ae: ["toy_sana", "toy_dc_ae", "toy_dc_ae_narrow", "toy_dc_ae_batch"],
            hunyuan_image: ["toy_hunyuan_image", "toy_hunyuan_image_uneven", "toy_hunyuan_image_narrow"],
            hunyuan_video: ["toy_hunyuan_video", "toy_hunyuan_video_uneven"],
            ltx2: ["toy_ltx2", "toy_ltx2_3"],
            seedvr: ["toy_seedvr"],
        }
    };
    ($family:ident: $($name:ident: $fixtures:expr,)*) => {
        $(
            #[test]
            fn $name() {
                $fixtures.into_iter().for_each($family);
            }
        )*
    };
}
