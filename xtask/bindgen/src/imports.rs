//! Shortening of the names by which a wasm module imports functions, and the memory that threads
//! share, from its glue.
//!
//! wasm-bindgen names each function with a hash. The names stand in both halves and do not
//! compress: they took 9 KB of the download. Here the n-th import becomes `"i" "n"`.

use anyhow::{Result, ensure};
use wasm_encoder::reencode::{Error, Reencode};
use wasm_encoder::{ImportSection, Module};
use wasmparser::{ImportSectionReader, Parser};

/// Returns `module` and its glue `script` with short names of all imports.
pub(crate) fn shorten(module: &[u8], script: &str) -> Result<(Vec<u8>, String)> {
    let (mut short, mut script) = (Module::new(), script.to_owned());
    let mut names = Names::default();
    names.parse_core_module(&mut short, Parser::new(0), module)?;
    for (index, name) in names.names.iter().enumerate() {
        replace(&mut script, &format!("\n{name}: "), &format!("\n{index}: "))?;
    }
    names.modules.dedup();
    ensure!(names.modules.len() == 1, "expected imports of one module, found {:?}", names.modules);
    replace(&mut script, &format!("\n\"{}\": ", names.modules[0]), "\n\"i\": ")?;
    Ok((short.finish(), script))
}

/// The names of imports as the module has them, in its order.
#[derive(Default)]
struct Names {
    modules: Vec<String>,
    names: Vec<String>,
}

impl Reencode for Names {
    type Error = std::convert::Infallible;

    fn parse_import_section(&mut self, to: &mut ImportSection, section: ImportSectionReader<'_>) -> Result<(), Error> {
        for import in section.into_imports() {
            let import = import?;
            to.import("i", &self.names.len().to_string(), self.entity_type(import.ty)?);
            self.modules.push(import.module.to_owned());
            self.names.push(import.name.to_owned());
        }
        Ok(())
    }
}

/// Replaces a text that `script` has exactly once.
fn replace(script: &mut String, old: &str, new: &str) -> Result<()> {
    let found = script.matches(old).count();
    ensure!(found == 1, "wasm-bindgen's glue has changed: {old:?} {found} times");
    *script = script.replacen(old, new, 1);
    Ok(())
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
    fn a_memory_that_threads_share_keeps_its_limits() {
        let module = b"\0asm\x01\0\0\0\x02\x11\x01\x04./m_\x06memory\x02\x03\x14\x20";
        let (module, script) = shorten(module, "{\nmemory: memory || x\n}\n\"./m_\": y\n").unwrap();
        assert_eq!(module, b"\0asm\x01\0\0\0\x02\x09\x01\x01i\x010\x02\x03\x14\x20");
        assert_eq!(script, "{\n0: memory || x\n}\n\"i\": y\n");
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
        for length in (0..MODULE.len()).filter(|length| *length != 39) {
            assert!(shorten(&MODULE[..length], SCRIPT).is_err(), "{length}");
        }
    }
}
