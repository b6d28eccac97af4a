//! The format of the memory report, and the families that its program knows.

use serde_json::{Value, json};
use test_kit::repository;
use wgvae::Bytes;
use wgvae::Direction::Encode;
use wgvae::config::{FAMILIES, Family};
use wgvae_memory_report::{Measurement, MemoryReport, States, VERSION};

/// Compares the table of the report's program with the library: channels of latents, and input
/// channels of the largest convolution of decoder and encoder, of each `AutoencoderKL`.
#[test]
fn the_estimates_know_the_channels_of_every_family() {
    let path = repository().join("crates/memory-report/src/view/estimates.js");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, table) = text.split_once("const COVERED = new Map([\n").unwrap();
    let (table, _) = table.split_once("]);").unwrap();
    let row = |family: &Family| {
        let config = family.config();
        let network = config.network.kl()?;
        let (decode, encode) = (network.decoder_channels()[1], network.block_out_channels[0]);
        let (name, latents) = (family.name, config.latent_channels);
        Some(format!("  ['{name}', {{ latents: {latents}, decode: {decode}, encode: {encode} }}],\n"))
    };
    assert_eq!(table, FAMILIES.iter().filter_map(row).collect::<String>());
}

/// Returns a report with rows of an image and of a clip that succeeded, and of an image and of a
/// clip that failed.
fn example() -> Value {
    let limits = serde_json::to_value(wgvae::device::DeviceLimits::webgpu_default()).unwrap();
    let row = json!({
        "adapter": 0, "model": "sd15", "weights": "random", "operation": "decode", "width": 512, "height": 256, "storage": "f16",
        "budget": null,
        "predicted": { "peak": 1100, "weights": 100, "slots": 900, "parameters": 60, "staging": 40, "host": 0, "transferred": 0 },
        "measured": {
            "ledger_peak": 1100, "allocator_allocated": 1200, "allocator_reserved": 1800, "peak_rss": null,
            "load_seconds": 0.5, "prepare_seconds": 0.25, "seconds": 1.5,
        },
        "error": null,
    });
    let mut failed = row.clone();
    (failed["measured"], failed["error"], failed["budget"]) = (Value::Null, json!("out of memory"), json!(4096));
    failed["operation"] = json!("encode");
    let mut clip = row.clone();
    (clip["frames"], clip["predicted"]["states"]) = (json!(17), json!({ "total": 250, "gpu": 200 }));
    (clip["predicted"]["slots"], clip["predicted"]["host"]) = (json!(700), json!(50));
    let mut without_plan = failed.clone();
    (without_plan["frames"], without_plan["predicted"]) = (json!(5), Value::Null);
    json!({
        "schema": "wgvae-memory-report", "version": VERSION, "wgvae": "0.1.0",
        "machine": { "os": "linux", "arch": "x86_64", "cpus": 2 },
        "adapters": [{
            "name": "card", "backend": "Vulkan", "device_type": "DiscreteGpu", "driver": "driver 1.2", "pci_id": "10de:1234",
            "limits": limits,
        }],
        "measurements": [row, failed, clip, without_plan],
    })
}

/// Returns the example in format 1, which has no clips.
fn example_of_format_1() -> Value {
    let mut report = example();
    report["version"] = json!(1);
    report["measurements"].as_array_mut().unwrap().truncate(2);
    report
}

#[test]
fn a_report_survives_reading_and_writing() {
    let report = MemoryReport::from_json("a.json", &example().to_string()).unwrap();
    assert_eq!(serde_json::to_value(&report).unwrap(), example());
    assert_eq!((report.measurements[1].operation, report.measurements[1].budget), (Encode, Some(Bytes(4096))));
}

#[test]
fn clips_are_told_from_images() {
    let mut report = example();
    report["measurements"][0]["frames"] = json!(1);
    let report = MemoryReport::from_json("a.json", &report.to_string()).unwrap();
    let told: Vec<bool> = report.measurements.iter().map(Measurement::is_clip).collect();
    assert_eq!(told, [false, false, true, true]);
    let clip = &report.measurements[2];
    assert_eq!(clip.predicted.unwrap().states, Some(States { total: Bytes(250), gpu: Bytes(200) }));
}

#[test]
fn reports_of_the_first_format_are_read() {
    let old = example_of_format_1();
    let report = MemoryReport::from_json("old.json", &old.to_string()).unwrap();
    assert_eq!(serde_json::to_value(&report).unwrap(), old);
    assert!(!report.measurements.iter().any(Measurement::is_clip));
}

#[test]
fn the_schema_describes_what_is_written_and_no_more() {
    let path = repository().join("results/schema/memory-report.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors = |report: &Value| validator.iter_errors(report).map(|error| error.to_string()).collect::<Vec<String>>();
    assert_eq!(errors(&example()), [""; 0]);
    assert_eq!(errors(&example_of_format_1()), [""; 0]);
    // The schema rejects every change that the reader rejects, as far as a schema can.
    for (what, change) in broken() {
        if !NOT_OF_THE_SCHEMA.contains(&what) {
            assert!(!validator.is_valid(&change), "{what}");
        }
    }
    let results = repository().join("results");
    for entry in std::fs::read_dir(results).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".json") {
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(errors(&serde_json::from_str(&text).unwrap()), [""; 0], "{name}");
            MemoryReport::from_json(&name, &text).unwrap();
        }
    }
}

/// Faults that a schema cannot find, because it does not compare numbers.
const NOT_OF_THE_SCHEMA: [&str; 3] =
    ["an adapter that is not listed", "parts that are not the peak", "more states on the GPU than there are"];

/// Returns the example several times, each with one fault.
fn broken() -> Vec<(&'static str, Value)> {
    let changed = |pointer: &str, value: Value| {
        let mut report = example();
        *report.pointer_mut(pointer).unwrap() = value;
        report
    };
    let mut unknown = example();
    unknown["colour"] = json!("blue");
    let mut missing = example();
    missing.as_object_mut().unwrap().remove("adapters");
    let added = |mut report: Value, pointer: &str, field: &str, value: Value| {
        report.pointer_mut(pointer).unwrap()[field] = value;
        report
    };
    let mut without_states = example();
    without_states["measurements"][2]["predicted"].as_object_mut().unwrap().remove("states");
    without_states["measurements"][2]["predicted"]["slots"] = json!(900);
    let no_states = json!({ "total": 0, "gpu": 0 });
    vec![
        ("another schema", changed("/schema", json!("someone-elses"))),
        ("a newer version", changed("/version", json!(VERSION + 1))),
        ("version 0", changed("/version", json!(0))),
        ("an unknown field", unknown),
        ("no adapters", missing),
        ("an adapter that is not listed", changed("/measurements/0/adapter", json!(1))),
        ("no width", changed("/measurements/0/width", json!(0))),
        ("a huge height", changed("/measurements/0/height", json!(u32::MAX))),
        ("an unknown storage", changed("/measurements/0/storage", json!("f8"))),
        ("parts that are not the peak", changed("/measurements/0/predicted/slots", json!(u64::MAX))),
        ("both result and error", changed("/measurements/0/error", json!("oh"))),
        ("neither result nor error", changed("/measurements/1/error", Value::Null)),
        ("time before it began", changed("/measurements/0/measured/seconds", json!(-1.0))),
        ("negative bytes", changed("/measurements/0/measured/ledger_peak", json!(-1))),
        ("no frames", changed("/measurements/2/frames", json!(0))),
        ("frames that are null", changed("/measurements/2/frames", Value::Null)),
        ("a clip without states", without_states),
        ("states that are null", added(example(), "/measurements/0/predicted", "states", Value::Null)),
        ("an image with states", added(example(), "/measurements/0/predicted", "states", no_states.clone())),
        ("one frame with states", changed("/measurements/2/frames", json!(1))),
        ("more states on the GPU than there are", changed("/measurements/2/predicted/states/total", json!(199))),
        ("an unknown field of states", added(example(), "/measurements/2/predicted/states", "host", json!(50))),
        ("a clip of format 1", changed("/version", json!(1))),
        ("frames of format 1", added(example_of_format_1(), "/measurements/0", "frames", json!(1))),
        ("states of format 1", added(example_of_format_1(), "/measurements/0/predicted", "states", no_states)),
    ]
}

#[test]
fn what_is_not_a_report_is_refused_with_its_name() {
    for (what, report) in broken() {
        let error = MemoryReport::from_json("them.json", &report.to_string()).expect_err(what).to_string();
        assert!(error.starts_with("them.json: "), "{what}: {error}");
    }
    let whole = example().to_string();
    let clip_of_format_1 = whole.replace("\"version\":2", "\"version\":1");
    for (text, words) in [
        ("", "not JSON"),
        ("null", "expected schema \"wgvae-memory-report\", found none"),
        ("[]", "found none"),
        ("{}", "found none"),
        ("7", "found none"),
        (r#"{"schema": 7}"#, "found 7"),
        (r#"{"schema": [7]}"#, "found a list"),
        (r#"{"schema": "wgvae-memory-report", "version": -1}"#, "expected a version of 1 to 2, found -1"),
        (r#"{"schema": "wgvae-memory-report", "version": {"of": 1}}"#, "expected a version of 1 to 2, found an object"),
        (r#"{"schema": "wgvae-memory-report"}"#, "expected a version of 1 to 2, found none"),
        (r#"{"schema": "wgvae-memory-report", "version": 3}"#, "format 3, but this wgvae reads formats up to 2"),
        (r#"{"schema": "wgvae-memory-report", "version": 2}"#, "missing field"),
        (&clip_of_format_1, "measurement 2: expected an image, in a report of format 1, found a clip"),
        (&whole[..whole.len() / 2], "not JSON: EOF"),
    ] {
        let error = MemoryReport::from_json("them.json", text).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}
