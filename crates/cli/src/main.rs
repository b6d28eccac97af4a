//! The `wgvae` command: runs the commands that [`cli`] describes, and turns their results into text
//! and an exit code. This is the only place that blocks.

mod cli;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use wgvae::internals::Printable;

use self::cli::{Answer, Cli, complain, exit_code, say};

fn main() -> ExitCode {
    if log::set_logger(&Messages).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
    let cli = Cli::parse();
    cli.verbosity().apply();
    match pollster::block_on(cli::run(cli)) {
        Ok(Answer { text, failed }) => match print(&text) {
            ExitCode::SUCCESS if failed => ExitCode::FAILURE,
            printed => printed,
        },
        Err(wgvae::Error::Cancelled) => {
            complain("interrupted: no file is half-written");
            ExitCode::from(exit_code())
        }
        Err(error) => {
            complain(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes `text` to stdout, unless it is empty. A closed pipe, as in `wgvae plan ... | head`, is no
/// failure.
fn print(text: &str) -> ExitCode {
    if text.is_empty() {
        return ExitCode::SUCCESS;
    }
    let mut stdout = std::io::stdout().lock();
    match writeln!(stdout, "{}", Printable(text.trim_end())).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            complain(&format!("error: standard output: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// A logger that shows this crate's own warnings and notes. wgpu's warnings are about drivers: they
/// come back as errors where they matter.
struct Messages;

impl log::Log for Messages {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("wgvae") && metadata.level() <= log::Level::Info
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let kind = match record.level() {
                log::Level::Error => "error",
                log::Level::Warn => "warning",
                _ => "note",
            };
            say(&format!("{kind}: {}", record.args()));
        }
    }

    fn flush(&self) {}
}
