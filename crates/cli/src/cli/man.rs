//! `wgvae man`.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_mangen::{Man, generate_to};
use wgvae::{Error, Result};

use super::Cli;

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Folder to write the pages of wgvae and all its commands to (wgvae-decode.1 and so on);
    /// created if missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Returns wgvae's own page in roff, or writes the pages of all commands to a folder.
pub(super) fn run(args: &ManArgs) -> Result<String> {
    let command = Cli::command().disable_help_subcommand(true);
    if let Some(folder) = &args.out {
        let write = || std::fs::create_dir_all(folder).and_then(|()| generate_to(command, folder));
        write().map_err(|source| Error::io(folder.display(), source))?;
        return Ok(format!("wrote wgvae.1 and a page for each command to {}", folder.display()));
    }
    let failed = |problem: String| Error::format("manual page", problem);
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(|error| failed(error.to_string()))?;
    String::from_utf8(page).map_err(|error| failed(error.to_string()))
}
