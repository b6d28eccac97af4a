//! Reads a report that someone else may have written: says what is wrong with it, and believes no number before it is checked.

use serde_json::Value;

use super::{MemoryReport, SCHEMA, VERSION};
use crate::error::{Error, Result};

/// Sides beyond this are taken for corrupt.
const MAX_SIDE: u32 = 1 << 20;

impl MemoryReport {
    /// Parses the JSON of a report. `name` is for errors.
    ///
    /// # Errors
    /// [`Error::Format`] for what is not JSON, not a report, a report of a newer format, or one that contradicts itself.
    pub fn from_json(name: &str, json: &str) -> Result<Self> {
        let wrong = |problem: String| Error::Format { file: name.to_owned(), problem };
        let value: Value = serde_json::from_str(json).map_err(|error| wrong(format!("not JSON: {error}")))?;
        match value.get("schema") {
            Some(Value::String(schema)) if schema == SCHEMA => {}
            Some(other) => return Err(wrong(format!("expected schema \"{SCHEMA}\", found {}", shortened(other)))),
            None => return Err(wrong(format!("not a memory report: expected schema \"{SCHEMA}\", found none"))),
        }
        match value.get("version").and_then(Value::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) if version > u64::from(VERSION) => {
                return Err(wrong(format!(
                    "a report of format {version}, but this wgvae reads formats up to {VERSION}: a newer wgvae is needed"
                )));
            }
            _ => {
                let found = value.get("version").map_or("none".to_owned(), shortened);
                return Err(wrong(format!("expected version {VERSION}, found {found}")));
            }
        }
        let report: Self =
            serde_json::from_value(value).map_err(|error| wrong(format!("not a whole memory report: {error}")))?;
        report.check().map_err(wrong)?;
        Ok(report)
    }

    /// What the types do not say.
    fn check(&self) -> std::result::Result<(), String> {
        for (index, row) in self.measurements.iter().enumerate() {
            let wrong = |problem: String| Err(format!("measurement {index}: {problem}"));
            if row.adapter >= self.adapters.len() {
                return wrong(format!("adapter {} of {}", row.adapter, self.adapters.len()));
            }
            for (side, extent) in [("width", row.width), ("height", row.height)] {
                if extent == 0 || extent > MAX_SIDE {
                    return wrong(format!("expected a {side} of 1 to {MAX_SIDE} pixels, found {extent}"));
                }
            }
            if row.measured.is_some() == row.error.is_some() {
                return wrong("expected either what it took or why it failed".to_owned());
            }
            if let Some(measured) = row.measured {
                let times = [measured.load_seconds, measured.prepare_seconds, measured.seconds];
                if let Some(time) = times.iter().find(|time| !time.is_finite() || **time < 0.0) {
                    return wrong(format!("expected seconds, found {time}"));
                }
            }
            if let Some(predicted) = row.predicted {
                let parts = [predicted.weights, predicted.slots, predicted.parameters, predicted.staging];
                let sum = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.0));
                if sum != Some(predicted.peak.0) {
                    let peak = predicted.peak.0;
                    return wrong(format!("the predicted peak of {peak} bytes is not the sum of its parts"));
                }
            }
        }
        Ok(())
    }
}

/// A value for an error message.
fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 { text } else { format!("{} ...", text.chars().take(60).collect::<String>()) }
}
