//! Text from files, made safe to print on a terminal.

use std::fmt::{self, Write};

/// A text that prints with its control characters escaped, as Rust escapes them. File names, tensor
/// names and the output of programs may hold sequences that a terminal would obey.
#[derive(Debug, Clone, Copy)]
pub struct Printable<T>(pub T);

impl<T: fmt::Display> fmt::Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

/// A writer that passes text on with its control characters escaped.
struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|letter| match is_control(letter) {
            true => write!(self.0, "{}", letter.escape_unicode()),
            false => self.0.write_char(letter),
        })
    }
}

/// True if a terminal may obey `letter`, or show the following text in another order (Unicode's
/// bidirectional overrides and isolates). Line ends and tabs count as text.
fn is_control(letter: char) -> bool {
    let is_bidirectional = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (letter.is_control() && !matches!(letter, '\n' | '\t')) || is_bidirectional
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(Printable("\x1b[2J\u{9b}x\u{7f}\u{202e}").to_string(), "\\u{1b}[2J\\u{9b}x\\u{7f}\\u{202e}");
        assert_eq!(Printable("Füße\n\t…").to_string(), "Füße\n\t…");
    }
}
