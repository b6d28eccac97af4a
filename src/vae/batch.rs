//! One image of a batch.

use crate::error::{Error, Result};

/// One image of a batch of `Latents` or `Images`: `&batch` means its only image, and
/// `batch.at(index)` one of several.
#[derive(Debug)]
pub struct At<'a, B> {
    pub(super) batch: &'a B,
    index: Option<u32>,
}

impl<B> Clone for At<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for At<'_, B> {}

impl<'a, B> From<&'a B> for At<'a, B> {
    fn from(batch: &'a B) -> Self {
        Self { batch, index: None }
    }
}

impl<'a, B> At<'a, B> {
    /// Chooses image `index`, from 0 on.
    pub(super) fn new(batch: &'a B, index: u32) -> Self {
        Self { batch, index: Some(index) }
    }

    /// Returns the index, for a batch of `count`, which is called `what`.
    ///
    /// # Errors
    /// [`Error::Input`] if there is no such image, or several and none was chosen.
    pub(super) fn index(&self, what: &str, count: u32) -> Result<u32> {
        match self.index {
            Some(index) if index < count => Ok(index),
            Some(index) => Err(Error::input("image index", format!("below {count}"), index.to_string())),
            None if count == 1 => Ok(0),
            None => Err(Error::input(what.to_owned(), "one image, or one chosen by `at`", format!("{count} images"))),
        }
    }
}
