//! Evidence in a file's tensors for a kind of VAE, or for a spelling of names.

use crate::ordered::Map;

/// Evidence for a kind of VAE.
pub(super) enum Sign {
    /// All tensors of these names exist.
    All(&'static [&'static str]),
    /// The name of some tensor starts with this.
    Starts(&'static str),
    /// The name of some tensor contains this.
    Contains(&'static str),
    /// The tensor of this name has this shape.
    Shape(&'static str, &'static [u64]),
    /// The tensors fit.
    Fits(fn(&Map<&str, &[u64]>) -> bool),
}

impl Sign {
    /// True if the tensors `inside` the VAE (name without prefix -> shape) show this.
    pub(super) fn fits(&self, inside: &Map<&str, &[u64]>) -> bool {
        match self {
            Self::All(names) => names.iter().all(|name| inside.contains_key(name)),
            Self::Starts(start) => inside.keys().any(|name| name.starts_with(start)),
            Self::Contains(part) => inside.keys().any(|name| name.contains(part)),
            Self::Shape(name, shape) => inside.get(name) == Some(shape),
            Self::Fits(fits) => fits(inside),
        }
    }
}
