//! `wgvae memory` and `wgvae plan --budgets`.

#[path = "memory/clips.rs"]
mod clips;

use serde_json::{Value, json};

use crate::tool::Folder;

/// Arguments that measure the model in the folder at a small size, in f32, on the first adapter.
const QUICK: [&str; 9] =
    ["memory", "--models", "model,demo", "--sizes", "32x16", "--precisions", "f32", "--adapter", "0"];

fn measured(folder: &Folder) -> Value {
    folder.run(&[&QUICK[..], &["-o", "report.json"]].concat()).ok();
    serde_json::from_slice(&folder.read("report.json")).unwrap()
}

#[test]
fn a_report_holds_prediction_ledger_allocator_process_and_time() {
    let folder = Folder::new();
    let report = measured(&folder);
    assert_eq!((&report["schema"], &report["version"]), (&json!("wgvae-memory-report"), &json!(2)));
    let rows = report["measurements"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, (model, weights)) in rows.iter().zip([("model", "file"), ("demo", "embedded")]) {
        assert_eq!((&row["model"], &row["weights"], &row["error"]), (&json!(model), &json!(weights), &Value::Null));
        assert_eq!((&row["width"], &row["height"], &row["storage"]), (&json!(32), &json!(16), &json!("f32")));
        let measured = &row["measured"];
        assert_eq!(measured["ledger_peak"], row["predicted"]["peak"], "{row}");
        assert!(measured["seconds"].as_f64() > Some(0.0), "{row}");
        // If the backend reports it, the allocator hands out at least the requested bytes, and
        // reserves at least as many.
        let (allocated, reserved) = (&measured["allocator_allocated"], &measured["allocator_reserved"]);
        if let (Some(allocated), Some(reserved)) = (allocated.as_u64(), reserved.as_u64()) {
            assert!(Some(allocated) >= measured["ledger_peak"].as_u64() && reserved >= allocated, "{row}");
        }
        assert_eq!(measured["peak_rss"].is_u64(), cfg!(target_os = "linux"), "{row}");
    }
    let first = folder.run(&["adapters", "--json"]).json()[0].clone();
    for name in ["name", "driver", "pci_id", "limits"] {
        assert_eq!(report["adapters"][0][name], first[name], "{name}");
    }
}

/// The machine's own cores are a device like others, and the only one without an adapter.
#[test]
fn the_cores_are_measured_if_there_is_no_adapter() {
    let folder = Folder::new();
    let args = ["memory", "--models", "demo", "--sizes", "64x32", "--json"];
    let chosen = folder.run(&[&args[..], &["--device", "cpu"]].concat()).json();
    let left = folder.run_without_adapter(&args).json();
    for report in [chosen, left] {
        assert_eq!((&report["adapters"][0]["backend"], &report["adapters"][1]), (&json!("Cpu"), &Value::Null));
        let rows = report["measurements"].as_array().unwrap();
        assert_eq!([&rows[0]["storage"], &rows[1]["storage"]], [&json!("packed_f16"), &json!("f32")], "{report}");
        for row in rows {
            assert_eq!(row["error"], Value::Null, "{row}");
            assert_eq!(row["measured"]["ledger_peak"], row["predicted"]["peak"], "{row}");
        }
        assert!(rows[0]["measured"]["ledger_peak"].as_u64() < rows[1]["measured"]["ledger_peak"].as_u64());
    }
    let report = folder.run(&[&args[..], &["--device", "cpu", "--precisions", "fast"]].concat()).json();
    let error = report["measurements"][0]["error"].as_str().unwrap();
    assert!(error.contains("precision: expected f16 or f32, on the CPU, found fast"), "{error}");
    let args = ["memory", "--models", "demo", "--sizes", "512x512", "--device", "cpu", "--json"];
    for row in folder.run(&args).json()["measurements"].as_array().unwrap() {
        // What a process takes beside its plan: the program, its threads, a tensor as it is read.
        let most = row["predicted"]["peak"].as_u64().unwrap() / 10 * 11 + (32 << 20);
        // Only some systems tell.
        let process = row["measured"]["peak_rss"].as_u64();
        assert!(process.is_none_or(|process| process <= most), "{process:?}, at most {most}: {row}");
    }
    let twice = folder.run(&["memory", "--device", "cpu", "--adapter", "0"]);
    twice.failed("both", 1, &["--adapter", "use without --device cpu"]);
}

#[test]
fn made_up_weights_are_decoded_with_and_without_a_budget() {
    let folder = Folder::new();
    let args = ["memory", "--models", "sd15", "--sizes", "16x8", "--precisions", "f16", "--adapter", "0", "--json"];
    let report = folder.run(&[&args[..], &["--budgets", "256MiB,1KiB"]].concat()).json();
    let rows = report["measurements"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in &rows[..2] {
        assert_eq!((&row["weights"], &row["error"]), (&json!("random"), &Value::Null), "{row}");
        assert_eq!(row["measured"]["ledger_peak"], row["predicted"]["peak"], "{row}");
    }
    assert!(rows[1]["predicted"]["peak"].as_u64() <= Some(256 << 20), "{}", rows[1]);
    // A budget that is too small gives a row with its reason.
    assert_eq!((&rows[2]["measured"], &rows[2]["predicted"]), (&Value::Null, &Value::Null));
    assert!(rows[2]["error"].as_str().unwrap().contains("1.0 KiB"), "{}", rows[2]);
}

/// Tests a tiny network, one with statistics of its latents among its weights, and sides that are
/// no multiple of its 8 pixels.
#[test]
fn encodes_are_measured_with_made_up_weights() {
    let folder = Folder::new();
    let args = ["memory", "--encode", "--models", "taesd,flux2,sd15", "--sizes", "20x17", "--precisions", "f16"];
    let report = folder.run(&[&args[..], &["--adapter", "0", "--budgets", "64MiB", "--json"]].concat()).json();
    let rows = report["measurements"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert_eq!((&row["operation"], &row["weights"]), (&json!("encode"), &json!("random")), "{row}");
        assert_eq!((&row["width"], &row["height"], &row["error"]), (&json!(20), &json!(17), &Value::Null), "{row}");
        assert_eq!(row["measured"]["ledger_peak"], row["predicted"]["peak"], "{row}");
        assert!(row["budget"].is_null() || row["predicted"]["peak"].as_u64() <= Some(64 << 20), "{row}");
    }
}

#[test]
fn encodes_stand_apart_from_decodes() {
    let folder = Folder::of_both();
    measured(&folder);
    let text = folder.run(&[&QUICK[..], &["--encode", "-o", "encodes.json"]].concat()).ok().stdout;
    assert!(text.starts_with("encodes on ") && !text.contains("decodes on "), "{text}");
    let args = ["memory", "--merge", "report.json", "encodes.json", "--html", "page.html"];
    let text = folder.run_without_adapter(&args).ok().stdout;
    assert!(text.starts_with("decodes on ") && text.contains("\nencodes on "), "{text}");
    let data = data_of(&String::from_utf8(folder.read("page.html")).unwrap());
    let operations: Vec<&Value> = data.iter().map(|report| &report["measurements"][0]["operation"]).collect();
    assert_eq!(operations, [&json!("decode"), &json!("encode")]);
}

/// Returns the reports in a page, which tests/browser/report.test.mjs shows in browsers.
fn data_of(page: &str) -> Vec<Value> {
    let (_, rest) = page.split_once("<script type=\"application/json\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn reports_are_put_side_by_side() {
    let folder = Folder::new();
    let mut other = measured(&folder);
    other["adapters"][0]["name"] = json!("</script><script>alert(1)</script> & co");
    other["adapters"][0]["pci_id"] = json!("1002:744c");
    other["measurements"][1]["measured"] = Value::Null;
    other["measurements"][1]["error"] = json!("the <driver> crashed");
    folder.write("other.json", other.to_string().as_bytes());
    let text = folder.run_without_adapter(&["memory", "--merge", "report.json", "other.json", "--html", "page.html"]);
    let text = text.ok().stdout;
    assert!(text.contains("32x16") && text.contains("error: the <driver> crashed"), "{text}");
    let page = String::from_utf8(folder.read("page.html")).unwrap();
    assert_eq!(data_of(&page)[1], other);
    assert!(!page.contains("<script>") && !page.contains("the <driver>") && !page.contains("src="), "{page}");
    // The data, the program, and nothing that a report brings along.
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (2, 2));
    // Without JavaScript, the table of stdout.
    for words in ["error: the &lt;driver> crashed", "32x16", "&lt;/script>&lt;script>alert(1)&lt;/script> &amp; co"] {
        assert!(page.contains(words), "{words} is not in the page");
    }
    let again = ["memory", "--merge", "report.json", "other.json", "--html", "again.html"];
    folder.run_without_adapter(&again).ok();
    assert_eq!(String::from_utf8(folder.read("again.html")).unwrap(), page, "a report is always written the same");
    let both = folder.run_without_adapter(&["memory", "--merge", "report.json", "other.json", "--json"]).json();
    assert_eq!(both.as_array().map(Vec::len), Some(2));
    assert_eq!(both[1], other);
}

#[test]
fn bad_reports_and_arguments_are_refused_and_nothing_is_written() {
    let folder = Folder::new();
    let report = measured(&folder).to_string();
    folder.write("newer.json", report.replace("\"version\":2", "\"version\":9").as_bytes());
    folder.write("foreign.json", br#"{"schema": "someone-elses-report", "version": 1}"#);
    folder.write("plan.json", br#"{"predicted_peak_bytes": 5}"#);
    // A cut elsewhere might end within a number, which gives another error.
    folder.write("cut.json", &report.as_bytes()[..report.len() - 1]);
    folder.write("binary.json", &[0xff, 0xfe, 0x00]);
    let before = folder.names();
    for (file, words) in [
        ("newer.json", &["newer.json", "format 9", "formats up to 2", "newer wgvae"][..]),
        ("foreign.json", &["foreign.json", "wgvae-memory-report", "someone-elses-report"]),
        ("plan.json", &["plan.json", "not a memory report", "found none"]),
        ("cut.json", &["cut.json", "not JSON", "EOF"]),
        ("binary.json", &["binary.json", "not a JSON text"]),
        ("missing.json", &["missing.json", "No such file"]),
    ] {
        let args = ["memory", "--merge", "report.json", file, "--html", "page.html"];
        folder.run_without_adapter(&args).failed(file, 1, words);
    }
    let quick = |more: &[&str]| folder.run(&[&QUICK[..7], more].concat());
    quick(&["--adapter", "no such card", "-o", "x.json"]).failed(
        "adapter",
        1,
        &["none matches \"no such card\"", "there are: 0"],
    );
    quick(&["-o", "no/such/folder/x.json"]).failed("folder", 1, &["no/such/folder/x.json"]);
    quick(&["--html", "model"]).failed("a folder", 1, &["model"]);
    quick(&["-o", "x", "--html", "x"]).failed("one file twice", 1, &["--html", "a different file than --output names"]);
    quick(&["--through", "no-such-program"]).failed("no program", 1, &["no-such-program"]);
    let merge = ["memory", "--merge", "report.json", "--html", "report.json"];
    folder.run_without_adapter(&merge).failed("onto itself", 1, &["--html", "a different file than --merge names"]);
    folder.run(&["memory", "--models", "sd99"]).failed("model", 1, &["--models", "demo, sd15", "found sd99"]);
    folder.run(&["memory", "--sizes", "100x100"]).failed("size", 1, &["--sizes", "multiples of 8", "100x100"]);
    quick(&["--encode"]).failed("no encoder", 1, &["model", "a model with encoder weights"]);
    let small = ["memory", "--encode", "--models", "sd15", "--sizes", "4x64"];
    folder.run(&small).failed("too small", 1, &["--sizes", "at least 8x8 pixels", "4x64"]);
    let none = folder.run_without_adapter(&["memory", "--device", "gpu", "-o", "x.json"]);
    none.failed("no driver", 1, &["no usable GPU adapter", "install a driver"]);
    assert_eq!(folder.run(&["memory", "--merge", "a.json", "--sizes", "8x8"]).code, Some(2));
    assert_eq!(folder.run(&["memory", "--merge", "a.json", "--encode"]).code, Some(2));
    assert_eq!(folder.run(&["memory", "--merge", "a.json", "--frames", "5"]).code, Some(2));
    assert_eq!(folder.names(), before, "files changed");
}

#[test]
#[cfg(unix)]
fn a_process_that_dies_is_a_row_that_says_so() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = Folder::new();
    // This program lists adapters as usual, and crashes when it measures.
    folder.write(
        "dies",
        b"#!/bin/sh\ncase \"$*\" in *decode*) echo 'driver: boom' >&2; kill -SEGV $$;; *) exec \"$@\";; esac\n",
    );
    std::fs::set_permissions(folder.path("dies"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let report = folder.run(&[&QUICK[..], &["--through", "./dies", "--json"]].concat()).json();
    for row in report["measurements"].as_array().unwrap() {
        let error = row["error"].as_str().unwrap();
        assert!(error.contains("signal: 11") && error.contains("driver: boom"), "{error}");
        assert!(row["predicted"]["peak"].as_u64() > Some(0), "{row}");
    }
}

#[test]
#[cfg(unix)]
fn ctrl_c_stops_a_report_and_its_processes() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let folder = Folder::new();
    let before = folder.names();
    let args = ["memory", "--models", "demo", "--sizes", "1024x1024", "--precisions", "f32", "-o", "report.json"];
    let mut child = folder.command(&args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
    let pressed = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(pressed.elapsed() < Duration::from_secs(2), "{:?}", pressed.elapsed());
    assert_eq!(folder.names(), before);
}

#[test]
fn budgets_are_compared_with_the_whole_plan() {
    let folder = Folder::new();
    let plan = |more: &[&str]| {
        folder.run_without_adapter(&[&["plan", "--family", "sd15", "--size", "256x256", "--budgets"], more].concat())
    };
    let rows = plan(&["180MiB,1KiB,1GiB", "--json", "--svg", "budgets.svg"]).json();
    let rows = rows["plans"].as_array().unwrap();
    let budgets: Vec<Option<u64>> = rows.iter().map(|row| row["budget_bytes"].as_u64()).collect();
    assert_eq!(budgets, [None, Some(1 << 30), Some(180 << 20), Some(1024)]);
    let whole = &rows[0];
    assert_eq!((&whole["transferred_bytes"], &whole["work_ratio"]), (&json!(0), &json!(1.0)));
    assert_eq!(rows[1]["predicted_peak_bytes"], whole["predicted_peak_bytes"]);
    assert!(rows[2]["predicted_peak_bytes"].as_u64() <= Some(180 << 20), "{}", rows[2]);
    // Data that does not fit is moved away for a while or computed again.
    let costs = rows[2]["transferred_bytes"].as_u64() > Some(0) || rows[2]["work_ratio"].as_f64() > Some(1.0);
    assert!(costs, "{}", rows[2]);
    assert_eq!(rows[3]["fits"], false);
    assert!(rows[3]["error"].as_str().unwrap().contains("smallest budget found"), "{}", rows[3]);
    let svg = String::from_utf8(folder.read("budgets.svg")).unwrap();
    assert!(
        svg.starts_with("<svg")
            && svg.contains("predicted peak of memory")
            && svg.contains("seconds")
            && svg.contains("link"),
        "{svg}"
    );

    let text = plan(&["180MiB,1KiB"]).ok().stdout;
    assert!(text.contains("180.0 MiB") && text.contains("smallest plan"), "{text}");
    plan(&["1KiB,2KiB"]).failed("nothing fits", 1, &["smallest budget found", "2.0 KiB"]);
    plan(&["1GiB", "--svg", "x.png"]).failed("no svg", 1, &["--svg", ".svg", "x.png"]);
    assert_eq!(plan(&["1GiB", "--memory-budget", "1GiB"]).code, Some(2));
}

/// Tests outputs that would replace a model, or mix with the table, or cannot be files.
#[test]
fn outputs_that_lose_something_are_refused_first() {
    let folder = Folder::new();
    let weights = "model/diffusion_pytorch_model.safetensors";
    let before = folder.read(weights);
    let refused = |flag: &'static str, file: &str, words: &[&str]| {
        folder.run(&[&QUICK[..], &[flag, file]].concat()).failed(file, 1, words);
    };
    for flag in ["--output", "--html"] {
        refused(flag, weights, &[flag, "a different file than --models names"]);
        refused(flag, "-", &[flag, "a file (--json prints the report)"]);
        refused(flag, "results/", &["results/", "directory"]);
    }
    assert_eq!(folder.read(weights), before);
    // Another report in the model's folder may be replaced.
    folder.write("model/report.json", b"{}");
    folder.run(&[&QUICK[..], &["-o", "model/report.json"]].concat()).ok();
}
