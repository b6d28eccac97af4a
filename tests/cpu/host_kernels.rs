//! Every kernel of the host against its plain twin, over the catalogue of problems, with all vector
//! instructions of this processor. `WGVAE_PROBLEMS=REGEX` selects some of them.

use std::collections::BTreeSet;

use test_kit::problems::compare::{compare, twin};
use test_kit::problems::{Problem, all};
use wgvae::Storage;
use wgvae::cpu::{Binding, Call, architectures, instructions, run};
use wgvae::kernels::matmul::MatmulParams;
use wgvae::kernels::{Access, Value, interface};

/// Kernels that plans for the host launch.
const KERNELS: [&str; 22] = [
    "attention_finish",
    "attention_softmax",
    "conv2d_depthwise",
    "conv2d_direct",
    "copy_frames",
    "group_norm_apply",
    "group_norm_finish",
    "group_norm_stats",
    "image_check",
    "image_out",
    "linear_attention_apply",
    "linear_attention_finish",
    "linear_attention_sums",
    "matmul",
    "pixel_norm_apply",
    "planes_in",
    "planes_out",
    "regroup",
    "unfold",
    "winograd_in_pairs",
    "winograd_out_pairs",
    "winograd_weights",
];

/// True for launches as plans for the host have them: f32 or halves, and products of rows with
/// blocks of 16 columns.
fn runs_on_the_host(problem: &Problem) -> bool {
    let variant = &problem.launch.variant;
    let is_known = |value: Value| match value {
        Value::Type(text) => STORAGES.iter().any(|known| [known.wgsl_type(), known.wgsl_pair()].contains(&text)),
        Value::Bool(_) | Value::U32(_) => true,
    };
    let of_rows = || bytemuck::pod_read_unaligned::<MatmulParams>(&problem.launch.params).a_column == 1;
    KERNELS.contains(&variant.file)
        && variant.values.iter().all(|(_, value)| is_known(*value))
        && !variant.flag("HALVES")
        && (variant.file != "matmul" || (variant.number("TILE_N") == 4 && of_rows()))
}

/// Storages of plans for the host.
const STORAGES: [Storage; 2] = [Storage::F32, Storage::PackedF16];

fn lend(memory: Option<&mut Vec<f32>>, access: Access) -> Binding<'_> {
    match (memory, access) {
        (None, _) => Binding::Unused,
        (Some(memory), Access::Read) => Binding::Read(memory),
        (Some(memory), Access::ReadWrite) => Binding::Write(memory),
    }
}

/// Runs the kernel on `threads`, and returns all bindings.
fn launch(problem: &Problem, arch: pulp::Arch, threads: &rayon::ThreadPool) -> Vec<Vec<f32>> {
    let floats = |bytes: &Vec<u8>| bytemuck::pod_collect_to_vec(bytes);
    let mut bindings: Vec<Option<Vec<f32>>> =
        problem.bindings.iter().map(|data| data.as_ref().map(|data| floats(&data.bytes))).collect();
    let uses = interface(problem.launch.variant.file).bindings;
    let call = Call {
        arch,
        variant: &problem.launch.variant,
        params: &problem.launch.params,
        workgroups: problem.launch.workgroups,
        bindings: bindings.iter_mut().zip(uses).map(|(memory, (_, access))| lend(memory.as_mut(), *access)).collect(),
    };
    threads.install(|| run(call));
    bindings.into_iter().map(Option::unwrap_or_default).collect()
}

#[test]
fn kernels_of_the_host_match_their_twins() {
    let [one, three] = [1, 3].map(|count| rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap());
    let (mut failures, mut count, mut seen) = (Vec::new(), 0, BTreeSet::new());
    for problem in all().iter().filter(|problem| runs_on_the_host(problem)) {
        count += 1;
        let stored = ["Stored", "Pair"].map(|name| problem.launch.variant.value(name));
        seen.insert((problem.launch.variant.file, stored.map(|value| format!("{value:?}"))));
        let wanted = twin(problem);
        for arch in architectures() {
            let found = launch(problem, arch, &one);
            assert!(
                bytemuck::cast_slice::<_, u32>(&launch(problem, arch, &three).concat())
                    == bytemuck::cast_slice::<_, u32>(&found.concat()),
                "{}, {}: three threads give other bits than one",
                problem.name,
                instructions(arch)
            );
            for (index, wanted) in &wanted {
                let data = problem.bindings[*index].as_ref().unwrap();
                let name = interface(problem.launch.variant.file).bindings[*index].0;
                let found = bytemuck::cast_slice(&found[*index]);
                if let Err(text) = compare(data.elements, found, wanted, problem.tolerance) {
                    failures.push(format!("{}, {}: {name}: {text}", problem.name, instructions(arch)));
                }
            }
        }
    }
    println!("{count} problems");
    // 17 kernels store activations or weights, and have problems in f32 and in halves.
    let all = KERNELS.len() + 17;
    assert!(std::env::var_os("WGVAE_PROBLEMS").is_some() || seen.len() == all, "only {seen:?} have problems");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
