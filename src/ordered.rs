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

/// Returns the second numbers of `pairs`, in the order of the first, and of the second among equal
/// ones.
pub(crate) fn by_first(pairs: impl Iterator<Item = (u64, u64)>) -> impl Iterator<Item = u64> {
    let mut pairs: Vec<(u64, u64)> = pairs.collect();
    pairs.sort_unstable();
    pairs.into_iter().map(|(_, second)| second)
}
