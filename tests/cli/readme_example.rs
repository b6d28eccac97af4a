// Program of docs/guide/rust.md. readme.rs runs it and compares it with that page.

use wgvae::device::DeviceOptions;
use wgvae::files::{FileSource, read_latents};
use wgvae::{Checkpoint, Device, Latents, LoadOptions, Request, Vae};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    pollster::block_on(decode("sd-vae-ft-mse", "latents.safetensors", "picture.png"))
}

async fn decode(model: &str, latents: &str, picture: &str) -> Result<()> {
    let device = Device::open(&DeviceOptions::default()).await?;
    let checkpoint = Checkpoint::open(model).await?;
    let mut vae = Vae::load(&device, &checkpoint, LoadOptions::default()).await?;

    let latents = Latents::stored(read_latents(&FileSource::open(latents)?, None).await?)?;
    let request = Request::decode(latents.size(), latents.space(vae.config()));
    println!("will take {}", vae.planner().plan(&request)?.peak());
    let decoded = vae.decode(&latents).await?;

    image::save_buffer(picture, &decoded.pixels, decoded.size.width, decoded.size.height, image::ColorType::Rgba8)?;
    Ok(())
}
