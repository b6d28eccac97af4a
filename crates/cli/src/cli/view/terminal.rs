//! The terminal that stdout is: its size, and the protocol by which it draws pictures.

use std::io::Write as _;

use clap::ValueEnum;
use console::Term;
use wgvae::preview::Preview;
use wgvae::{Error, Result, Size};

use super::blocks::half_blocks;
use super::escapes::{iterm, kitty, sixel};

/// Name of stdout in errors.
const STDOUT: &str = "standard output";

/// Size of a terminal that does not tell it: rows and columns.
const USUAL: (u16, u16) = (24, 80);

/// Rows of the terminal that stay free, for the line on stderr and the prompt.
const KEPT_ROWS: u16 = 2;

/// Way to draw a picture that the user can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ProtocolArg {
    Auto,
    /// Pixels, in kitty, Ghostty and Konsole
    Kitty,
    /// Pixels, in iTerm2, `WezTerm` and mintty
    Iterm,
    /// Pixels of 256 colours, in foot, xterm, Windows Terminal and others
    Sixel,
    /// Characters that are two pixels each, in any terminal with colours
    Blocks,
}

/// Environment variables, the text that the value of each begins with, and the protocol of such a
/// terminal. The first row that fits decides: within tmux and screen, other variables are those of
/// the terminal around them.
const TERMINALS: &[(&str, &str, ProtocolArg)] = &[
    ("TMUX", "", ProtocolArg::Blocks),
    ("STY", "", ProtocolArg::Blocks),
    ("TERM", "tmux", ProtocolArg::Blocks),
    ("TERM", "screen", ProtocolArg::Blocks),
    ("TERM", "xterm-kitty", ProtocolArg::Kitty),
    ("TERM", "xterm-ghostty", ProtocolArg::Kitty),
    ("KITTY_WINDOW_ID", "", ProtocolArg::Kitty),
    ("TERM_PROGRAM", "iTerm", ProtocolArg::Iterm),
    ("LC_TERMINAL", "iTerm", ProtocolArg::Iterm),
    ("TERM_PROGRAM", "WezTerm", ProtocolArg::Iterm),
    ("TERM_PROGRAM", "mintty", ProtocolArg::Iterm),
    ("TERM", "foot", ProtocolArg::Sixel),
    ("TERM", "mlterm", ProtocolArg::Sixel),
    ("TERM", "contour", ProtocolArg::Sixel),
];

/// A terminal to draw on.
#[derive(Debug)]
pub(super) struct Terminal {
    protocol: ProtocolArg,
    /// Most pixels to fill, where a half block is one pixel.
    room: Size,
}

impl Terminal {
    /// Takes stdout, and draws on at most `width` columns.
    ///
    /// # Errors
    /// [`Error::Input`] if stdout is no terminal, or one without colours.
    pub(super) fn open(protocol: ProtocolArg, width: Option<u32>) -> Result<Self> {
        let term = Term::stdout();
        let expected = "a terminal that draws colours; to write a file, use `wgvae preview -o FILE`, or with a model `wgvae decode --preview N -o FILE`";
        if !term.is_term() {
            return Err(Error::input(STDOUT, expected, "a file or a pipe"));
        }
        if variable("TERM").as_deref() == Some("dumb") {
            return Err(Error::input(STDOUT, expected, "TERM=dumb"));
        }
        let (rows, columns) = term.size_checked().unwrap_or(USUAL);
        let columns = width.map_or(u32::from(columns), |width| width.min(columns.into()));
        let room = Size { width: columns, height: 2 * u32::from(rows.saturating_sub(KEPT_ROWS).max(1)) };
        let protocol = if protocol == ProtocolArg::Auto { protocol_of(variable) } else { protocol };
        Ok(Self { protocol, room })
    }

    /// Draws `picture` at the cursor, which moves to the line below.
    ///
    /// # Errors
    /// [`Error::Io`] if the terminal is gone.
    pub(super) fn draw(&self, picture: &Preview) -> Result<()> {
        let size = fitted(picture.size, self.room);
        let text = match self.protocol {
            ProtocolArg::Kitty => kitty(picture, size.width)?,
            ProtocolArg::Iterm => iterm(picture, size.width)?,
            ProtocolArg::Sixel => sixel(picture, size)?,
            ProtocolArg::Blocks | ProtocolArg::Auto => half_blocks(picture, size, has_true_color()),
        };
        let mut stdout = std::io::stdout().lock();
        let drawn = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        drawn.map_err(|source| Error::io(STDOUT, source))
    }
}

/// Returns the protocol of the terminal that set these environment variables.
fn protocol_of(variable: impl Fn(&str) -> Option<String>) -> ProtocolArg {
    let fits = |name: &str, start: &str| variable(name).is_some_and(|value| value.starts_with(start));
    let row = TERMINALS.iter().find(|(name, start, _)| fits(name, start));
    row.map_or(ProtocolArg::Blocks, |(_, _, protocol)| *protocol)
}

fn has_true_color() -> bool {
    variable("COLORTERM").is_some_and(|value| ["truecolor", "24bit"].contains(&value.as_str()))
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name)?.into_string().ok().filter(|value| !value.is_empty())
}

/// Returns the largest size with the proportions of `size` that lies within `room` and is not
/// larger than `size`.
fn fitted(size: Size, room: Size) -> Size {
    let scaled = |side: u32, numerator: u32, denominator: u32| {
        let rounded = (u64::from(side) * u64::from(numerator) + u64::from(denominator) / 2) / u64::from(denominator);
        u32::try_from(rounded).unwrap_or(u32::MAX).max(1)
    };
    let width = size.width.min(room.width).min(scaled(size.width, room.height, size.height));
    Size { width, height: scaled(size.height, width, size.width).min(room.height) }
}
