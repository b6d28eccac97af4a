//! The index of a model in shards, `*.safetensors.index.json`, which lists the shard files. Native
//! only.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::error::{Error, Result};

/// Returns the distinct file names in the `weight_map` of the index `json`. Names with folders are
/// an error, so none leads out of the index's folder. `file` is for errors.
///
/// # Errors
/// [`Error::Format`].
pub fn shard_names(file: &str, json: &str) -> Result<BTreeSet<String>> {
    let fail = |problem: String| Error::Format { file: file.to_owned(), problem };
    let index: Index = serde_json::from_str(json).map_err(|error| fail(format!("not a shard index: {error}")))?;
    let Some(FileNames(shards)) = index.weight_map else {
        return Err(fail("neither weights nor a shard index (it has no \"weight_map\")".to_owned()));
    };
    if shards.is_empty() {
        return Err(fail("its \"weight_map\" is empty".to_owned()));
    }
    if let Some(shard) = shards.iter().find(|shard| !is_plain(shard)) {
        return Err(fail(format!("shard {shard:?} is not a plain file name")));
    }
    Ok(shards)
}

/// True if `name` is a file name without any folder, on every system.
pub(crate) fn is_plain(name: &str) -> bool {
    let is_plain = |letter: char| !letter.is_control() && !['/', '\\', ':'].contains(&letter);
    !["", ".", ".."].contains(&name) && name.chars().all(is_plain)
}

/// The parsed part of an index. A tree of the whole JSON would take a hundred times the memory of
/// its text.
struct Index {
    weight_map: Option<FileNames>,
}

/// The distinct values of a `weight_map`.
struct FileNames(BTreeSet<String>);

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Index;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a \"weight_map\"")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<Index, M::Error> {
                let mut weight_map = None;
                while let Some(field) = map.next_key::<String>()? {
                    if field == "weight_map" {
                        weight_map = Some(map.next_value()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Index { weight_map })
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

impl<'de> Deserialize<'de> for FileNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Values;

        impl<'de> Visitor<'de> for Values {
            type Value = FileNames;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of file names")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<FileNames, M::Error> {
                let mut names = BTreeSet::new();
                while let Some((_, name)) = map.next_entry::<IgnoredAny, String>()? {
                    names.insert(name);
                }
                Ok(FileNames(names))
            }
        }

        deserializer.deserialize_map(Values)
    }
}
