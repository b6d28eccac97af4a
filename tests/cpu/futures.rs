//! The library's futures run on any thread, as servers need: each is made here and awaited on
//! another thread. `Device` stands for a GPU as well as for the cores.

use std::future::Future;

use pollster::block_on;
use test_kit::clip::{frames_of, latents_of, size_of_frame};
use test_kit::family::checkpoint;
use test_kit::golden::Golden;
use wgvae::device::{CpuOptions, DeviceChoice, DeviceOptions};
use wgvae::files::{FileSource, read_images, read_latents};
use wgvae::images::{PixelFormat, RowPixels, Rows};
use wgvae::selftest::{self, SelftestControl};
use wgvae::tuning::TuneOptions;
use wgvae::{
    Checkpoint, Control, DecodeOptions, Device, Directions, EncodeOptions, Gpu, GpuOptions, HostTensor, Images,
    LatentSpace, Latents, LoadOptions, Progress, Request, Result, Vae,
};

/// Awaits `work` on a thread of its own.
fn elsewhere<T: Send>(work: impl Future<Output = Result<T>> + Send) -> T {
    std::thread::scope(|threads| threads.spawn(|| block_on(work)).join().unwrap()).unwrap()
}

/// Returns the model of a fixture with both directions, loaded elsewhere.
fn load(golden: &Golden, clips: bool) -> Vae {
    let checkpoint = checkpoint(golden);
    elsewhere(async move {
        let cpu = CpuOptions { threads: Some(1), ..CpuOptions::default() };
        let options = DeviceOptions { choice: DeviceChoice::Cpu, cpu, ..DeviceOptions::default() };
        let device = Device::open(&options).await?;
        let options = LoadOptions { directions: Directions::Both, clips, ..LoadOptions::default() };
        Vae::load(&device, &checkpoint, options).await
    })
}

#[test]
fn images_may_be_decoded_and_encoded_on_any_thread() {
    let golden = Golden::open("toy_odd");
    let (mut vae, latents) = (load(&golden, false), Latents::new(golden.latents()).unwrap());
    let here = block_on(vae.decode(&latents)).unwrap();
    let request = Request::decode(latents.size(), latents.space(vae.config()));
    elsewhere(async { vae.prepare(&request).await.map(|_| ()) });
    assert_eq!(elsewhere(vae.decode(&latents)).pixels, here.pixels);

    let (mut rows, mut steps) = (Vec::new(), 0);
    let mut sink = |part: Rows<'_>| {
        let RowPixels::Rgba8(bytes) = part.pixels else { panic!("asked for bytes") };
        rows.extend_from_slice(bytes);
        Ok(())
    };
    let mut show = |_: Progress<'_>| steps += 1;
    let mut control = Control { progress: Some(&mut show), ..Control::default() };
    let options = DecodeOptions::default();
    elsewhere(vae.decode_rows(&latents, PixelFormat::Rgba8, &options, &mut control, &mut sink));
    assert_eq!(rows, here.pixels);
    assert!(steps > 0, "no progress");
    let preview = elsewhere(vae.preview(&latents, 16)).size;
    assert_eq!(preview.width.max(preview.height), 16);

    let image = Images::new(HostTensor { shape: vec![1, 3, 32, 32], data: vec![0.25; 3 * 32 * 32] }).unwrap();
    let wanted = block_on(vae.encode(&image)).unwrap().moments;
    assert_eq!(elsewhere(vae.encode(&image)).moments, wanted);
}

#[test]
fn clips_may_be_decoded_and_encoded_on_any_thread() {
    let golden = Golden::open("clip_wan");
    let mut vae = load(&golden, true);
    let (latents, pixels) = (latents_of(&golden.latents()), golden.pixels().unwrap());
    let mut frames = 0;
    elsewhere(async {
        let options = DecodeOptions::default();
        let mut clip = vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &options).await?;
        let mut sink = |_| {
            frames += 1;
            Ok(())
        };
        for index in 0..latents.count() {
            clip.decode(latents.at(index), &mut Control::default(), &mut sink).await?;
        }
        clip.finish(&mut Control::default(), &mut sink).await
    });
    assert_eq!(frames, pixels.shape[2]);
    elsewhere(async {
        let mut clip = vae.encode_clip(size_of_frame(&pixels), &EncodeOptions::default()).await?;
        let shape = [&[1], &pixels.shape[1..2], &pixels.shape[3..]].concat();
        let frame = Images::new(HostTensor { shape, data: frames_of(&pixels, 0..1) })?;
        clip.encode(&frame, &mut Control::default()).await
    });
}

/// Compiles if the futures are `Send` that only a GPU can run, and those of single files.
#[expect(dead_code, reason = "compiling it is the test")]
fn other_futures(gpu: &Gpu, vae: &mut Vae, checkpoint: &Checkpoint, source: FileSource) {
    fn is_send(_: impl Send) {}
    is_send(Gpu::request(&GpuOptions::default()));
    is_send(wgvae::device::adapters(None));
    is_send(gpu.tune(&TuneOptions::default()));
    is_send(selftest::run(&GpuOptions::default(), checkpoint, &source, &mut SelftestControl::default()));
    is_send(vae.read_picture());
    is_send((read_latents(&source, None), read_images(&source, None)));
    is_send((Checkpoint::open("folder"), Checkpoint::from_source(Box::new(source), None)));
}
