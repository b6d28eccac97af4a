//! Choices by name: one list of names for the command line, for Python and for errors.

use crate::error::{Error, Result};

/// A choice whose values users type as names. [`named!`](crate::named!) implements it.
pub trait Named: Copy + 'static {
    /// The option that takes them, for errors.
    const OPTION: &'static str;
    /// All values with their names.
    const NAMES: &'static [(&'static str, Self)];

    /// Returns the name of this value.
    fn name(self) -> &'static str;

    /// Returns all values.
    fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.iter().map(|(_, value)| *value)
    }

    /// Returns the value of this name, if there is one.
    fn find(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Returns the value of this name.
    ///
    /// # Errors
    /// [`Error::Input`] that lists the names.
    fn named(name: &str) -> Result<Self> {
        Self::find(name).ok_or_else(|| Error::input(Self::OPTION, Self::expected(), format!("{name:?}")))
    }

    /// Describes the names, for errors.
    fn expected() -> String {
        let names: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
        format!("one of {}", names.join(", "))
    }
}

/// Implements [`Named`] for an enum. A variant without a name is a compile error.
#[macro_export]
macro_rules! named {
    ($type:ident, $option:literal: $($variant:ident = $name:literal),*) => {
        impl $crate::Named for $type {
            const OPTION: &'static str = $option;
            const NAMES: &'static [(&'static str, Self)] = &[$(($name, Self::$variant)),*];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),*
                }
            }
        }
    };
}
