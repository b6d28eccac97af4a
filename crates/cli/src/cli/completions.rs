//! `wgvae completions`.

use clap::{Args, Command, CommandFactory as _};
use clap_complete::Shell;
use wgvae::{Error, Result};

use super::Cli;

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// Shell to write the script for
    #[arg(value_enum)]
    shell: Shell,
}

/// Returns the completion script.
pub(super) fn run(args: &CompletionsArgs) -> Result<String> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(), "wgvae", &mut script);
    String::from_utf8(script).map_err(|error| Error::format("completions", error))
}

/// Returns the command line without hidden commands, which would otherwise be completed.
fn shown() -> Command {
    let whole = Cli::command();
    let commands = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let shown = Command::new("wgvae").version(env!("CARGO_PKG_VERSION")).propagate_version(true);
    shown.args(whole.get_arguments().cloned()).subcommands(commands)
}
