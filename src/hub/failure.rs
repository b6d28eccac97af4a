//! Failures of requests to the hub, with messages that help.

use std::fmt;

use super::name::HubName;
use crate::error::Error;

/// Advice for a model that cannot be downloaded.
pub(super) const INSTEAD: &str = "name a local folder or file as the model";

/// The reason why a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// No server answered.
    NoAnswer(String),
    /// An answer did not begin, or did not continue, within its time limit.
    TooSlow(String),
    /// An answer broke off before its end.
    BrokeOff(String),
    /// The server answered with this status.
    Status(u16),
    /// The answer is not of the expected form.
    Wrong(String),
    /// The answer could not be written to the cache.
    Cache(Error),
}

impl Failure {
    /// True if the hub gave no complete answer, so that the cache may replace it.
    pub(super) fn is_no_answer(&self) -> bool {
        matches!(self, Self::NoAnswer(_) | Self::TooSlow(_) | Self::BrokeOff(_))
    }

    /// True if the next try may succeed.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::NoAnswer(_) | Self::BrokeOff(_) | Self::Status(500..))
    }

    /// Makes the error for `file` of the repository, or for the repository itself.
    pub(super) fn into_error(self, name: &HubName, file: Option<&str>) -> Error {
        let why = match self {
            Self::Cache(error) => return error,
            Self::Status(403) => {
                format!(
                    "the hub refuses this token (403): accept the terms on the page of {} with its account",
                    name.id()
                )
            }
            // The cache was asked before this, and does not have the file.
            other if other.is_no_answer() => {
                format!(
                    "{other}; the file is not in the cache either: check the connection and HF_ENDPOINT, or {INSTEAD}"
                )
            }
            other => other.to_string(),
        };
        let path = file.map_or_else(|| name.to_string(), |file| name.file(file));
        Error::io(path, std::io::Error::other(why))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(why) | Self::TooSlow(why) | Self::BrokeOff(why) | Self::Wrong(why) => f.write_str(why),
            Self::Status(401) => f.write_str(
                "the hub wants a token (401): there is no such repository, or it is private or gated. Log in with `hf auth login`, or set HF_TOKEN",
            ),
            Self::Status(404) => f.write_str("the hub has no such repository, revision or file (404)"),
            Self::Status(429) => f.write_str("the hub has been asked too often (429): try again later, or with a token"),
            Self::Status(other) => write!(f, "the hub answers with status {other}"),
            Self::Cache(error) => error.fmt(f),
        }
    }
}
