//! Reads the fields of config.json one by one, so that a complaint can name the field.

use std::fmt;

use serde_json::{Map, Value};

use super::{AutoencoderConfig, invalid};
use crate::error::Result;

/// The one network described here.
const CLASS: &str = "AutoencoderKL";

/// Longest text taken for a config, in bytes. Published ones have about a thousand; in memory text of many small parts takes a hundred times its
/// length.
const MAX_BYTES: usize = 256 << 10;

/// Parses config.json. Ranges and combinations are checked by the caller.
pub(super) fn parse(json: &str) -> Result<AutoencoderConfig> {
    if json.len() > MAX_BYTES {
        return Err(invalid("config.json", format!("at most {MAX_BYTES} bytes"), format!("{} bytes", json.len())));
    }
    let object = match serde_json::from_str(json) {
        Ok(Value::Object(object)) => object,
        Ok(other) => return Err(invalid("config.json", "a JSON object".to_owned(), show(&other))),
        Err(error) => return Err(invalid("config.json", "a JSON object".to_owned(), error.to_string())),
    };
    let fields = Fields(&object);
    match fields.get("_class_name") {
        Some(Value::String(class)) if class == CLASS => {}
        other => return Err(invalid("_class_name", format!("\"{CLASS}\""), other.map_or("nothing".to_owned(), show))),
    }
    fields.all_are("act_fn", "silu", 1)?;
    let block_out_channels = fields.list("block_out_channels", "whole numbers", whole)?.unwrap_or_else(|| vec![64]);
    fields.all_are("up_block_types", "UpDecoderBlock2D", block_out_channels.len())?;
    let decoder_channels = fields.list("decoder_block_out_channels", "whole numbers", whole)?;
    Ok(AutoencoderConfig {
        out_channels: fields.one("out_channels", "a whole number", whole)?.unwrap_or(3),
        latent_channels: fields.one("latent_channels", "a whole number", whole)?.unwrap_or(4),
        block_out_channels: decoder_channels.unwrap_or(block_out_channels),
        layers_per_block: fields.one("layers_per_block", "a whole number", whole)?.unwrap_or(1),
        norm_num_groups: fields.one("norm_num_groups", "a whole number", whole)?.unwrap_or(32),
        mid_block_add_attention: fields
            .one("mid_block_add_attention", "true or false", Value::as_bool)?
            .unwrap_or(true),
        use_post_quant_conv: fields.one("use_post_quant_conv", "true or false", Value::as_bool)?.unwrap_or(true),
        scaling_factor: fields.one("scaling_factor", "a number", number)?.unwrap_or(0.18215),
        shift_factor: fields.one("shift_factor", "a number", number)?.unwrap_or(0.0),
        latents_mean: fields.list("latents_mean", "numbers", number)?,
        latents_std: fields.list("latents_std", "numbers", number)?,
        force_upcast: fields.one("force_upcast", "true or false", Value::as_bool)?.unwrap_or(true),
        sample_size: Some(fields.one("sample_size", "a whole number or two", first_whole)?.unwrap_or(32)),
    })
}

/// The fields by name. Null counts as absent, as in Python's `None`.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    fn one<T>(&self, field: &str, expected: &str, read: fn(&Value) -> Option<T>) -> Result<Option<T>> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let read = read(value).ok_or_else(|| invalid(field, expected.to_owned(), show(value)))?;
        Ok(Some(read))
    }

    fn list<T>(&self, field: &str, expected: &str, read: fn(&Value) -> Option<T>) -> Result<Option<Vec<T>>> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let items = value.as_array().and_then(|items| items.iter().map(read).collect());
        let items = items.ok_or_else(|| invalid(field, format!("a list of {expected}"), show(value)))?;
        Ok(Some(items))
    }

    /// Checks that a field, where there is one, is `wanted`, or a list of `count` times that.
    fn all_are(&self, field: &str, wanted: &str, count: usize) -> Result<()> {
        let Some(value) = self.get(field) else { return Ok(()) };
        let fits = match value {
            Value::Array(items) => items.len() == count && items.iter().all(|item| item == wanted),
            other => count == 1 && other == wanted,
        };
        let expected = if count == 1 { format!("\"{wanted}\"") } else { format!("{count} times \"{wanted}\"") };
        if fits { Ok(()) } else { Err(invalid(field, expected, show(value))) }
    }
}

fn whole(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|value| u32::try_from(value).ok())
}

/// A whole number, or the first of several, as diffusers reads `sample_size`.
fn first_whole(value: &Value) -> Option<u32> {
    whole(value.as_array().and_then(|items| items.first()).unwrap_or(value))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "f32 is the precision used; what overflows it becomes infinite and is refused"
)]
fn number(value: &Value) -> Option<f32> {
    value.as_f64().map(|value| value as f32)
}

/// The value for a message: as JSON, at most a line.
fn show(value: &(impl fmt::Display + ?Sized)) -> String {
    value.to_string().chars().take(120).collect()
}
