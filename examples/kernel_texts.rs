//! Prints every kernel that a plan can use, as JSON, without a GPU:
//! `cargo run --release --example kernel_texts -- f32 > kernels.json`
//!
//! The argument is how elements are stored: f32, f16, `packed_f16` or `fast_f16`. Each kernel has
//! its file's name, its WGSL text for browsers, the bytes of its parameters at binding 0, and for
//! each further binding true if it is only read. The tests of browsers compile them.

use serde_json::json;
use wgvae::Storage;
use wgvae::internals::every_variant;
use wgvae::kernels::source::{for_browsers, specialize};
use wgvae::kernels::{Access, interface};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let storage = std::env::args().nth(1).ok_or("expected f32, f16, packed_f16 or fast_f16")?;
    let storage: Storage = serde_json::from_value(json!(storage))?;
    let mut kernels = Vec::new();
    for variant in every_variant(storage)? {
        let interface = interface(variant.file);
        let read_only: Vec<bool> = interface.bindings.iter().map(|(_, access)| *access == Access::Read).collect();
        kernels.push(json!({
            "file": variant.file,
            "text": for_browsers(specialize(&variant)?),
            "parameterBytes": interface.params.len() * 4,
            "readOnly": read_only,
        }));
    }
    println!("{}", serde_json::to_string(&kernels)?);
    Ok(())
}
