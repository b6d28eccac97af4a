//! The shader files in the module: their code without comments and indentation. Comments would add
//! 7 KB to the download of a page, indentation half of one.

/// Returns the code of a file in `shaders/`, by its stem. In a module for the CPU the text is
/// empty.
macro_rules! embedded {
    ($stem:expr) => {{
        #[cfg(not(all(target_arch = "wasm32", feature = "cores")))]
        const TEXT: &str = include_str!(concat!("../../shaders/", $stem, ".wgsl"));
        #[cfg(all(target_arch = "wasm32", feature = "cores"))]
        const TEXT: &str = "";
        const ROOMY: ([u8; TEXT.len()], usize) = $crate::kernels::embedded::code(TEXT);
        const CODE: [u8; ROOMY.1] = $crate::kernels::embedded::code(TEXT).0;
        match std::str::from_utf8(&CODE) {
            Ok(text) => text,
            Err(_) => panic!("only comments may go beyond ASCII"),
        }
    }};
}
pub(super) use embedded;

macro_rules! parts {
    ($($name:literal),+ $(,)?) => { &[$(($name, embedded!(concat!("parts/", $name)))),+] };
}

/// Code of the parts that kernels share, by stem. [`super::INTERFACES`] lists the kernels.
pub(super) const PARTS: &[(&str, &str)] = parts![
    "activation",
    "epilogue",
    "finite",
    "moments",
    "output",
    "output_packed",
    "packed",
    "product",
    "relu",
    "storage",
    "storage_packed",
    "storage_pair",
    "storage_pair_packed",
    "transform_in",
    "transform_out",
    "transform_weights",
    "border",
    "winograd_in_params",
    "winograd_tile",
    "winograd_out_params",
];

/// Returns the lines of `text` without comments and indentation, cut to `ROOM` bytes, and the
/// number of bytes before that cut. Directives (`//#parts`, `//#unroll`) stay.
pub(super) const fn code<const ROOM: usize>(text: &str) -> ([u8; ROOM], usize) {
    let from = text.as_bytes();
    let (mut to, mut length) = ([0; ROOM], 0);
    let (mut at, mut line, mut in_comment) = (0, 0, false);
    while at < from.len() {
        in_comment = from[at] != b'\n' && (in_comment || begins_comment(from, at));
        if from[at] == b'\n' {
            while length > line && to[length - 1] == b' ' {
                length -= 1;
            }
        }
        let is_blank = matches!(from[at], b'\n' | b' ');
        if !in_comment && (length > line || !is_blank) {
            if length < ROOM {
                to[length] = from[at];
            }
            length += 1;
        }
        if from[at] == b'\n' {
            line = length;
        }
        at += 1;
    }
    (to, length)
}

const fn begins_comment(text: &[u8], at: usize) -> bool {
    at + 2 < text.len() && text[at] == b'/' && text[at + 1] == b'/' && text[at + 2] != b'#'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_indentation_go_and_directives_stay() {
        const TEXT: &str = "// Grüße\n//#parts a b\n\nconst N: u32 = 2u;   // rows\n    for (;;) { //#unroll\n    // none\n    x /= y / z;\n}\n";
        let (bytes, length) = code::<{ TEXT.len() }>(TEXT);
        let wanted = "//#parts a b\nconst N: u32 = 2u;\nfor (;;) { //#unroll\nx /= y / z;\n}\n";
        assert_eq!(std::str::from_utf8(&bytes[..length]), Ok(wanted));
    }

    #[test]
    fn no_embedded_file_has_a_comment() {
        let kernels = crate::kernels::INTERFACES.iter().map(|kernel| (kernel.file, kernel.text));
        for (name, text) in kernels.chain(PARTS.iter().copied()) {
            let comments = text.lines().filter(|line| line.replace("//#", "").contains("//"));
            assert_eq!(comments.count(), 0, "{name}");
            assert!(text.lines().all(|line| !line.trim().is_empty()) && text.ends_with('\n'), "{name}");
        }
    }
}
