//! Weights that the network uses as one, and that diffusers stores as several tensors: queries,
//! keys and values of linear attention. A head crosses their borders.

use std::collections::BTreeMap;

use super::StoredTensor;

/// End of the name of a joined tensor, and of the tensors whose rows it has, in their order.
const JOINED: &str = ".attn.to_qkv.weight";
const PARTS: [&str; 3] = [".attn.to_q.weight", ".attn.to_k.weight", ".attn.to_v.weight"];

/// Joins all such tensors whose parts are there.
pub(super) fn join(tensors: &mut BTreeMap<String, StoredTensor>) {
    let bases: Vec<String> = tensors.keys().filter_map(|name| name.strip_suffix(PARTS[0]).map(str::to_owned)).collect();
    for base in bases {
        let names = PARTS.map(|part| format!("{base}{part}"));
        if !names.iter().all(|name| tensors.contains_key(name)) {
            continue;
        }
        let mut parts = names.iter().filter_map(|name| tensors.remove(name));
        if let Some(first) = parts.next() {
            let joined = StoredTensor { further: parts.collect(), ..first };
            tensors.insert(format!("{base}{JOINED}"), joined);
        }
    }
}

/// Returns the tensors of `tensors` that are missing if `name` is: itself, or those of its parts.
pub(super) fn missing(name: &str, tensors: &BTreeMap<String, StoredTensor>) -> Vec<String> {
    let Some(base) = name.strip_suffix(JOINED) else { return vec![name.to_owned()] };
    let parts = PARTS.map(|part| format!("{base}{part}"));
    let missing: Vec<String> = parts.into_iter().filter(|part| !tensors.contains_key(part)).collect();
    if missing.is_empty() { vec![name.to_owned()] } else { missing }
}
