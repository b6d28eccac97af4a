//! Ordered sets and maps, built entry by entry. `collect` would sort its input first, and the sort
//! for each type of entry adds 1 KB to the download of a page. The code that inserts one entry is
//! in the download anyway. A list is sorted by pairs of numbers, for which one sort is enough.

use std::collections::{BTreeMap, BTreeSet};

/// A replacement of `collect` for a [`BTreeSet`] or a [`BTreeMap`].
pub(crate) trait Ordered: Iterator + Sized {
    /// Returns the set of all items.
    fn into_set(self) -> BTreeSet<Self::Item>
    where
        Self::Item: Ord,
    {
        let mut set = BTreeSet::new();
        set.extend(self);
        set
    }

    /// Returns the map of all pairs. If several pairs have one key, the last of them wins.
    fn into_map<Key: Ord, Value>(self) -> BTreeMap<Key, Value>
    where
        Self: Iterator<Item = (Key, Value)>,
    {
        let mut map = BTreeMap::new();
        map.extend(self);
        map
    }
}

impl<Items: Iterator> Ordered for Items {}

/// Returns the indices of `keys` in the order of the keys, and equal keys in their own order.
pub(crate) fn by_key(keys: impl Iterator<Item = u64>) -> impl Iterator<Item = usize> {
    let mut pairs: Vec<(u64, usize)> = keys.zip(0..).collect();
    pairs.sort_unstable();
    pairs.into_iter().map(|(_, index)| index)
}
