//! Failures of requests to the hub, with messages that help.

use std::fmt;

use super::name::HubName;
use crate::error::Error;

/// Advice for a model that cannot be downloaded.
pub(super) const INSTEAD: &str = "name a local folder or file as the model";

/// Longest wait in seconds that a server may ask for. If it asks for more, there is no next try.
const LONGEST_WAIT: u64 = 30;

/// The reason why a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// No server answered.
    NoAnswer(String),
    /// An answer did not begin, or did not continue, within its time limit.
    TooSlow(String),
    /// An answer broke off before its end.
    BrokeOff(String),
    /// The server answered with this status, and may ask to wait for this many seconds.
    Status(u16, Option<u64>),
    /// The answer is not of the expected form.
    Wrong(String),
    /// The answer could not be written to the cache.
    Cache(Error),
    /// No request could be made with these options.
    Options(Error),
}

impl Failure {
    /// True if the hub gave no complete answer.
    pub(super) fn is_no_answer(&self) -> bool {
        matches!(self, Self::NoAnswer(_) | Self::TooSlow(_) | Self::BrokeOff(_))
    }

    /// True if the cache may replace the answer: there is none, or only a status. `huggingface_hub`
    /// does so, too, also for a repository that has been deleted or made private. Options that
    /// cannot be used lead to no answer either.
    pub(super) fn leaves_cache(&self) -> bool {
        self.is_no_answer() || matches!(self, Self::Status(..) | Self::Options(_))
    }

    /// True if the next try may succeed.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::NoAnswer(_)) || self.may_pass_soon()
    }

    /// True if the next try may succeed, and a server did answer this one.
    pub(super) fn may_pass_soon(&self) -> bool {
        match self {
            Self::BrokeOff(_) => true,
            Self::Status(408 | 429 | 500.., wait) => wait.is_none_or(|wait| wait <= LONGEST_WAIT),
            _ => false,
        }
    }

    /// Returns the seconds to wait before the next try after this many `tries`.
    pub(super) fn wait(&self, tries: u64) -> u64 {
        match self {
            Self::Status(_, Some(wait)) => *wait,
            _ => tries,
        }
    }

    /// Makes the error for `file` of the repository, or for the repository itself.
    pub(super) fn into_error(self, name: &HubName, file: Option<&str>) -> Error {
        let why = match self {
            Self::Cache(error) | Self::Options(error) => return error,
            Self::Status(403, _) => {
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
            Self::Status(401, _) => f.write_str(
                "the hub wants a token (401): there is no such repository, or it is private or gated. Log in with `hf auth login`, or set HF_TOKEN",
            ),
            Self::Status(404, _) => f.write_str("the hub has no such repository, revision or file (404)"),
            Self::Status(429, _) => f.write_str("the hub has been asked too often (429): try again later, or with a token"),
            Self::Status(other, _) => write!(f, "the hub answers with status {other}"),
            Self::Cache(error) | Self::Options(error) => error.fmt(f),
        }
    }
}
