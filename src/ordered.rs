//! Ordered sets and maps, made entry by entry. `collect` sorts what it is given first, and a sort
//! of each type of entry would be 1 KB of what a page downloads; how a tree takes one entry is
//! there anyway.

use std::collections::{BTreeMap, BTreeSet};

/// What `collect` does for a [`BTreeSet`] or a [`BTreeMap`].
pub(crate) trait Ordered: Iterator + Sized {
    /// The set of all items.
    fn into_set(self) -> BTreeSet<Self::Item>
    where
        Self::Item: Ord,
    {
        let mut set = BTreeSet::new();
        set.extend(self);
        set
    }

    /// The map of all pairs; of those with one key the last.
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
