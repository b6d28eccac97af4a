//! Reader of reports that anybody may have written. Its errors name the problem, and it checks
//! every number before use.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
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
        let wrong = |problem: String| Error::Format { file: name.to_owned(), problem };
        let none = || wrong(format!("not a memory report: expected schema \"{SCHEMA}\", found none"));
        let head: Head = serde_json::from_str(json)
            .map_err(|error| if error.is_data() { none() } else { wrong(format!("not JSON: {error}")) })?;
        match head.schema {
            Some(Peek::Text(schema)) if schema == SCHEMA => {}
            Some(other) => return Err(wrong(format!("expected schema \"{SCHEMA}\", found {other}"))),
            None => return Err(none()),
        }
        match head.version {
            Some(Peek::Whole(version)) if (1..=u64::from(VERSION)).contains(&version) => {}
            Some(Peek::Whole(version)) if version > u64::from(VERSION) => {
                return Err(wrong(format!(
                    "a report of format {version}, but this wgvae reads formats up to {VERSION}: a newer wgvae is needed"
                )));
            }
            Some(other) => return Err(wrong(format!("expected a version of 1 to {VERSION}, found {other}"))),
            None => return Err(wrong(format!("expected a version of 1 to {VERSION}, found none"))),
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

/// The fields that tell a report's format. All else is skipped, because a tree of arbitrary JSON
/// takes a hundred times the memory of its text.
#[derive(Default)]
struct Head {
    schema: Option<Peek>,
    version: Option<Peek>,
}

impl<'de> Deserialize<'de> for Head {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Head;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a memory report")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<Head, M::Error> {
                let mut head = Head::default();
                while let Some(field) = map.next_key::<String>()? {
                    match field.as_str() {
                        "schema" => head.schema = Some(map.next_value()?),
                        "version" => head.version = Some(map.next_value()?),
                        _ => _ = map.next_value::<IgnoredAny>()?,
                    }
                }
                Ok(head)
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// A value of unknown type, as far as errors need it.
enum Peek {
    Text(String),
    Whole(u64),
    /// Any other value, as errors describe it.
    Other(String),
}

impl fmt::Display for Peek {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{:?}", text.chars().take(60).collect::<String>()),
            Self::Whole(number) => number.fmt(f),
            Self::Other(what) => f.write_str(what),
        }
    }
}

impl<'de> Deserialize<'de> for Peek {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Peek;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Peek, E> {
                Ok(Peek::Text(text.to_owned()))
            }

            fn visit_u64<E>(self, number: u64) -> std::result::Result<Peek, E> {
                Ok(Peek::Whole(number))
            }

            fn visit_i64<E>(self, number: i64) -> std::result::Result<Peek, E> {
                Ok(Peek::Other(number.to_string()))
            }

            fn visit_f64<E>(self, number: f64) -> std::result::Result<Peek, E> {
                Ok(Peek::Other(number.to_string()))
            }

            fn visit_bool<E>(self, flag: bool) -> std::result::Result<Peek, E> {
                Ok(Peek::Other(flag.to_string()))
            }

            fn visit_unit<E>(self) -> std::result::Result<Peek, E> {
                Ok(Peek::Other("null".to_owned()))
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> std::result::Result<Peek, S::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Peek::Other("a list".to_owned()))
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<Peek, M::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Peek::Other("an object".to_owned()))
            }
        }

        deserializer.deserialize_any(Any)
    }
}
