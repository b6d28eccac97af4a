//! Bad input of every kind: the error names the item and the numbers, the exit code is not 0, and
//! no file is written.

use test_kit::formula;
use wgvae::HostTensor;
use wgvae::internals::npy::write_npy;

use crate::tool::{Entry, Folder, LATENTS, Outcome, safetensors, weights, with_header};

const WEIGHTS: &str = "model/diffusion_pytorch_model.safetensors";
const CONV_IN: &str = "decoder.conv_in.weight";

/// Runs a decode to out.png that must fail with `words` and leave no file behind.
#[track_caller]
fn refuse(what: &str, folder: &Folder, words: &[&str]) {
    let before = folder.names();
    folder.decode(&["-o", "out.png"]).failed(what, 1, words);
    assert_eq!(folder.names(), before, "{what}: files changed");
}

/// Does this with changed weights.
#[track_caller]
fn refuse_weights(what: &str, change: impl FnOnce(&mut crate::tool::Entries), words: &[&str]) {
    let folder = Folder::new();
    let mut weights = weights();
    change(&mut weights);
    folder.write_weights(&weights);
    refuse(what, &folder, words);
}

/// Does this with other bytes instead of the weights.
#[track_caller]
fn refuse_file(what: &str, bytes: &[u8], words: &[&str]) {
    let folder = Folder::new();
    folder.write(WEIGHTS, bytes);
    refuse(what, &folder, words);
}

/// Does this with other latents.
#[track_caller]
fn refuse_latents(what: &str, latents: &Entry, words: &[&str]) {
    let folder = Folder::new();
    folder.write_latents(latents);
    refuse(what, &folder, words);
}

#[test]
fn truncated_files() {
    let whole = safetensors(&weights());
    let shorter = &whole[..whole.len() - 100];
    refuse_file("data cut off", shorter, &[WEIGHTS, "truncated or corrupt: tensor \"", "bytes of data"]);
    refuse_file("header cut off", &whole[..1000], &[WEIGHTS, "truncated: the header has", "the file 1000"]);
    refuse_file("length cut off", &whole[..5], &[WEIGHTS, "5 bytes are too few"]);
    refuse_file("nothing left", &[], &[WEIGHTS, "0 bytes are too few"]);
}

#[test]
fn corrupt_headers() {
    refuse_file("header too long", &u64::MAX.to_le_bytes(), &[WEIGHTS, "18446744073709551615 bytes"]);
    refuse_file("header beyond the end", &[200, 0, 0, 0, 0, 0, 0, 0, b'{'], &[WEIGHTS, "200 bytes, the file 9"]);
    refuse_file("no JSON", &with_header("not json", &[]), &[WEIGHTS, "not a safetensors header"]);
    refuse_file("a pickle", b"\x80\x02}q\x00.   ", &[WEIGHTS, "Python pickle"]);
    let entry = |name: &str, begin: usize, end: usize| {
        format!("\"{name}\":{{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[{begin},{end}]}}")
    };
    let two = |first: &str, second: &str| with_header(&format!("{{{first},{second}}}"), &[0; 16]);
    let overlap = two(&entry("a", 0, 8), &entry("b", 4, 16));
    refuse_file("overlap", &overlap, &["\"b\" starts at byte 4 and overlaps a, which ends at 8"]);
    let outside = two(&entry("a", 0, 8), &entry("b", 8, 24));
    refuse_file("beyond the end", &outside, &["\"b\" ends at byte 24", "16 bytes of data"]);
    let backwards = two(&entry("a", 8, 0), &entry("b", 8, 16));
    refuse_file("backwards", &backwards, &["\"a\" ends at byte 0, before its start at byte 8"]);
    refuse_file("twice", &two(&entry("a", 0, 8), &entry("a", 8, 16)), &["\"a\"", "twice"]);
    let huge = r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,16]}}"#;
    refuse_file("absurd shape", &with_header(huge, &[0; 16]), &["tensor \"a\"", "64 bits"]);
}

#[test]
fn tensors_that_do_not_fit() {
    refuse_weights(
        "missing",
        |weights| {
            weights.remove("decoder.mid_block.resnets.1.norm2.bias");
            weights.remove("decoder.conv_norm_out.weight");
        },
        &["model", "2 missing tensor(s), first \"decoder.mid_block.resnets.1.norm2.bias\""],
    );
    refuse_weights(
        "wrong shape",
        |weights| {
            weights.insert("decoder.conv_out.bias".to_owned(), Entry::f32(&formula::latents(&[5])));
        },
        &["\"decoder.conv_out.bias\"", "[3]", "[5]"],
    );
    refuse_weights(
        "integers",
        |weights| {
            if let Some(entry) = weights.get_mut(CONV_IN) {
                entry.dtype = "I32";
            }
        },
        &["\"decoder.conv_in.weight\"", "F32, F16 or BF16", "I32"],
    );
    refuse_weights(
        "another model",
        |weights| weights.retain(|name, _| name == CONV_IN),
        &["model", "of an unknown kind"],
    );
    let folder = Folder::new();
    folder.write("model/config.json", br#"{"_class_name": "AutoencoderKL", "latent_channels": 0}"#);
    refuse("bad config", &folder, &["\"latent_channels\"", "1 to 1024", "found 0"]);
}

#[test]
fn weights_that_are_not_finite() {
    for (value, name) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        let change = |weights: &mut crate::tool::Entries| {
            if let Some(entry) = weights.get_mut(CONV_IN) {
                entry.bytes[28..32].copy_from_slice(&value.to_le_bytes());
            }
        };
        refuse_weights(name, change, &["\"decoder.conv_in.weight\"", &format!("{name} at element 7")]);
    }
}

#[test]
fn latents_that_are_not_finite() {
    for (value, name) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        let mut latents = formula::latents(&LATENTS);
        latents.data[11] = value;
        let words = ["latents.safetensors", &format!("{name} at element 11")];
        refuse_latents(name, &Entry::f32(&latents), &words);
        refuse_latents(name, &Entry::f16(&latents), &words);
    }
}

#[test]
fn latents_of_wrong_shapes() {
    let of = |shape: &[usize]| Entry::f32(&formula::latents(shape));
    refuse_latents("channels", &of(&[1, 4, 9, 10]), &["latents.safetensors", "8 channels", "4 channels"]);
    refuse_latents("rank", &of(&[9, 10]), &["latents.safetensors", "[n, c, h, w]", "[9, 10]"]);
    refuse_latents("empty", &of(&[1, 8, 0, 10]), &["latents.safetensors", "extent 0", "[1, 8, 0, 10]"]);
    refuse_latents("no images", &of(&[0, 8, 9, 10]), &["latents.safetensors", "extent 0", "[0, 8, 9, 10]"]);
    refuse_latents("absurd", &of(&[1, 8, 1, 20_000]), &["1 to 16384 latents each way", "20000x1"]);
    let integers = Entry { dtype: "I32", ..of(&LATENTS) };
    refuse_latents("integers", &integers, &["\"latents\"", "F32, F16 or BF16", "I32"]);
}

#[test]
fn latents_files_of_wrong_kinds() {
    let folder = Folder::new();
    let run = |file: &str, more: &[&str]| {
        let mut args = vec!["decode", "--model", "model", "-o", "out.png", "--latents", file];
        args.extend_from_slice(more);
        folder.run(&args)
    };
    run("missing.safetensors", &[]).failed("no such file", 1, &["missing.safetensors", "No such file"]);
    run("latents.safetensors", &["--tensor", "z"]).failed("no such tensor", 1, &["\"z\"", "only \"latents\""]);
    folder.write("latents.pt", b"PK");
    run("latents.pt", &[]).failed(
        "a pickle",
        1,
        &["latents.pt", "one of safetensors, latent, npy", "torch.load", "a Python pickle"],
    );
    let npy = write_npy(&formula::latents(&LATENTS));
    folder.write("short.npy", &npy[..npy.len() - 4]);
    run("short.npy", &[]).failed("truncated", 1, &["short.npy", "2880 bytes, but 2876 follow"]);
    folder.write("latents.npy", &npy);
    run("latents.npy", &["--tensor", "z"]).failed("name in npy", 1, &["--tensor", "latents.npy"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/dev/null", folder.path("device.npy")).unwrap();
        // Nothing ever writes to it.
        assert!(std::process::Command::new("mkfifo").arg(folder.path("pipe.npy")).status().unwrap().success());
        for file in ["device.npy", "pipe.npy"] {
            run(file, &[]).failed("no file", 1, &[file, "read at any position", "a pipe or a device"]);
        }
    }
    folder.write("zip.npy", b"PK\x03\x04 and more");
    run("zip.npy", &[]).failed("npz", 1, &["zip.npy", "a zip archive, as .npz", "save one array as .npy"]);
    let integers: Vec<u8> = String::from_utf8_lossy(&npy[10..128]).replace("<f4", "<i4").into_bytes();
    folder.write("integers.npy", &[&npy[..10], &integers, &npy[128..]].concat());
    run("integers.npy", &[]).failed("integers", 1, &["integers.npy", "'<i4'"]);
    assert!(!folder.path("out.png").exists());
}

/// Runs a decode of the good model with these arguments. It must fail before a file is written.
fn refused_arguments(more: &[&str]) -> Outcome {
    let folder = Folder::new();
    let before = folder.names();
    let outcome = folder.decode(more);
    assert_eq!(folder.names(), before, "{more:?}: files changed");
    outcome
}

#[test]
fn outputs_that_cannot_be_written() {
    let refused = |output: &str, words: &[&str]| refused_arguments(&["-o", output]).failed(output, 1, words);
    refused("missing/out.png", &["missing/out.png", "expected an existing folder missing, found none"]);
    refused("out.png.gif", &["out.png.gif", "png, jpg, jpeg, webp, exr, npy, safetensors", "\"gif\""]);
    refused("out", &["ending of output file out", "none"]);
    refused("/proc/out.png", &["/proc/out.png"]);
    let report = ["-o", "out.png", "--report", "missing/report.json"];
    refused_arguments(&report).failed("report", 1, &["missing/report.json", "expected an existing folder missing"]);
    let same = refused_arguments(&["-o", "out.png", "--report", "./out.png"]);
    same.failed("report over the picture", 1, &["--report", "--output", "./out.png"]);
    let latents = refused_arguments(&["-o", "latents.safetensors"]);
    latents.failed("over the latents", 1, &["--output", "--latents", "latents.safetensors"]);
    let weights = refused_arguments(&["-o", WEIGHTS]);
    weights.failed("over the weights", 1, &["--output", "--model", WEIGHTS]);
}

#[test]
fn models_that_cannot_be_read() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.write("model.bin", b"\x80\x02");
    let named = |name: &str| format!("model {name}: expected a .safetensors file, a folder, or hf:owner/name");
    let (pair, deep) = (named("owner/name"), named("owner/name/folder"));
    let cases: [(&str, &[&str]); 5] = [
        ("owner/name", &[&pair, "no such path (did you mean hf:owner/name?)"]),
        ("owner/name/folder", &[&deep, "no such path (did you mean hf:owner/name/folder?)"]),
        ("missing", &["model missing: expected a .safetensors file, a folder, or hf:owner/name", "no such path"]),
        ("empty", &["empty", "the folder is empty"]),
        ("model.bin", &["model.bin", "Python pickle"]),
    ];
    for (model, words) in cases {
        for command in [vec!["inspect"], vec!["plan", "--size", "64x64"]] {
            let args = [command.as_slice(), &["--model", model]].concat();
            folder.run(&args).failed(model, 1, words);
        }
        let args = ["decode", "--model", model, "--latents", "latents.safetensors", "-o", "out.png"];
        folder.run(&args).failed(model, 1, words);
    }
    // A folder that is here has no file of that name: no repository is meant.
    let refused = folder.run(&["inspect", "--model", "empty/vae"]);
    refused.failed("empty/vae", 1, &["no such path"]);
    assert!(!refused.stderr.contains("hf:empty"), "{}", refused.stderr);
    let model = folder.path(WEIGHTS);
    let alone = folder.path("alone.safetensors");
    std::fs::copy(model, &alone).unwrap();
    let args = ["decode", "--model", "alone.safetensors", "--latents", "latents.safetensors", "-o", "out.png"];
    folder.run(&args).failed(
        "shapes of no published model",
        1,
        &["norm_num_groups", "config.json", "found 16 channels"],
    );
    assert!(!folder.path("out.png").exists());
}

#[test]
fn adapters_that_are_not_there() {
    let folder = Folder::new();
    let before = folder.names();
    folder.decode(&["-o", "out.png", "--adapter", "voodoo"]).failed("name", 1, &["\"voodoo\"", "there are: "]);
    folder.decode(&["-o", "out.png", "--adapter", "99"]).failed("index", 1, &["\"99\"", "there are: "]);
    folder.run(&["demo", "--adapter", "voodoo"]).failed("demo", 1, &["\"voodoo\""]);
    folder.run(&["adapters", "--adapter", "voodoo"]).failed("adapters", 1, &["\"voodoo\""]);
    folder.run_without_adapter(&["adapters"]).failed("none", 1, &["no usable GPU adapter", "apt install"]);
    folder.run_without_adapter(&["demo", "--device", "gpu"]).failed("none", 1, &["no usable GPU adapter", "driver"]);
    let cores = ["-o", "out.png", "--device", "cpu"];
    folder.decode(&[&cores[..], &["--adapter", "0"]].concat()).failed(
        "both",
        1,
        &["device cpu", "shaders", "--adapter"],
    );
    folder.decode(&[&cores[..], &["--limits", "webgpu-default"]].concat()).failed("limits", 1, &["--limits"]);
    for threads in ["0", "1025"] {
        let refused = folder.decode(&[&cores[..], &["--threads", threads]].concat());
        refused.failed("threads", 1, &["number of threads", "1 to 1024", threads]);
    }
    let adapter = ["-o", "out.png", "--device", "gpu", "--threads", "2"];
    folder.decode(&adapter).failed("threads of an adapter", 1, &["threads", "device cpu"]);
    folder.decode(&["-o", "out.png", "--adapter", "0", "--threads", "2"]).failed("both", 1, &["threads", "--adapter"]);
    assert_eq!(folder.names(), before);
}

#[test]
fn sizes_that_make_no_sense() {
    let folder = Folder::new();
    let plan = |size: &str| folder.run_without_adapter(&["plan", "--family", "sd15", "--size", size]);
    plan("500x512").failed("not a multiple", 1, &["500x512", "multiples of 8", "496x512 or 504x512"]);
    plan("3x8").failed("too small", 1, &["3x8", "8x8"]);
    plan("0x512").failed("zero", 1, &["0x512", "at least 1 pixel"]);
    plan("4294967288x8").failed("absurd", 1, &["536870911x1 latents", "1 to 16384"]);
    plan("4294967296x8").failed("beyond 32 bits", 2, &["4294967296x8", "WIDTHxHEIGHT"]);
    plan("-8x8").failed("negative", 2, &["-8"]);
    plan("512").failed("one number", 2, &["512", "WIDTHxHEIGHT"]);
}

#[test]
fn arguments_that_make_no_sense() {
    let folder = Folder::new();
    let huge = "99999999999999999999";
    let cases: [(&[&str], &str); 12] = [
        (&["plan", "--family", "sd15", "--size", "64x64", "--memory-budget", huge], "too large"),
        (&["decode"], "--model"),
        (&["decode", "--model", "model", "-o", "out.png"], "--latents"),
        (&["decode", "--model", "model", "--latents", "latents.safetensors"], "--output"),
        (&["plan", "--size", "64x64"], "--model"),
        (&["plan", "--family", "sd15"], "--size"),
        (&["inspect", "--modle", "model"], "--modle"),
        (&["plan", "--family", "sd15", "--size", "8x8", "--precision", "f64"], "'f64'"),
        (&["plan", "--family", "sd15", "--size", "64x64", "--memory-budget", "0"], "at least 1 byte"),
        (&["plan", "--family", "sd15", "--size", "64x64", "--memory-budget", "-5"], "-5"),
        (&["plan", "--family", "sd15", "--size", "64x64", "--memory-budget", "lots"], "512MiB"),
        (&["paint"], "paint"),
    ];
    for (args, word) in cases {
        folder.run(args).failed(&args.join(" "), 2, &[word]);
    }
    folder.decode(&["-o", "out.png", "--repeat", "0"]).failed("repeat", 2, &["--repeat", "1..=1000"]);
    folder.decode(&["-o", "out.png", "--family", "sd9"]).failed("family", 1, &["\"sd9\"", "sd15"]);
    folder.decode(&["-o", "out.png", "--family", "sd15"]).failed("other family", 1, &["8 latent channels", "4"]);
    folder.decode(&["-o", "out.png", "--variant", "fp16"]).failed("variant", 1, &["fp16.safetensors"]);
    let limits = ["plan", "--family", "sd15", "--size", "64x64", "--limits"];
    folder.run(&[&limits[..], &["nothing.json"]].concat()).failed("no limits", 1, &["nothing.json", "webgpu-default"]);
    folder.write("limits.json", b"{\"max_buffer_size\": -1}");
    folder.run(&[&limits[..], &["limits.json"]].concat()).failed("bad limits", 1, &["limits.json", "-1"]);
    assert!(!folder.path("out.png").exists());
}

#[test]
fn a_plan_that_does_not_fit() {
    let folder = Folder::new();
    let limits = format!(
        "{{\"max_storage_buffer_binding_size\":{0},\"max_buffer_size\":{0},\"max_storage_buffers_per_shader_stage\":8,\
         \"max_compute_workgroups_per_dimension\":65535,\"max_compute_invocations_per_workgroup\":256,\
         \"max_compute_workgroup_storage_size\":16384,\"min_uniform_buffer_offset_alignment\":256,\
         \"shader_f16\":false,\"timestamp_query\":false,\"kind\":\"gpu\"}}",
        1 << 20
    );
    folder.write("small.json", limits.as_bytes());
    let args = ["plan", "--family", "sd15", "--size", "1024x1024", "--limits", "small.json"];
    folder.run_without_adapter(&args).failed(
        "1 MiB buffers",
        1,
        &["needs 1051648 bytes", "but the limit is 1048576 bytes"],
    );
    let empty = HostTensor { shape: vec![0], data: Vec::new() };
    folder.write("empty.npy", &write_npy(&empty));
    let args = ["decode", "--model", "model", "--latents", "empty.npy", "-o", "out.png"];
    folder.run(&args).failed("empty array", 1, &["empty.npy", "[0]"]);
}

#[test]
fn a_budget_that_no_plan_keeps_names_the_smallest() {
    let folder = Folder::new();
    let args = ["plan", "--family", "sd15", "--size", "256x256", "--memory-budget", "1MiB"];
    folder.run(&args).failed("one MiB", 1, &["the smallest budget found is", "1.0 MiB"]);
    // `--size` is the size of the picture in both directions.
    folder.run(&[&args[..], &["--encode"]].concat()).failed("an encode", 1, &["too small for 256x256:"]);
    // A budget above the memory of any device changes nothing.
    let peak = |more: &[&str]| {
        let plan = ["plan", "--family", "sd15", "--size", "256x256", "--json"];
        folder.run_without_adapter(&[&plan[..], more].concat()).json()["predicted_peak_bytes"].clone()
    };
    assert_eq!(peak(&["--memory-budget", "15EiB"]), peak(&[]));
}
