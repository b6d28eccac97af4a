//! Parser of config.json. It finds the class, which reads the fields.

use serde_json::Value;

use super::classes::CLASSES;
use super::fields::{Fields, show};
use super::unsupported::Unsupported;
use super::{AutoencoderConfig, Network, invalid};
use crate::error::Result;

/// Longest text accepted as a config, in bytes. Published configs have about a thousand. Parsed
/// text of many small parts takes a hundred times its length in memory.
const MAX_BYTES: usize = 256 << 10;

/// Checks the length of a text `name` before it is parsed.
pub(super) fn check_length(name: &str, json: &str) -> Result<()> {
    if json.len() <= MAX_BYTES {
        return Ok(());
    }
    Err(invalid(name, format!("at most {MAX_BYTES} bytes"), format!("{} bytes", json.len())))
}

/// Parses config.json. The caller checks ranges and combinations.
pub(super) fn parse(json: &str) -> Result<AutoencoderConfig> {
    check_length("config.json", json)?;
    let object = match serde_json::from_str(json) {
        Ok(Value::Object(object)) => object,
        Ok(other) => return Err(invalid("config.json", "a JSON object", show(&other))),
        Err(error) => return Err(invalid("config.json", "a JSON object", format!("an error: {error}"))),
    };
    let fields = Fields::new(&object);
    let class = fields.get("_class_name");
    match CLASSES.iter().find(|(name, _)| class.and_then(Value::as_str) == Some(name)) {
        Some((_, read)) => with_borders(read(&fields)?, &fields),
        None => {
            let names: Vec<String> = CLASSES.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            let mut found = class.map_or("nothing".to_owned(), show);
            if let Some(kind) = class.and_then(Value::as_str).and_then(Unsupported::of_class) {
                found = format!("{found}, {kind}");
            }
            Err(invalid("_class_name", format!("one of {}", names.join(", ")), found))
        }
    }
}

/// Returns `config` with the borders that a field states. No class of diffusers has the field, but
/// people add it for models like EQ-SDXL-VAE.
fn with_borders(mut config: AutoencoderConfig, fields: &Fields<'_>) -> Result<AutoencoderConfig> {
    match &mut config.network {
        Network::Kl(kl) => kl.padding_mode = fields.padding_mode("padding_mode")?.unwrap_or_default(),
        _ => fields.only("padding_mode", "\"zeros\"")?,
    }
    Ok(config)
}

/// True if this crate can read config.json of models of diffusers' class `name`.
pub fn is_supported_class(name: &str) -> bool {
    CLASSES.iter().any(|(class, _)| *class == name)
}
