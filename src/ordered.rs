//! Ordered sets and maps in little code, and ordered lists.
//!
//! [`BTreeMap`] takes 3 KB of a page's download for each type of entry, a sorted list a tenth of
//! that. So [`Map`] and [`Set`] are sorted lists. An insertion moves all entries after it, so if a
//! file decides how many entries there are, they must come in ascending order. `collect` would sort
//! the input of a [`BTreeMap`] first, and the sort adds 1 KB for each type.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Index;

/// A map for few entries, or for entries that are inserted in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Map<Key, Value>(Vec<(Key, Value)>);

impl<Key: Ord, Value> Map<Key, Value> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the index of `key`, or the index at which it would be inserted.
    fn find<Part: Ord + ?Sized>(&self, key: &Part) -> Result<usize, usize>
    where
        Key: Borrow<Part>,
    {
        self.0.binary_search_by(|(known, _)| known.borrow().cmp(key))
    }

    pub(crate) fn get<Part: Ord + ?Sized>(&self, key: &Part) -> Option<&Value>
    where
        Key: Borrow<Part>,
    {
        self.find(key).ok().map(|index| &self.0[index].1)
    }

    pub(crate) fn get_mut<Part: Ord + ?Sized>(&mut self, key: &Part) -> Option<&mut Value>
    where
        Key: Borrow<Part>,
    {
        self.find(key).ok().map(|index| &mut self.0[index].1)
    }

    pub(crate) fn contains_key<Part: Ord + ?Sized>(&self, key: &Part) -> bool
    where
        Key: Borrow<Part>,
    {
        self.find(key).is_ok()
    }

    /// Sets the value of `key`. Drops the value that it had.
    pub(crate) fn insert(&mut self, key: Key, value: Value) {
        match self.find(&key) {
            Ok(index) => self.0[index].1 = value,
            Err(index) => self.0.insert(index, (key, value)),
        }
    }

    /// Returns the value of `key`, which is `value` if it had none.
    pub(crate) fn or_insert(&mut self, key: Key, value: Value) -> &mut Value {
        let index = self.find(&key);
        let (Ok(index) | Err(index)) = index.inspect_err(|index| self.0.insert(*index, (key, value)));
        &mut self.0[index].1
    }

    /// Drops the value of `key`, if it has one.
    pub(crate) fn remove(&mut self, key: &Key) {
        if let Ok(index) = self.find(key) {
            self.0.remove(index);
        }
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Key, &Value) -> bool) {
        self.0.retain(|(key, value)| keep(key, value));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> + Clone {
        self.0.iter().map(|(key, _)| key)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().map(|(_, value)| value)
    }
}

impl<Key: Ord, Value> Default for Map<Key, Value> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Key: Ord + Borrow<Part>, Value, Part: Ord + ?Sized> Index<&Part> for Map<Key, Value> {
    type Output = Value;

    fn index(&self, key: &Part) -> &Value {
        self.get(key).unwrap_or_else(|| unreachable!("the caller knows that the key is there"))
    }
}

impl<Key: Ord, Value> IntoIterator for Map<Key, Value> {
    type Item = (Key, Value);
    type IntoIter = std::vec::IntoIter<(Key, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The last of several values of a key stays.
impl<Key: Ord, Value> FromIterator<(Key, Value)> for Map<Key, Value> {
    fn from_iter<Pairs: IntoIterator<Item = (Key, Value)>>(pairs: Pairs) -> Self {
        let mut map = Self::new();
        for (key, value) in pairs {
            map.insert(key, value);
        }
        map
    }
}

/// A set of few items, or of items that are inserted in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Set<Item>(Vec<Item>);

impl<Item: Ord> Set<Item> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds an item. Returns true if it is new.
    pub(crate) fn insert(&mut self, item: Item) -> bool {
        let index = self.0.binary_search(&item);
        index.inspect_err(|index| self.0.insert(*index, item)).is_err()
    }

    pub(crate) fn contains(&self, item: &Item) -> bool {
        self.0.binary_search(item).is_ok()
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&Item) -> bool) {
        self.0.retain(keep);
    }

    /// Returns the items in order.
    pub(crate) fn items(&self) -> &[Item] {
        &self.0
    }

    pub(crate) fn into_items(self) -> Vec<Item> {
        self.0
    }
}

impl<Item: Ord> Extend<Item> for Set<Item> {
    fn extend<Items: IntoIterator<Item = Item>>(&mut self, items: Items) {
        for item in items {
            self.insert(item);
        }
    }
}

impl<Item: Ord> FromIterator<Item> for Set<Item> {
    fn from_iter<Items: IntoIterator<Item = Item>>(items: Items) -> Self {
        let mut set = Self::new();
        set.extend(items);
        set
    }
}

/// A replacement of `collect` for a [`BTreeMap`].
pub(crate) trait Ordered: Iterator + Sized {
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

#[cfg(test)]
mod tests {
    use super::{Map, Set};

    #[test]
    fn a_map_keeps_its_keys_in_order() {
        let mut map: Map<String, u32> =
            [("b", 1), ("a", 2), ("b", 3)].map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
        assert_eq!(*map.or_insert("c".to_owned(), 4), 4);
        *map.or_insert("a".to_owned(), 9) += 1;
        assert_eq!(
            map.iter().map(|(key, value)| (key.as_str(), *value)).collect::<Vec<_>>(),
            [("a", 3), ("b", 3), ("c", 4)]
        );
        assert_eq!((map["b"], map.get("d"), map.contains_key("a")), (3, None, true));
        assert_eq!(map.get_mut("c"), Some(&mut 4));
        map.remove(&"b".to_owned());
        map.remove(&"d".to_owned());
        map.retain(|key, _| key != "a");
        assert_eq!((map.len(), map.values().sum::<u32>()), (1, 4));
    }

    #[test]
    fn a_set_has_each_item_once_and_in_order() {
        let mut set: Set<u32> = [5, 1, 3, 1].into_iter().collect();
        assert!(!set.insert(3) && set.insert(4) && set.contains(&5) && !set.contains(&2));
        set.retain(|item| *item > 1);
        assert_eq!(set.items(), [3, 4, 5]);
        assert_eq!(set.into_items(), [3, 4, 5]);
    }
}
