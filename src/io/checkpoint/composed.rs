//! Weights that the network uses otherwise than files store them. Both are DC-AE's: queries, keys
//! and values of linear attention are one tensor, because a head crosses their borders, and a batch
//! norm is a part of the convolution before it.

use std::collections::BTreeMap;

use super::StoredTensor;
use super::stored::Rule;
use crate::io::names::Layout;

type Tensors = BTreeMap<String, StoredTensor>;

/// End of the name of queries, keys and values, and of the tensors whose rows they have, in order.
const QKV: &str = ".attn.to_qkv.weight";
const QKV_PARTS: [&str; 3] = [".attn.to_q.weight", ".attn.to_k.weight", ".attn.to_v.weight"];

/// Ends of the names of a convolution that takes over a batch norm, and of the norm's tensors.
const FILTER: &str = ".conv2.weight";
const SUMMAND: &str = ".conv2.bias";
const NORM: [&str; 4] = [".norm.bias", ".norm.running_mean", ".norm.weight", ".norm.running_var"];

/// Replaces all such tensors of which every part is there.
pub(super) fn compose(tensors: &mut Tensors) {
    for base in bases(tensors, QKV_PARTS[0]) {
        if let Some(parts) = take_all(tensors, &base, &QKV_PARTS) {
            insert(tensors, format!("{base}{QKV}"), parts, Rule::Rows);
        }
    }
    for base in bases(tensors, NORM[1]) {
        let Some(norm) = take_all(tensors, &base, &NORM) else { continue };
        let name = format!("{base}{FILTER}");
        if let Some(filter) = tensors.remove(&name) {
            insert(tensors, name, vec![filter, norm[2].clone(), norm[3].clone()], Rule::Filter);
        }
        insert(tensors, format!("{base}{SUMMAND}"), norm, Rule::Summand);
    }
}

/// Returns the names of all tensors that end with `end`, without it.
fn bases(tensors: &Tensors, end: &str) -> Vec<String> {
    tensors.keys().filter_map(|name| name.strip_suffix(end).map(str::to_owned)).collect()
}

/// Removes the tensors with these `ends`, if all are there.
fn take_all(tensors: &mut Tensors, base: &str, ends: &[&str]) -> Option<Vec<StoredTensor>> {
    let names: Vec<String> = ends.iter().map(|end| format!("{base}{end}")).collect();
    let complete = names.iter().all(|name| tensors.contains_key(name));
    complete.then(|| names.iter().filter_map(|name| tensors.remove(name)).collect())
}

fn insert(tensors: &mut Tensors, name: String, parts: Vec<StoredTensor>, rule: Rule) {
    let mut parts = parts.into_iter();
    if let Some(first) = parts.next() {
        tensors.insert(name, StoredTensor { further: parts.collect(), rule, ..first });
    }
}

/// Returns the tensors of `tensors` that are missing if `name` is: itself, or those that it comes
/// from. Only files in diffusers' `layout` have queries, keys and values apart.
pub(super) fn missing(name: &str, tensors: &Tensors, layout: Layout) -> Vec<String> {
    let parts: Vec<String> = match (name.strip_suffix(QKV), name.strip_suffix(SUMMAND)) {
        (Some(base), _) if layout == Layout::Diffusers => QKV_PARTS.map(|part| format!("{base}{part}")).to_vec(),
        (None, Some(block)) if is_block_of_dc(block) => NORM.map(|part| format!("{block}{part}")).to_vec(),
        _ => Vec::new(),
    };
    let missing: Vec<String> = parts.into_iter().filter(|part| !tensors.contains_key(part)).collect();
    if missing.is_empty() { vec![name.to_owned()] } else { missing }
}

/// True for the name of a block of DC-AE: two numbers end it, those of its level and its own.
fn is_block_of_dc(name: &str) -> bool {
    name.rsplit('.').take(2).all(|part| part.parse::<u32>().is_ok())
}
