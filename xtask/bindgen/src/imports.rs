//! Shortening of the names by which a wasm module imports functions of its glue.
//!
//! wasm-bindgen names each function with a hash. The names stand in both halves and do not
//! compress: they took 9 KB of the download. Here the n-th import becomes `"i" "n"`.

use anyhow::{Context as _, Result, bail, ensure};

/// Number of the section of imports, and of the functions among the kinds of imports.
const IMPORTS: u8 = 2;
const FUNCTION: u8 = 0;

/// Length of a module's magic number and version.
const HEADER: usize = 8;

/// Returns `module` and its glue `script` with short names of all imports.
pub(crate) fn shorten(module: &[u8], script: &str) -> Result<(Vec<u8>, String)> {
    let (header, rest) = module.split_at_checked(HEADER).context("a wasm module without a header")?;
    let (mut short, mut script) = (header.to_vec(), script.to_owned());
    let mut sections = Reader(rest);
    while !sections.0.is_empty() {
        let id = sections.byte()?;
        let content = sections.bytes()?;
        let content = if id == IMPORTS { &imports(content, &mut script)? } else { content };
        short.push(id);
        put_bytes(&mut short, content);
    }
    Ok((short, script))
}

/// Returns the section of imports with short names, and replaces them in `script`.
fn imports(section: &[u8], script: &mut String) -> Result<Vec<u8>> {
    let mut from = Reader(section);
    let mut to = Vec::new();
    let count = from.number()?;
    put_number(&mut to, count);
    let mut modules = Vec::new();
    for index in 0..count {
        let (module, name) = (from.name()?, from.name()?);
        let kind = from.byte()?;
        ensure!(kind == FUNCTION, "expected only functions among the imports, found {name} of kind {kind}");
        replace(script, &format!("\n{name}: "), &format!("\n{index}: "))?;
        put_bytes(&mut to, b"i");
        put_bytes(&mut to, index.to_string().as_bytes());
        to.push(kind);
        put_number(&mut to, from.number()?);
        if !modules.contains(&module) {
            modules.push(module);
        }
    }
    ensure!(modules.len() == 1, "expected imports of one module, found {modules:?}");
    replace(script, &format!("\n\"{}\": ", modules[0]), "\n\"i\": ")?;
    Ok(to)
}

/// Replaces a text that `script` has exactly once.
fn replace(script: &mut String, old: &str, new: &str) -> Result<()> {
    let found = script.matches(old).count();
    ensure!(found == 1, "wasm-bindgen's glue has changed: {old:?} {found} times");
    *script = script.replacen(old, new, 1);
    Ok(())
}

/// The rest of a wasm module's bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8> {
        let (&first, rest) = self.0.split_first().context("a wasm module that ends too early")?;
        self.0 = rest;
        Ok(first)
    }

    /// Reads a number of seven bits a byte, the lowest first.
    fn number(&mut self) -> Result<usize> {
        let mut number = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        bail!("a number that is too long in a wasm module")
    }

    fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.number()?;
        let (bytes, rest) = self.0.split_at_checked(length).context("a wasm module that ends too early")?;
        self.0 = rest;
        Ok(bytes)
    }

    fn name(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).context("an import whose name is not text")
    }
}

fn put_number(to: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        to.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    to.push(number.to_le_bytes()[0]);
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len());
    to.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::shorten;

    /// A module with a section of types before two imports, and an export after them.
    const MODULE: &[u8] =
        b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x02\x17\x02\x04./m_\x03a_1\0\0\x04./m_\x03b_2\0\0\x07\x01\0";
    const SCRIPT: &str = "{\na_1: f,\nb_2: g,\n}\n\"./m_\": x\n";

    #[test]
    fn imports_get_short_names_in_both_halves() {
        let (module, script) = shorten(MODULE, SCRIPT).unwrap();
        let wanted: &[u8] = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x02\x0d\x02\x01i\x010\0\0\x01i\x011\0\0\x07\x01\0";
        assert_eq!(module, wanted);
        assert_eq!(script, "{\n0: f,\n1: g,\n}\n\"i\": x\n");
    }

    #[test]
    fn other_glue_and_cut_modules_are_refused() {
        for script in [
            "{\na_1: f,\n}\n\"./m_\": x\n",
            "{\na_1: f,\na_1: f,\nb_2: g,\n}\n\"./m_\": x\n",
            "{\na_1: f,\nb_2: g,\n}\n",
        ] {
            assert!(shorten(MODULE, script).unwrap_err().to_string().contains("glue has changed"), "{script}");
        }
        for length in (0..MODULE.len()).filter(|length| ![8, 14, 39].contains(length)) {
            assert!(shorten(&MODULE[..length], SCRIPT).is_err(), "{length}");
        }
        let memory = MODULE.iter().enumerate().map(|(at, &byte)| if at == 26 { 2 } else { byte }).collect::<Vec<u8>>();
        assert!(shorten(&memory, SCRIPT).unwrap_err().to_string().contains("found a_1 of kind 2"));
    }
}
