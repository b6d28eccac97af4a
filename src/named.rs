//! Choices by name: one list of names for the command line, for Python and for errors.

use crate::error::{Error, Result};

/// A choice whose values users type as names.
pub trait Named: Copy + PartialEq + 'static {
    /// The option that takes them, for errors.
    const OPTION: &'static str;
    /// All values with their names.
    const NAMES: &'static [(&'static str, Self)];

    /// Returns all values.
    fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.iter().map(|(_, value)| *value)
    }

    /// Returns the name of this value.
    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
    }

    /// Returns the value of this name.
    ///
    /// # Errors
    /// [`Error::Input`] that lists the names.
    fn named(name: &str) -> Result<Self> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        found.ok_or_else(|| Error::input(Self::OPTION, Self::expected(), format!("{name:?}")))
    }

    /// Describes the names, for errors.
    fn expected() -> String {
        let names: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
        format!("one of {}", names.join(", "))
    }
}
