//! Reader of reports that anybody may have written. Its errors name the problem, and it checks
//! every number before use.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use wgvae::{Bytes, Error, Result};

use super::{CLIPS_SINCE, Measurement, MemoryReport, Predicted, SCHEMA, VERSION};

/// Largest side in pixels. Larger sides count as corrupt.
const MAX_SIDE: u32 = 1 << 20;

impl MemoryReport {
    /// Parses the JSON of a report. `name` is for errors.
    ///
    /// # Errors
    /// [`Error::Format`] for text that is not JSON or not a report, for a newer format, and for
    /// contradictory values.
    pub fn from_json(name: &str, json: &str) -> Result<Self> {
        let wrong = |problem: String| Error::format(name, problem);
        let none = || wrong(format!("not a memory report: expected schema \"{SCHEMA}\", found none"));
        // Values stay text here: a tree of arbitrary JSON takes a hundred times the memory of its
        // text.
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(json)
            .map_err(|error| if error.is_data() { none() } else { wrong(format!("not JSON: {error}")) })?;
        let schema = fields.get("schema").ok_or_else(none)?;
        if serde_json::from_str::<String>(schema.get()).ok().as_deref() != Some(SCHEMA) {
            return Err(wrong(format!("expected schema \"{SCHEMA}\", found {}", describe(schema))));
        }
        let version = fields.get("version");
        match version.and_then(|version| serde_json::from_str::<u64>(version.get()).ok()) {
            Some(version) if (1..=u64::from(VERSION)).contains(&version) => {}
            Some(version) if version > u64::from(VERSION) => {
                return Err(wrong(format!(
                    "a report of format {version}, but this wgvae reads formats up to {VERSION}: a newer wgvae is needed"
                )));
            }
            _ => {
                let found = version.map_or("none".to_owned(), |version| describe(version));
                return Err(wrong(format!("expected a version of 1 to {VERSION}, found {found}")));
            }
        }
        let report: Self =
            serde_json::from_str(json).map_err(|error| wrong(format!("not a whole memory report: {error}")))?;
        report.check().map_err(wrong)?;
        Ok(report)
    }

    /// Checks rules that the types do not express.
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
            if let Err(problem) = self.check_clip(row) {
                return wrong(problem);
            }
            if row.measured.is_some() == row.error.is_some() {
                return wrong("expected either measured values or an error".to_owned());
            }
            if let Some(measured) = row.measured {
                let times = [measured.load_seconds, measured.prepare_seconds, measured.seconds];
                if let Some(time) = times.iter().find(|time| !time.is_finite() || **time < 0.0) {
                    return wrong(format!("expected seconds, found {time}"));
                }
            }
            if let Some(predicted) = row.predicted {
                let Predicted { weights, slots, parameters, staging, states, .. } = predicted;
                let states = states.map_or(Bytes(0), |states| states.gpu);
                let sum = [weights, slots, parameters, staging, states]
                    .iter()
                    .try_fold(0_u64, |sum, part| sum.checked_add(part.0));
                if sum != Some(predicted.peak.0) {
                    let peak = predicted.peak.0;
                    return wrong(format!("the predicted peak of {peak} bytes is not the sum of its parts"));
                }
            }
        }
        Ok(())
    }

    /// Checks the fields that only rows of clips have: these need all of them, other rows none.
    fn check_clip(&self, row: &Measurement) -> std::result::Result<(), String> {
        let states = row.predicted.map(|predicted| predicted.states);
        if self.version < CLIPS_SINCE && (row.frames.is_some() || states.flatten().is_some()) {
            return Err(format!("expected an image, in a report of format {}, found a clip", self.version));
        }
        if row.frames == Some(0) {
            return Err("expected at least 1 frame, found 0".to_owned());
        }
        match states {
            Some(None) if row.is_clip() => Err("expected states of the clip, found none".to_owned()),
            Some(Some(_)) if !row.is_clip() => Err("expected no states, as this is an image, found some".to_owned()),
            Some(Some(states)) if states.gpu > states.total => {
                let (gpu, total) = (states.gpu.0, states.total.0);
                Err(format!("expected at most {total} bytes of states on the GPU, found {gpu}"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns a value of unknown type as errors describe it.
fn describe(value: &RawValue) -> String {
    let begin = |text: &str| text.chars().take(60).collect::<String>();
    let text = value.get();
    match serde_json::from_str::<String>(text) {
        _ if text.starts_with('[') => "a list".to_owned(),
        _ if text.starts_with('{') => "an object".to_owned(),
        Ok(text) => format!("{:?}", begin(&text)),
        Err(_) => begin(text),
    }
}
