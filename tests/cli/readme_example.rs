// Program of docs/guide/rust.md. readme.rs runs it and compares it with that page.

use wgvae::{
    Checkpoint, Control, DecodeOptions, FileSource, Gpu, GpuOptions, Latents, LoadOptions, Pixels, Vae, Variant,
    read_latents,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    pollster::block_on(decode("sd-vae-ft-mse", "latents.safetensors", "picture.png"))
}

async fn decode(model: &str, latents: &str, picture: &str) -> Result<()> {
    let gpu = Gpu::request(&GpuOptions::default()).await?;
    let checkpoint = Checkpoint::open(model, Variant::Default).await?;
    let mut vae = Vae::load(&gpu, &checkpoint, LoadOptions::default()).await?;

    let latents = Latents::stored(read_latents(&FileSource::open(latents)?, None).await?)?;
    let options = DecodeOptions::default();
    let request = options.request(latents.size(), latents.space());
    println!("will take {}", vae.planner().plan(&request)?.peak());
    let decoded = vae.decode(&latents, 0, &options, &mut Control::default()).await?;

    let Pixels::Rgba8(pixels) = decoded.pixels else { return Err("a picture was asked for".into()) };
    image::save_buffer(picture, &pixels, decoded.size.width, decoded.size.height, image::ColorType::Rgba8)?;
    Ok(())
}
