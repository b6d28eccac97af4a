//! Access to the fields of config.json one by one, so that errors can name the field.

use std::fmt;

use serde_json::{Map, Value};

use super::{PaddingMode, invalid};
use crate::error::Result;
use crate::named::Named;

/// The fields by name. Null counts as absent, except that a flag is false.
pub(super) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    pub(super) fn new(object: &'a Map<String, Value>) -> Self {
        Self(object)
    }

    /// Returns the value of a field, or `None` if it is absent or null.
    pub(super) fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    fn one<T>(&self, field: &str, expected: &str, read: fn(&Value) -> Option<T>) -> Result<Option<T>> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let read = read(value).ok_or_else(|| invalid(field, expected, show(value)))?;
        Ok(Some(read))
    }

    fn list<T>(&self, field: &str, expected: &str, read: fn(&Value) -> Option<T>) -> Result<Option<Vec<T>>> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let items = value.as_array().and_then(|items| items.iter().map(read).collect());
        let items = items.ok_or_else(|| invalid(field, format!("a list of {expected}"), show(value)))?;
        Ok(Some(items))
    }

    /// Reads a whole number.
    pub(super) fn whole(&self, field: &str) -> Result<Option<u32>> {
        self.one(field, "a whole number", whole)
    }

    /// Reads a whole number. If the field is null it is `null`, if it is absent `absent`.
    pub(super) fn whole_or(&self, field: &str, null: u32, absent: u32) -> Result<u32> {
        let default = if self.0.contains_key(field) { null } else { absent };
        Ok(self.whole(field)?.unwrap_or(default))
    }

    /// Reads a whole number, or the first of several, as diffusers reads `sample_size`.
    pub(super) fn first_whole(&self, field: &str) -> Result<Option<u32>> {
        self.one(field, "a whole number or two", |value| {
            whole(value.as_array().and_then(|items| items.first()).unwrap_or(value))
        })
    }

    /// Reads true or false. Null is false, as `None` is in diffusers' classes.
    pub(super) fn flag(&self, field: &str) -> Result<Option<bool>> {
        if self.0.get(field).is_some_and(Value::is_null) {
            return Ok(Some(false));
        }
        self.one(field, "true or false", Value::as_bool)
    }

    /// Reads how a network treats borders: true if it mirrors its tensors, false if it adds zeros.
    pub(super) fn reflects(&self, field: &str) -> Result<Option<bool>> {
        self.one(field, "\"zeros\" or \"reflect\"", |mode| match mode.as_str()? {
            "zeros" => Some(false),
            "reflect" => Some(true),
            _ => None,
        })
    }

    /// Reads what convolutions see beyond the borders of their input.
    pub(super) fn padding_mode(&self, field: &str) -> Result<Option<PaddingMode>> {
        self.one(field, &PaddingMode::expected(), |mode| PaddingMode::find(mode.as_str()?))
    }

    /// Reads a number.
    pub(super) fn number(&self, field: &str) -> Result<Option<f64>> {
        self.one(field, "a number", Value::as_f64)
    }

    /// Reads a list of whole numbers.
    pub(super) fn wholes(&self, field: &str) -> Result<Option<Vec<u32>>> {
        self.list(field, "whole numbers", whole)
    }

    /// Reads a list of true or false.
    pub(super) fn flags(&self, field: &str) -> Result<Option<Vec<bool>>> {
        self.list(field, "true or false", Value::as_bool)
    }

    /// Reads a list of `count` times true or false, or one value for all.
    pub(super) fn each_flag(&self, field: &str, count: usize) -> Result<Option<Vec<bool>>> {
        match self.get(field).and_then(Value::as_bool) {
            Some(all) => Ok(Some(vec![all; count])),
            None => self.flags(field),
        }
    }

    /// Reads a list of numbers.
    pub(super) fn numbers(&self, field: &str) -> Result<Option<Vec<f64>>> {
        self.list(field, "numbers", Value::as_f64)
    }

    /// Reads a text.
    pub(super) fn text(&self, field: &str) -> Result<Option<String>> {
        self.one(field, "a text", |value| value.as_str().map(str::to_owned))
    }

    /// Reads one of two texts. True for the first, or if the field is absent.
    pub(super) fn is_first_of(&self, field: &str, [first, second]: [&str; 2]) -> Result<bool> {
        match self.text(field)?.as_deref() {
            None => Ok(true),
            Some(text) if text == first => Ok(true),
            Some(text) if text == second => Ok(false),
            Some(other) => Err(invalid(field, format!("\"{first}\" or \"{second}\""), other)),
        }
    }

    /// Reads a list of `count` texts, or one text for all; `default` if the field is absent.
    pub(super) fn each_text(&self, field: &str, default: &str, count: usize) -> Result<Vec<String>> {
        match self.get(field) {
            None => Ok(vec![default.to_owned(); count]),
            Some(Value::String(text)) => Ok(vec![text.clone(); count]),
            Some(_) => {
                let texts = self.texts(field)?.unwrap_or_default();
                if texts.len() == count {
                    return Ok(texts);
                }
                Err(invalid(field, format!("{count} values, one for each level"), texts.len()))
            }
        }
    }

    /// Reads a list of lists of whole numbers.
    pub(super) fn lists(&self, field: &str) -> Result<Option<Vec<Vec<u32>>>> {
        self.list(field, "lists of whole numbers", |value| value.as_array()?.iter().map(whole).collect())
    }

    /// Reads a list of texts.
    pub(super) fn texts(&self, field: &str) -> Result<Option<Vec<String>>> {
        self.list(field, "texts", |value| value.as_str().map(str::to_owned))
    }

    /// Checks that a field is absent, is `wanted`, or is a list with `count` times `wanted`.
    pub(super) fn all_are(&self, field: &str, wanted: &str, count: usize) -> Result<()> {
        let Some(value) = self.get(field) else { return Ok(()) };
        let fits = match value {
            Value::Array(items) => items.len() == count && items.iter().all(|item| item == wanted),
            other => count == 1 && other == wanted,
        };
        let expected = if count == 1 { format!("\"{wanted}\"") } else { format!("{count} times \"{wanted}\"") };
        if fits { Ok(()) } else { Err(invalid(field, expected, show(value))) }
    }

    /// Checks that a field is absent or `wanted`, as JSON. Any other value means another network.
    pub(super) fn only(&self, field: &str, wanted: &str) -> Result<()> {
        let found = self.get(field).map(show);
        match found {
            Some(found) if found != wanted => Err(invalid(field, wanted, found)),
            _ => Ok(()),
        }
    }
}

fn whole(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|value| u32::try_from(value).ok())
}

/// Formats a value for a message: its JSON, at most 120 characters.
pub(super) fn show(value: &(impl fmt::Display + ?Sized)) -> String {
    value.to_string().chars().take(120).collect()
}
