//! Clips in memory reports: measured with and without budgets, beside images and older reports, and
//! arguments that give errors.

use serde_json::{Value, json};

use crate::tool::Folder;

/// Returns arguments that measure clips of the small model for video, in f32, on the first adapter.
fn measuring<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["memory", "--models", "model", "--sizes", "40x24", "--precisions", "f32", "--adapter", "0"], more].concat()
}

fn rows(report: &Value) -> &[Value] {
    report["measurements"].as_array().unwrap()
}

/// Asserts that a row of `frames` frames was measured, and that its peak equals the prediction.
#[track_caller]
fn assert_exact(row: &Value, frames: u64) {
    assert_eq!((&row["frames"], &row["error"]), (&json!(frames), &Value::Null), "{row}");
    assert_eq!(row["measured"]["ledger_peak"], row["predicted"]["peak"], "{row}");
    assert!(row["measured"]["seconds"].as_f64() > Some(0.0), "{row}");
    let (allocated, reserved) = (&row["measured"]["allocator_allocated"], &row["measured"]["allocator_reserved"]);
    if let (Some(allocated), Some(reserved)) = (allocated.as_u64(), reserved.as_u64()) {
        // These bytes are allocated at the end. In a plan with a budget, the first part may have
        // needed more.
        let least =
            if row["budget"].is_null() { &row["measured"]["ledger_peak"] } else { &row["predicted"]["weights"] };
        assert!(Some(allocated) >= least.as_u64() && reserved >= allocated, "{row}");
    }
}

/// Returns the facts of a row that do not depend on the clip's length.
fn lasting(row: &Value) -> Value {
    let mut predicted = row["predicted"].clone();
    predicted.as_object_mut().unwrap().remove("transferred");
    json!([predicted, row["measured"]["ledger_peak"]])
}

#[test]
fn clips_take_what_was_predicted_however_long_they_are() {
    let folder = Folder::for_video();
    for direction in [&[][..], &["--encode"]] {
        let planned = |more: &[&str]| {
            let plan = ["plan", "--model", "model", "--size", "80x48", "--frames", "5", "--precision", "f32", "--json"];
            folder.run(&[&plan[..], &["--adapter", "0"], direction, more].concat()).json()
        };
        let whole = planned(&[]);
        let budget = (whole["predicted_peak_bytes"].as_u64().unwrap() * 17 / 20).to_string();
        let within = planned(&["--memory-budget", &budget]);
        let args = ["memory", "--models", "model", "--sizes", "80x48", "--frames", "1,5,17", "--budgets", &budget];
        let args = [&args[..], &["--precisions", "f32", "--adapter", "0", "--json"], direction].concat();
        let report = folder.run(&args).json();
        let [image, _, short, short_within, long, long_within] = rows(&report) else { panic!("{report}") };
        // An image's row has no fields of clips.
        assert_eq!((image.get("frames"), image["predicted"].get("states")), (None, None), "{image}");
        assert_eq!(image["measured"]["ledger_peak"], image["predicted"]["peak"], "{image}");

        for (plan, short, long) in [(&whole, short, long), (&within, short_within, long_within)] {
            assert_exact(short, 5);
            assert_exact(long, 17);
            assert_eq!(lasting(short), lasting(long));
            let predicted = &long["predicted"];
            assert_eq!(predicted["peak"], plan["predicted_peak_bytes"]);
            assert_eq!(predicted["states"]["total"], plan["clip"]["state_bytes"]);
            assert_eq!(predicted["host"], plan["clip"]["host_bytes"]);
            // One part after the first, and four.
            let [of_short, of_long] = [short, long].map(|row| row["predicted"]["transferred"].as_u64().unwrap());
            assert_eq!(of_long - of_short, 3 * plan["plan"]["transferred_bytes"].as_u64().unwrap());
        }
        let states = |row: &Value| ["total", "gpu"].map(|name| row["predicted"]["states"][name].as_u64().unwrap());
        let ([total, gpu], host) = (states(long), &long["predicted"]["host"]);
        assert_eq!((total, host), (gpu, &json!(0)), "{long}");
        assert!(long_within["predicted"]["host"].as_u64() > Some(0), "{long_within}");
        assert!(long_within["predicted"]["peak"].as_u64() <= budget.parse().ok(), "{long_within}");
    }
}

#[test]
fn made_up_weights_have_what_clips_want() {
    let folder = Folder::new();
    let args = ["memory", "--models", "wan21", "--sizes", "8x8", "--frames", "5", "--precisions", "f16"];
    for direction in [&[][..], &["--encode"]] {
        let report = folder.run(&[&args[..], &["--adapter", "0", "--json"], direction].concat()).json();
        let [row] = rows(&report) else { panic!("{report}") };
        assert_exact(row, 5);
        assert_eq!(row["weights"], "random");
    }
}

/// Tests models whose plans depend on the number of latents: `HunyuanVideo` 1.5's keep keys and
/// values of all frames, and the first frames of taecvx need it.
#[test]
fn clips_are_planned_for_their_length() {
    let folder = Folder::new();
    for (model, frames) in [("taecvx", "8"), ("hunyuan_video15", "5")] {
        let args = ["--sizes", "32x16", "--frames", frames, "--precisions", "f16", "--device", "cpu", "--json"];
        let report = folder.run(&[&["memory", "--models", model], &args[..]].concat()).json();
        let [row] = rows(&report) else { panic!("{report}") };
        assert_exact(row, frames.parse().unwrap());
        let args = ["--size", "32x16", "--frames", frames, "--precision", "f16", "--limits", "cpu", "--json"];
        let plan = folder.run(&[&["plan", "--family", model], &args[..]].concat()).json();
        assert_eq!(row["predicted"]["peak"], plan["predicted_peak_bytes"], "{model}");
    }
}

#[test]
fn a_budget_that_no_clip_can_keep_is_a_row_with_its_reason() {
    let folder = Folder::for_video();
    let report = folder.run(&measuring(&["--frames", "5", "--budgets", "1KiB", "--json"])).json();
    let [_, row] = rows(&report) else { panic!("{report}") };
    assert_eq!([&row["measured"], &row["predicted"]], [&Value::Null, &Value::Null]);
    assert!(row["error"].as_str().unwrap().contains("1.0 KiB"), "{row}");
}

#[test]
fn reports_of_clips_stand_beside_those_of_images_and_older_ones() {
    let folder = Folder::for_video();
    let text = folder.run(&measuring(&["--frames", "1,5,17", "-o", "new.json"])).ok().stdout;
    assert!(text.starts_with("decodes on ") && text.contains("\ndecodes of clips on "), "{text}");
    let header = text.lines().skip_while(|line| !line.starts_with("decodes of clips on ")).nth(1).unwrap();
    for column in ["frames", "predicted", "kept", "in host memory", "measured"] {
        assert!(header.contains(column), "{column} is not in {header}");
    }
    // Format 1 is format 2 without clips.
    let mut old: Value = serde_json::from_slice(&folder.read("new.json")).unwrap();
    old["version"] = json!(1);
    old["measurements"].as_array_mut().unwrap().truncate(1);
    folder.write("old.json", old.to_string().as_bytes());
    let args = ["memory", "--merge", "old.json", "new.json", "--html", "page.html", "--json"];
    let both = folder.run_without_adapter(&args).json();
    assert_eq!((&both[0], &both[1]["version"]), (&old, &json!(2)));
    // tests/browser/report.test.mjs shows such a page in browsers.
    let page = String::from_utf8(folder.read("page.html")).unwrap();
    let shown = super::data_of(&page);
    assert_eq!([&shown[0], &shown[1]], [&both[0], &both[1]]);
    let noted: Vec<&str> = page.lines().filter(|line| line.contains("decodes of clips on ")).collect();
    assert_eq!(noted.len(), 1, "the table for browsers without JavaScript");

    // Without clips the output does not mention them.
    let text = folder.run_without_adapter(&["memory", "--merge", "old.json"]).ok().stdout;
    assert!(!text.contains("frames"), "{text}");

    // A clip in a report of format 1 is an error.
    old["measurements"][0]["frames"] = json!(5);
    folder.write("odd.json", old.to_string().as_bytes());
    let words = ["odd.json", "measurement 0", "expected an image", "format 1", "found a clip"];
    folder.run_without_adapter(&["memory", "--merge", "odd.json"]).failed("a clip of format 1", 1, &words);
}

#[test]
fn what_is_no_clip_is_refused_before_anything_is_measured() {
    let folder = Folder::for_video();
    let refused = |more: &[&str], words: &[&str]| {
        let args = [&["memory", "-o", "report.json"], more].concat();
        folder.run_without_adapter(&args).failed(&format!("{more:?}"), 1, words);
    };
    let video = ["--models", "model", "--sizes", "40x24", "--frames"];
    refused(&[&video[..], &["5,11"]].concat(), &["--frames", "such as 9 or 13", "found 11"]);
    refused(&["--models", "seedvr2", "--sizes", "64x64", "--frames", "2"], &["--frames", "such as 1 or 5", "found 2"]);
    refused(&["--models", "model,sd15", "--sizes", "40x24", "--frames", "9"], &["a model for video", "9 frames with "]);
    refused(&["--models", "model", "--sizes", "41x24", "--frames", "9"], &["--sizes", "multiples of 8", "41x24"]);
    for more in [&["0"][..], &["five"], &["-5"]] {
        assert_eq!(folder.run_without_adapter(&[&["memory"], &video[..], more].concat()).code, Some(2), "{more:?}");
    }
    // Tensors that only clips need are missing; images are measured all the same.
    let name = folder.without_time();
    refused(&[&video[..], &["5"]].concat(), &["model", &name]);
    assert!(!folder.path("report.json").exists());
    let image = folder.run(&measuring(&["--frames", "1", "--json"])).json();
    assert_eq!(rows(&image)[0]["error"], Value::Null);
}
