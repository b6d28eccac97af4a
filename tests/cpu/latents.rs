//! Latents in files: the choice of the tensor, and detection of the VAE's own scale.

use pollster::block_on;
use wgvae::config::{AutoencoderConfig, Family};
use wgvae::files::{MemorySource, StoredLatents, StoredSpace, read_images, read_latents, write_latents};
use wgvae::internals::npy::write_npy;
use wgvae::internals::safetensors::{read_header, write_safetensors};
use wgvae::{HostTensor, LatentSpace, Latents, Result};

fn values() -> HostTensor {
    HostTensor { shape: vec![1, 1, 2, 2], data: vec![0.5, -1.0, 2.0, 3.25] }
}

fn sd15() -> AutoencoderConfig {
    Family::find("sd15").unwrap().config()
}

fn scaled(factor: f32) -> Vec<f32> {
    values().data.iter().map(|value| value * factor).collect()
}

/// Returns the empty tensor that `ComfyUI`'s `SaveLatent` writes beside the values.
fn nothing() -> HostTensor {
    HostTensor { shape: vec![0], data: Vec::new() }
}

fn read(tensors: &[(&str, &HostTensor)], name: Option<&str>) -> Result<StoredLatents> {
    let file = write_safetensors(tensors).unwrap();
    block_on(read_latents(&MemorySource::new("a.latent", file), name))
}

#[test]
fn a_file_of_comfyui_holds_the_vaes_own_values() {
    let stored = read(&[("latent_tensor", &values()), ("latent_format_version_0", &nothing())], None).unwrap();
    assert_eq!(stored, StoredLatents { tensor: values(), space: StoredSpace::OfComfyUi });
    assert_eq!(Latents::stored(stored).unwrap().space(&sd15()), LatentSpace::Vae);
}

/// Tests `ComfyUI`'s files by model. FLUX.2's VAE there undoes patches and
/// batch norm, LTX-2's undoes the statistics, and SeedVR2's its factor, so saved latents have them.
/// DC-AE's latents are scaled by a factor, which the sampler has undone.
#[test]
fn a_file_of_comfyui_is_as_the_model_needs() {
    for (family, shape, space) in [
        ("flux2", vec![1, 128, 1, 2], LatentSpace::Model),
        ("flux2", vec![1, 32, 2, 4], LatentSpace::Vae),
        ("taef2", vec![1, 128, 1, 2], LatentSpace::Model),
        ("ideogram4", vec![1, 128, 1, 2], LatentSpace::Model),
        ("fibo2", vec![1, 32, 2, 4], LatentSpace::Vae),
        ("ltx2", vec![1, 128, 1, 1, 2], LatentSpace::Model),
        ("taeltx2_3", vec![1, 128, 1, 1, 2], LatentSpace::Model),
        ("dc_ae_f64c128_in", vec![1, 128, 1, 2], LatentSpace::Vae),
        ("dc_ae_f64c128_mix", vec![1, 128, 1, 2], LatentSpace::Vae),
        ("seedvr2", vec![1, 16, 1, 4, 4], LatentSpace::Model),
        ("wan21", vec![1, 16, 1, 4, 4], LatentSpace::Vae),
        ("sd15", vec![1, 4, 8, 8], LatentSpace::Vae),
    ] {
        let tensor = HostTensor { shape, data: vec![0.5; 256] };
        let stored = read(&[("latent_tensor", &tensor), ("latent_format_version_0", &nothing())], None).unwrap();
        assert_eq!(stored, StoredLatents { tensor, space: StoredSpace::OfComfyUi });
        let config = Family::find(family).unwrap().config();
        let latents = Latents::stored(stored).unwrap();
        assert_eq!(latents.space(&config), space, "{family}");
        latents.check_channels(&config).unwrap();
        assert_eq!(latents.in_space(LatentSpace::Vae).space(&config), LatentSpace::Vae, "{family}");
    }
}

/// Tests old files of `ComfyUI`: its `LoadLatent` multiplies them by the inverse of SD 1's factor,
/// for every model.
#[test]
fn an_old_file_of_comfyui_has_them_times_the_factor_of_sd_1() {
    let stored = read(&[("latent_tensor", &values())], None).unwrap();
    assert_eq!(stored.tensor.data, scaled(1.0 / 0.18215));
    assert_eq!(stored.space.of(&sd15(), 4), LatentSpace::Vae);
    assert_eq!(read(&[("latent_tensor", &values())], Some("latent_tensor")).unwrap(), stored, "by its name");
}

#[test]
fn other_names_are_as_the_diffusion_model_leaves_them() {
    let plain = StoredLatents { tensor: values(), space: StoredSpace::Unstated };
    assert_eq!(read(&[("latents", &values())], None).unwrap(), plain);
    assert_eq!(
        read(&[("latent_tensor", &nothing()), ("latents", &values())], None).unwrap(),
        plain,
        "latents go first"
    );
    assert_eq!(read(&[("latent_tensor", &nothing()), ("z", &values())], Some("z")).unwrap(), plain);
    assert_eq!(Latents::stored(plain).unwrap().space(&sd15()), LatentSpace::Model);
}

#[test]
fn what_is_written_is_read_back_with_its_scale() {
    for space in [LatentSpace::Model, LatentSpace::Vae] {
        let latents = StoredLatents { tensor: values(), space: space.into() };
        let file = write_latents(&values(), space, &[("family", "sd15".to_owned())]).unwrap();
        assert_eq!(block_on(read_latents(&MemorySource::new("a.safetensors", file.clone()), None)).unwrap(), latents);
        let header = block_on(read_header(&MemorySource::new("a.safetensors", file))).unwrap();
        assert_eq!(header.metadata["family"], "sd15");
        assert_eq!(header.metadata["unscaled"], space.is_unscaled().to_string());
    }
    let short = HostTensor { shape: vec![5], data: vec![0.0; 4] };
    let text = write_latents(&short, LatentSpace::Model, &[]).unwrap_err().to_string();
    assert!(text.contains("data of shape [5]") && text.contains("4 elements"), "{text}");
}

#[test]
fn images_are_the_tensor_of_that_name_or_a_whole_npy_file() {
    let images = |file: Vec<u8>, name| block_on(read_images(&MemorySource::new("a", file), name));
    let file = |name: &str| write_safetensors(&[(name, &values()), ("other", &nothing())]).unwrap();
    assert_eq!(images(file("image"), None).unwrap(), values());
    assert_eq!(images(file("images"), None).unwrap(), values());
    assert_eq!(images(file("z"), Some("z")).unwrap(), values());
    assert_eq!(images(write_npy(&values()), None).unwrap(), values());
    let text = images(file("z"), None).unwrap_err().to_string();
    assert!(text.contains("images in a") && text.contains("\"image\" or \"images\""), "{text}");
    let text = images(write_npy(&values()), Some("z")).unwrap_err().to_string();
    assert!(text.contains("a .npy file has one array"), "{text}");
}

#[test]
fn a_file_without_latents_says_what_it_has() {
    let message = read(&[("z", &values())], None).unwrap_err().to_string();
    for part in ["a.latent", "\"latents\" or \"latent_tensor\"", "only \"z\""] {
        assert!(message.contains(part), "{message}");
    }
}
