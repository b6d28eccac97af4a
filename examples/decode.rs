//! Decodes made-up latents and writes a .ppm picture:
//! `cargo run --release --example decode -- vae/ picture.ppm`

use wgvae::device::DeviceOptions;
use wgvae::{Checkpoint, Control, DecodeOptions, Device, HostTensor, LatentSpace, Latents, LoadOptions, Progress, Vae};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().ok_or("expected a .safetensors file or a diffusers folder")?;
    let picture = arguments.next().unwrap_or_else(|| "picture.ppm".to_owned());
    // The library is async. A browser would await instead.
    pollster::block_on(decode(&model, &picture))
}

async fn decode(model: &str, picture: &str) -> Result<()> {
    let device = Device::open(&DeviceOptions::default()).await?;
    let checkpoint = Checkpoint::open(model).await?;
    let mut vae = Vae::load(&device, &checkpoint, LoadOptions::default()).await?;

    let waves = waves(vae.config().latent_channels as usize, 32);
    let latents = Latents::new(waves)?.in_space(LatentSpace::Vae);
    let mut show = |progress: Progress<'_>| {
        eprintln!("{:>3} % {}", 100 * progress.done / progress.total, progress.stage);
    };
    let mut control = Control { progress: Some(&mut show), ..Control::default() };
    let decoded = vae.decode_with(&latents, &DecodeOptions::default(), &mut control).await?;
    println!("{} in {:.2} s, {} of memory", decoded.size, decoded.run.seconds, device.ledger().peak());

    let mut file = format!("P6\n{} {}\n255\n", decoded.size.width, decoded.size.height).into_bytes();
    file.extend(decoded.pixels.chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]));
    std::fs::write(picture, file)?;
    Ok(())
}

/// Makes latents `[1, channels, side, side]` with a wave in each channel.
fn waves(channels: usize, side: usize) -> HostTensor {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let value = |index: usize| {
        let (c, y, x) = (index / (side * side), index / side % side, index % side);
        2.0 * (0.05 * ((c + 2) * x) as f32 + 0.3 * y as f32 + c as f32).sin()
    };
    HostTensor { shape: vec![1, channels, side, side], data: (0..channels * side * side).map(value).collect() }
}
