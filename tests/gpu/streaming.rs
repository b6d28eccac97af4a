//! Rows delivered during a decode, decodes that are dropped, and transfers in between.

use std::future::Future as _;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pollster::block_on;
use wgvae::images::{PixelFormat, RowPixels, Rows};
use wgvae::{
    Bytes, Control, DecodeOptions, Error, Gpu, GpuOptions, LatentSpace, Latents, LoadOptions, Parking, Plans,
    Precision, Vae,
};

use crate::decode::{checkpoint, fixture};

/// Loads a fixture's model, with its weights on the host too. Returns it with its latents.
pub(crate) fn load(case: &str) -> (Gpu, Vae, Latents) {
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let fixture = fixture(case);
    let options = LoadOptions { precision: Precision::F32, weights_on_host: true, ..LoadOptions::default() };
    let vae = block_on(Vae::load(&gpu, &checkpoint(&fixture.config), options)).unwrap();
    (gpu, vae, Latents::new(fixture.latents).unwrap())
}

/// Returns options with the smallest budget, and with one halfway to the whole plan's peak.
fn budgets(vae: &Vae, latents: &Latents, format: PixelFormat) -> [DecodeOptions; 2] {
    let peak = vae
        .planner()
        .plan(&DecodeOptions::default().request(latents.size(), LatentSpace::Model, format))
        .unwrap()
        .peak();
    let within =
        |budget| DecodeOptions { memory_budget: Some(budget), parking: Parking::On, ..DecodeOptions::default() };
    let Err(Error::Budget { smallest: needed, .. }) = vae
        .planner()
        .plan(&within(Bytes(1)).request(latents.size(), LatentSpace::Model, format))
        .map(Plans::into_first)
    else {
        panic!("one byte")
    };
    [within(needed), within(Bytes((needed.0 + peak.0) / 2))]
}

#[test]
fn rows_make_up_the_image() {
    let (_, mut vae, latents) = load("toy_wide");
    let whole = DecodeOptions::default();
    for format in [PixelFormat::Rgba8, PixelFormat::Raw] {
        let [least, half] = budgets(&vae, &latents, format);
        for options in [whole, least, half] {
            let image = block_on(vae.decode_with(&latents, &options, &mut Control::default())).unwrap();
            // A budget for bytes may be too small for floats.
            let floats = match format {
                PixelFormat::Rgba8 => Vec::new(),
                PixelFormat::Raw => {
                    block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap().pixels
                }
            };
            let (mut next, mut bands) = (0, 0);
            let mut check = |rows: Rows<'_>| {
                assert_eq!((rows.image, rows.rows.start), (image.size, next));
                next = rows.rows.end;
                bands += 1;
                let (start, width) = (rows.rows.start as usize, image.size.width as usize);
                match &rows.pixels {
                    RowPixels::Rgba8(data) => {
                        assert_eq!(format, PixelFormat::Rgba8);
                        assert_eq!(**data, image.pixels[start * width * 4..][..rows.rows.len() * width * 4]);
                    }
                    RowPixels::Raw(data) => {
                        assert_eq!(format, PixelFormat::Raw);
                        for (plane, values) in data.chunks_exact(rows.rows.len() * width).enumerate() {
                            let first = (plane * image.size.height as usize + start) * width;
                            assert_eq!(values, &floats[first..][..values.len()]);
                        }
                    }
                }
                Ok(())
            };
            let done =
                block_on(vae.decode_rows(&latents, format, &options, &mut Control::default(), &mut check)).unwrap();
            assert_eq!((next, done.size), (image.size.height, image.size));
            println!("{format:?} {:?}: {bands} bands", options.memory_budget);
        }
    }
}

#[test]
fn an_error_of_the_sink_stops_the_decode_and_the_next_one_works() {
    let (_, mut vae, latents) = load("toy_wide");
    let options = DecodeOptions::default();
    let whole = block_on(vae.decode(&latents)).unwrap();
    let mut calls = 0;
    let mut full = |_: Rows<'_>| {
        calls += 1;
        Err(Error::Io { path: "out.png".to_owned(), source: std::io::ErrorKind::StorageFull.into() })
    };
    let error = block_on(vae.decode_rows(&latents, PixelFormat::Rgba8, &options, &mut Control::default(), &mut full))
        .unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert_eq!(calls, 1);
    let again = block_on(vae.decode(&latents)).unwrap();
    assert_eq!(whole.pixels, again.pixels);
}

/// Polls a decode `polls` times and drops it. Returns true if it was done by then.
fn drop_after(polls: usize, vae: &mut Vae, latents: &Latents, options: &DecodeOptions) -> bool {
    // One submission per step, so that work is in flight at every poll.
    let mut control = Control { submission_target: Some(Duration::ZERO), ..Control::default() };
    let mut decode = std::pin::pin!(vae.decode_raw(latents, options, &mut control));
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..polls {
        if let Poll::Ready(result) = decode.as_mut().poll(&mut context) {
            result.unwrap();
            return true;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    false
}

#[test]
fn a_decode_may_be_dropped_at_any_point() {
    let (gpu, mut vae, latents) = load("toy_wide");
    let whole = DecodeOptions::default();
    let [_, half] = budgets(&vae, &latents, PixelFormat::Raw);
    for options in [whole, half] {
        let wanted = block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap().pixels;
        let created = gpu.ledger().created();
        let mut dropped = 0;
        for polls in (1..4).chain((1..30).map(|step| step * step * 4)) {
            if drop_after(polls, &mut vae, &latents, &options) {
                break;
            }
            dropped += 1;
            let again = block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap();
            assert_eq!(again.pixels, wanted, "after {polls} polls");
        }
        println!("dropped {dropped} times");
        // The progress of a poll depends on the load of the machine.
        assert!(dropped >= 1);
        assert_eq!(gpu.ledger().created(), created, "nothing was allocated anew");
    }
}

#[test]
fn transfers_are_part_of_submissions() {
    let (_, mut vae, latents) = load("toy_wide");
    let [least, _] = budgets(&vae, &latents, PixelFormat::Rgba8);
    let plan = vae
        .planner()
        .plan(&least.request(latents.size(), LatentSpace::Model, PixelFormat::Rgba8))
        .map(Plans::into_first)
        .unwrap();
    let decoded = block_on(vae.decode_with(&latents, &least, &mut Control::default())).unwrap();
    assert!(plan.transferred() > Bytes(0));
    let mut next = 0;
    for submission in &decoded.run.submissions {
        assert_eq!(submission.steps.start, next);
        next = submission.steps.end;
    }
    assert_eq!(next, plan.steps.len());
    println!("{} steps, {} moved, {} submissions", next, plan.transferred(), decoded.run.submissions.len());
}
