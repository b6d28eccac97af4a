//! The shader files in the module: their code without comments. Comments would add 7 KB to the
//! download of a page.

macro_rules! embedded {
    ($($(#[$meta:meta])? $name:literal),+ $(,)?) => {
        &[$($(#[$meta])? ($name, {
            const TEXT: &str = include_str!(concat!("../../shaders/", $name, ".wgsl"));
            const ROOMY: ([u8; TEXT.len()], usize) = code(TEXT);
            const CODE: [u8; ROOMY.1] = code(TEXT).0;
            match std::str::from_utf8(&CODE) {
                Ok(text) => text,
                Err(_) => panic!("only comments may go beyond ASCII"),
            }
        })),+]
    };
}

/// Text of the kernel files and shared parts, by stem.
pub(super) const FILES: &[(&str, &str)] = embedded![
    "attention_finish",
    "attention_softmax",
    "conv2d_direct",
    "copy_frames",
    "group_norm_apply",
    "group_norm_finish",
    "group_norm_stats",
    "image_check",
    "image_out",
    "matmul",
    #[cfg(not(target_arch = "wasm32"))]
    "matmul_matrix",
    "matmul_quad",
    "matmul_shared",
    "pixel_norm_apply",
    "planes_in",
    "planes_out",
    "unfold",
    "winograd_in",
    "winograd_in_pairs",
    "winograd_out",
    "winograd_out_pairs",
    "winograd_weights",
    #[cfg(not(target_arch = "wasm32"))]
    "winograd_weights_columns",
    "parts/activation",
    "parts/epilogue",
    "parts/moments",
    "parts/output",
    "parts/output_packed",
    "parts/product",
    "parts/relu",
    "parts/storage",
    "parts/storage_packed",
    "parts/storage_pair",
    "parts/storage_pair_packed",
    "parts/transform_in",
    "parts/transform_out",
    "parts/transform_weights",
];

/// Returns the lines of `text` without comments, cut to `ROOM` bytes, and the number of bytes
/// before that cut. Directives (`//#parts`, `//#unroll`) stay.
const fn code<const ROOM: usize>(text: &str) -> ([u8; ROOM], usize) {
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
        if !in_comment && (from[at] != b'\n' || length > line) {
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
    fn comments_go_and_directives_stay() {
        const TEXT: &str = "// Grüße\n//#parts a b\n\nconst N: u32 = 2u;   // rows\n    for (;;) { //#unroll\n    // none\n    x /= y / z;\n}\n";
        let (bytes, length) = code::<{ TEXT.len() }>(TEXT);
        let wanted = "//#parts a b\nconst N: u32 = 2u;\n    for (;;) { //#unroll\n    x /= y / z;\n}\n";
        assert_eq!(std::str::from_utf8(&bytes[..length]), Ok(wanted));
    }

    #[test]
    fn no_embedded_file_has_a_comment() {
        for (name, text) in FILES {
            let comments = text.lines().filter(|line| line.replace("//#", "").contains("//"));
            assert_eq!(comments.count(), 0, "{name}");
            assert!(text.lines().all(|line| !line.trim().is_empty()) && text.ends_with('\n'), "{name}");
        }
    }
}
