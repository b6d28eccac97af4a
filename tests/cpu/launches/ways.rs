//! Predicts more ways to run models than whole images of three families: images and parts of clips
//! of other families, encodes, large images and budgets. `benches/results/ways.md` contains the
//! result.

use std::fmt::Write as _;

use test_kit::snapshot;
use wgvae::config::Family;
use wgvae::device::DeviceLimits;
use wgvae::{Bytes, DecodeOptions, EncodeOptions, Parking, Request, Size, Storage};

use super::devices::{DEVICES, Device};
use super::model::{Prediction, WORKGROUPS_PER_CORE, predict};
use super::table;

const MIB: u64 = 1 << 20;
/// [`Way::most_starved`] of most ways. It is larger than [`super::HOT`]: a default plan may be a
/// tenth slower than the fastest, and a budget leaves less room for bands.
const MOST_STARVED: f64 = 0.16;

/// One way to run a model.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    family: &'static str,
    /// Pixels: width, height.
    size: [u32; 2],
    what: What,
    budget: Option<Bytes>,
    parking: Parking,
    least_memory: bool,
    /// Most of the time that one kernel may take in launches that starve a GPU.
    most_starved: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Decode,
    Encode,
    /// Decode of a later part of a clip.
    Part,
}

const fn way(name: &'static str, family: &'static str, size: [u32; 2], what: What) -> Way {
    Way {
        name,
        family,
        size,
        what,
        budget: None,
        parking: Parking::Off,
        least_memory: false,
        most_starved: MOST_STARVED,
    }
}

const fn budget(name: &'static str, mebibytes: u64, parking: Parking) -> Way {
    Way { budget: Some(Bytes(mebibytes * MIB)), parking, ..way(name, "sd15", [1024, 1024], What::Decode) }
}

const fn starved(most_starved: f64, way: Way) -> Way {
    Way { most_starved, ..way }
}

const WAYS: [Way; 31] = [
    way("sd15 1024", "sd15", [1024, 1024], What::Decode),
    way("sd15 2048", "sd15", [2048, 2048], What::Decode),
    way("sd15 encode 1024", "sd15", [1024, 1024], What::Encode),
    budget("sd15 570 MiB, parking", 570, Parking::On),
    budget("sd15 570 MiB", 570, Parking::Off),
    budget("sd15 320 MiB, parking", 320, Parking::On),
    budget("sd15 320 MiB", 320, Parking::Off),
    budget("sd15 200 MiB, parking", 200, Parking::On),
    budget("sd15 200 MiB", 200, Parking::Off),
    way("taesd 1024", "taesd", [1024, 1024], What::Decode),
    way("taef2 1024", "taef2", [1024, 1024], What::Decode),
    way("qwen_image 1024", "qwen_image", [1024, 1024], What::Decode),
    Way { least_memory: true, ..way("qwen_image 1024, least memory", "qwen_image", [1024, 1024], What::Decode) },
    way("qwen_image encode 1024", "qwen_image", [1024, 1024], What::Encode),
    way("sana 1024", "sana", [1024, 1024], What::Decode),
    // Its lowest level has 32x32 pixels.
    starved(0.17, way("sana encode 1024", "sana", [1024, 1024], What::Encode)),
    way("dc_ae_lite 1024", "dc_ae_lite", [1024, 1024], What::Decode),
    way("wan21 1024", "wan21", [1024, 1024], What::Decode),
    way("wan21 part 832x480", "wan21", [832, 480], What::Part),
    way("wan21 part 1280x720", "wan21", [1280, 720], What::Part),
    way("seedvr2 part 832x480", "seedvr2", [832, 480], What::Part),
    way("seedvr2 part 1280x720", "seedvr2", [1280, 720], What::Part),
    // These parts are one frame of latents, and the widest layers have few of their pixels: too
    // little for the cores of a large GPU. The bounds hold what was reached, as shares of the time.
    starved(0.20, way("wan22 part 832x480", "wan22", [832, 480], What::Part)),
    starved(0.22, way("wan22 part 1280x704", "wan22", [1280, 704], What::Part)),
    starved(0.49, way("ltx2 part 832x480", "ltx2", [832, 480], What::Part)),
    starved(0.35, way("ltx2 part 1280x704", "ltx2", [1280, 704], What::Part)),
    starved(0.23, way("hunyuan_video15 part 832x480", "hunyuan_video15", [832, 480], What::Part)),
    starved(0.32, way("hunyuan_video15 part 1280x720", "hunyuan_video15", [1280, 720], What::Part)),
    starved(0.17, way("ltx2_3 part 1280x704", "ltx2_3", [1280, 704], What::Part)),
    way("taew2_2 part 1280x704", "taew2_2", [1280, 704], What::Part),
    starved(0.19, way("taeltx_2 part 1280x704", "taeltx_2", [1280, 704], What::Part)),
];

impl Way {
    fn request(&self) -> Request {
        let config = Family::find(self.family).unwrap().config();
        let space = wgvae::LatentSpace::Model;
        let [width, height] = self.size;
        let (memory_budget, parking, least_memory) = (self.budget, self.parking, self.least_memory);
        let factor = config.latent_factor(space);
        let latents = Size { width: width / factor, height: height / factor };
        let decode = DecodeOptions { memory_budget, parking, least_memory, ..DecodeOptions::default() };
        let encode = EncodeOptions { memory_budget, parking, least_memory, ..EncodeOptions::default() };
        match self.what {
            What::Decode => decode.request(latents, space, wgvae::images::Output::Rgba8),
            What::Part => decode.request(latents, space, wgvae::images::Output::Rgba8).of_clip(),
            What::Encode => encode.request(Size { width, height }),
        }
    }

    /// Plans it for a device with `limits`.
    fn plan(&self, limits: &DeviceLimits, storage: Storage) -> Option<wgvae::report::Plan> {
        let config = Family::find(self.family).unwrap().config();
        let plans = match wgvae::plan(&config, &self.request(), limits, storage) {
            Ok(plans) => plans,
            Err(wgvae::Error::Budget { .. }) => return None,
            Err(error) => panic!("{}: {error}", self.name),
        };
        Some(if self.what == What::Part { plans.later().clone() } else { plans.into_first() })
    }
}

#[test]
fn no_way_starves_a_gpu() {
    // Devices with equal limits have the same plan.
    let mut plans: Vec<((DeviceLimits, usize), Option<wgvae::report::Plan>)> = Vec::new();
    let mut rows = vec![String::new(); WAYS.len()];
    let mut starved = Vec::new();
    for device in &DEVICES {
        for (index, way) in WAYS.iter().enumerate() {
            let key = (device.limits(), index);
            let known = plans.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
                let plan = way.plan(&key.0, device.storage());
                plans.push((key, plan));
                plans.len() - 1
            });
            let cell = match &plans[known].1 {
                Some(plan) => {
                    let prediction = predict(plan, device);
                    starved.extend(starving(device, way, &prediction));
                    format!(" {:.1}, {} |", prediction.seconds * 1e3, plan.memory.peak().0 / MIB)
                }
                None => " no plan |".to_owned(),
            };
            rows[index].push_str(&cell);
        }
    }
    let mut text = table::WAYS_HEAD.to_owned();
    for device in &DEVICES {
        let _ = write!(text, " {} |", device.name);
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(DEVICES.len()));
    for (way, row) in WAYS.iter().zip(rows) {
        let _ = writeln!(text, "| {} |{row}", way.name);
    }
    snapshot::check("benches/results/ways.md", &text, "launches");
    assert!(
        starved.is_empty(),
        "these have fewer than {WORKGROUPS_PER_CORE} workgroups for a core in too much of the predicted time:\n{}",
        starved.join("\n"),
    );
}

/// Returns the kernels that starve `device` too long. Least memory is asked for at any speed.
fn starving(device: &Device, way: &Way, prediction: &Prediction) -> Vec<String> {
    let line = |(name, kind): (&&str, &super::model::Kind)| {
        let share = kind.starved / prediction.seconds;
        let milliseconds = prediction.seconds * 1e3;
        let text = format!("{}, {}: {name}: {:.1} % of {milliseconds:.1} ms", device.name, way.name, share * 100.0);
        (share >= way.most_starved && !way.least_memory).then_some(text)
    };
    prediction.kinds.iter().filter_map(line).collect()
}
