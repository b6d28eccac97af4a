//! Agreement of the Rust half of each kernel with its WGSL half: bindings, access, parameters,
//! workgroup size.

use std::collections::BTreeSet;

use naga::{AddressSpace, Module, Scalar, ScalarKind, StorageAccess, TypeInner};
use test_kit::repository;
use wgvae::device::DeviceLimits;
use wgvae::kernels::source::specialize;
use wgvae::kernels::{Access, INTERFACES, Interface, Variant, WORKGROUP};

use crate::shaders::{ALL_VARIANTS, module};

/// Returns the storage bindings of a module, sorted by number: number, name, access.
fn storage_bindings(module: &Module) -> Vec<(u32, String, Access)> {
    let mut bindings: Vec<(u32, String, Access)> = module
        .global_variables
        .iter()
        .filter_map(|(_, variable)| {
            let AddressSpace::Storage { access } = variable.space else { return None };
            let binding = variable.binding.as_ref().unwrap();
            assert_eq!(binding.group, 0);
            let access = if access.contains(StorageAccess::STORE) { Access::ReadWrite } else { Access::Read };
            Some((binding.binding, variable.name.clone().unwrap(), access))
        })
        .collect();
    bindings.sort_by_key(|(binding, ..)| *binding);
    bindings
}

/// Returns the members of the uniform at binding 0: name, WGSL type, offset.
fn params(module: &Module) -> Vec<(String, String, u32)> {
    let uniform = module.global_variables.iter().find(|(_, variable)| variable.space == AddressSpace::Uniform);
    let (_, uniform) = uniform.expect("a uniform");
    assert_eq!(uniform.binding.as_ref().map(|binding| (binding.group, binding.binding)), Some((0, 0)));
    let TypeInner::Struct { members, .. } = &module.types[uniform.ty].inner else { panic!("params is no struct") };
    let members = members.iter().map(|member| {
        let name = match module.types[member.ty].inner {
            TypeInner::Scalar(Scalar { kind: ScalarKind::Uint, width: 4 }) => "u32".to_owned(),
            TypeInner::Scalar(Scalar { kind: ScalarKind::Sint, width: 4 }) => "i32".to_owned(),
            TypeInner::Scalar(Scalar { kind: ScalarKind::Float, width: 4 }) => "f32".to_owned(),
            ref other => format!("{other:?}"),
        };
        (member.name.clone().unwrap(), name, member.offset)
    });
    members.collect()
}

fn check(interface: &Interface, invocations: u32, module: &Module) -> Vec<String> {
    let mut problems = Vec::new();
    let mut compare = |what: &str, rust: String, wgsl: String| {
        if rust != wgsl {
            problems.push(format!("{}: {what}: Rust has {rust}, WGSL has {wgsl}", interface.file));
        }
    };
    let wanted: Vec<(u32, String, Access)> =
        (1..).zip(interface.bindings).map(|(number, (name, access))| (number, (*name).to_owned(), *access)).collect();
    compare("bindings", format!("{wanted:?}"), format!("{:?}", storage_bindings(module)));
    let wanted: Vec<(String, String, u32)> = (0..)
        .zip(interface.params)
        .map(|(index, (name, ty))| ((*name).to_owned(), (*ty).to_owned(), index * 4))
        .collect();
    compare("params", format!("{wanted:?}"), format!("{:?}", params(module)));
    let main = module.entry_points.iter().find(|entry| entry.name == "main").expect("an entry point main");
    compare("workgroup size", format!("{:?}", [invocations, 1, 1]), format!("{:?}", main.workgroup_size));
    problems
}

#[test]
fn interfaces_are_what_the_shaders_say() {
    let defaults = INTERFACES.iter().map(|interface| Variant { file: interface.file, values: Vec::new() });
    let problems: BTreeSet<String> = defaults
        .chain(ALL_VARIANTS.iter().cloned())
        .flat_map(|variant| {
            let module = module(&specialize(&variant).unwrap()).unwrap();
            let invocations = if variant.number("WORKGROUP") == 0 { WORKGROUP } else { variant.number("WORKGROUP") };
            check(wgvae::kernels::interface(variant.file), invocations, &module)
        })
        .collect();
    assert!(problems.is_empty(), "{}", problems.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn every_file_has_an_interface_and_every_interface_a_file() {
    let folder = repository().join("shaders");
    let on_disk: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".wgsl").map(str::to_owned))
        .collect();
    let interfaces: BTreeSet<String> = INTERFACES.iter().map(|interface| interface.file.to_owned()).collect();
    assert_eq!(on_disk, interfaces, "files in shaders/ and INTERFACES in src/kernels/mod.rs");
    let most = DeviceLimits::webgpu_default().max_storage_buffers_per_shader_stage as usize;
    for interface in INTERFACES {
        assert!(interface.bindings.len() <= most, "{}: more than {most} storage buffers", interface.file);
    }
}
