//! Rewriting of wasm-bindgen's glue so that several instances of the wasm module can be made, one
//! after the other.
//!
//! wasm-bindgen's glue is an ES module with one instance in its variables, which lives as long as
//! the page. A panic ends that instance: nothing in it may be called again.
//! `Bindgen::reset_state_function` would put another instance into the same variables, but remains
//! of the old one, above all `free`, would then reach into the new one's memory. So the glue
//! becomes the body of a function: each call has its own variables, classes and instance.

use anyhow::{Context as _, Result, bail, ensure};

/// Glue and types in which `makeInstance` contains everything.
pub(crate) struct Instances {
    pub(crate) script: String,
    pub(crate) types: String,
}

/// Lines in which wasm-bindgen's glue for the web exports its start function and takes the
/// instance.
const EXPORTS_AT_THE_END: &str = "export { initSync, __wbg_init as default };";
const INSTANCE: &str = "wasm = instance.exports;";

const MAKE_INSTANCE: &str = "/**
 * The module's classes and functions, of an instance that `init` starts. What wasm exports is
 * called as `watch` returns it. `Atomics` replaces the runtime's.
 */
export function makeInstance(watch: (exports: InitOutput) => InitOutput, Atomics?: object): Wasm;
";

/// Rewrites wasm-bindgen's `script` and its `types` for the module `name`.
pub(crate) fn make(script: &str, types: &str, name: &str) -> Result<Instances> {
    let mut names = Names::default();
    let script = without_docs(script).map(|line| names.local(line)).collect::<Result<Vec<_>>>()?;
    let end = script.iter().filter(|line| *line == EXPORTS_AT_THE_END).count();
    let taken = script.iter().filter(|line| *line == INSTANCE).count();
    ensure!(
        [end, taken] == [1, 1],
        "wasm-bindgen's glue has changed: \"{EXPORTS_AT_THE_END}\" {end} times, \"{INSTANCE}\" {taken} times"
    );
    let script = script.join("\n").replace(INSTANCE, "wasm = watch(instance.exports);");
    let all = [&names.classes[..], &names.functions].concat().join(", ");
    let script = script.replace(EXPORTS_AT_THE_END, &format!("return {{ {all}, init: __wbg_init }};"));
    // A line at the head of a file that tells other tools where the types are.
    let self_types = format!("/* @ts-self-types=\"./{name}.d.ts\" */");
    let script = script.replacen(&self_types, "", 1);
    Ok(Instances {
        script: format!(
            "{self_types}\nexport function makeInstance(watch, Atomics = globalThis.Atomics) {{\n{script}\n}}\n"
        ),
        types: names.types(types)?,
    })
}

/// Returns the lines of `script` outside documentation, which stands in the types as well, and
/// without indentation. No user should have to fetch either.
fn without_docs(script: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    script
        .lines()
        .filter(move |line| {
            let doc = inside || line.trim_start().starts_with("/**");
            inside = doc && !line.ends_with("*/");
            !doc
        })
        .map(str::trim_start)
}

/// Names that the glue exports.
#[derive(Default)]
struct Names {
    classes: Vec<String>,
    functions: Vec<String>,
}

impl Names {
    /// Converts a line of the glue to a line of a function's body, where nothing is exported.
    fn local(&mut self, line: &str) -> Result<String> {
        if let Some(class) = line.strip_prefix("export class ") {
            self.classes.push(word(class)?);
        } else if let Some(function) = line.strip_prefix("export function ") {
            self.functions.push(word(function)?);
        } else if line != EXPORTS_AT_THE_END && (line.starts_with("export ") || line.starts_with("import ")) {
            bail!("wasm-bindgen's glue has changed: \"{line}\"");
        } else {
            return Ok(line.to_owned());
        }
        Ok(line.replacen("export ", "", 1))
    }

    fn types(&self, types: &str) -> Result<String> {
        let mut types = types.to_owned();
        let classes =
            self.classes.iter().map(|name| (format!("export class {name} {{"), format!("declare class {name} {{")));
        let functions =
            self.functions.iter().map(|name| (format!("export function {name}("), format!("declare function {name}(")));
        let start = ("export default function __wbg_init ".to_owned(), "declare function __wbg_init ".to_owned());
        for (exported, declared) in classes.chain(functions).chain([start]) {
            ensure!(types.contains(&exported), "the types of wasm-bindgen's glue have no \"{exported}\"");
            types = types.replacen(&exported, &declared, 1);
        }
        let fields = self.classes.iter().chain(&self.functions).map(|name| format!("    {name}: typeof {name};\n"));
        let fields: String = fields.collect();
        let classes = self.classes.join(", ");
        Ok(format!(
            "{types}\nexport type {{ {classes} }};\n\nexport interface Wasm {{\n{fields}    init: typeof __wbg_init;\n}}\n\n{MAKE_INSTANCE}"
        ))
    }
}

/// Returns the name that `text` begins with.
fn word(text: &str) -> Result<String> {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').context("a name without an end")?;
    Ok(text[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::make;

    const SCRIPT: &str = "export class Gpu {\n    /**\n     * doc\n     */\n    free() {}\n}\n/** doc */\nexport function version() {}\nfunction start(instance) {\n    wasm = instance.exports;\n}\n\
                          export { initSync, __wbg_init as default };\n";
    const TYPES: &str = "export class Gpu {\n}\nexport function version(): string;\nexport default function __wbg_init (a: any): Promise<any>;\n";

    #[test]
    fn the_glue_becomes_a_function() {
        let made = make(SCRIPT, TYPES, "wgvae").unwrap();
        assert_eq!(
            made.script,
            "/* @ts-self-types=\"./wgvae.d.ts\" */\nexport function makeInstance(watch, Atomics = globalThis.Atomics) {\nclass Gpu {\nfree() {}\n}\nfunction version() {}\nfunction start(instance) {\n\
             wasm = watch(instance.exports);\n}\nreturn { Gpu, version, init: __wbg_init };\n}\n"
        );
        for part in [
            "declare class Gpu {",
            "declare function version()",
            "export type { Gpu };",
            "    version: typeof version;\n",
        ] {
            assert!(made.types.contains(part), "{}", made.types);
        }
    }

    #[test]
    fn glue_of_another_kind_is_refused() {
        for (from, to) in [
            ("wasm = instance.exports", "wasm = other"),
            ("export { initSync,", "export {"),
            ("/** doc */", "import 'a';"),
        ] {
            assert!(make(&SCRIPT.replace(from, to), TYPES, "wgvae").is_err(), "{to}");
        }
        assert!(make(SCRIPT, "", "wgvae").is_err());
    }
}
