//! `wgvae doctor`: checks what works on this machine, what is missing, and how to install it.

mod checks;
mod facts;

use clap::Args;
use serde_json::json;
use wgvae::Result;

use self::checks::{Check, State, checks};
use self::facts::Facts;
use super::Answer;

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Print the facts as JSON
    #[arg(long)]
    json: bool,
}

/// Checks this machine and opens a device on the best adapter. If nothing can be decoded, the
/// answer is marked as failed; its text still goes to stdout.
pub(super) async fn run(args: &DoctorArgs) -> Result<Answer> {
    let checks = checks(&Facts::collect().await);
    let is_ready = checks.iter().all(|check| check.state != State::Missing);
    let text = if args.json {
        super::to_json(&json!({ "ready": is_ready, "checks": checks }))
    } else {
        let lines: Vec<String> = checks.iter().map(Check::to_string).collect();
        lines.join("\n")
    };
    Ok(Answer { text, failed: !is_ready })
}
