//! Report as one HTML file that loads nothing: the reports as JSON, and the program in `view/` that
//! shows them. The web page runs the same program.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use wgvae::{Error, Result};

use crate::MemoryReport;
use crate::text::table;

/// Modules of the program. Each comes after all that it imports, and no two share a name.
const MODULES: [&str; 12] = [
    include_str!("view/bytes.js"),
    include_str!("view/adapters.js"),
    include_str!("view/rows.js"),
    include_str!("view/estimates.js"),
    include_str!("view/published.js"),
    include_str!("view/svg.js"),
    include_str!("view/plot.js"),
    include_str!("view/figures.js"),
    include_str!("view/tags.js"),
    include_str!("view/tables.js"),
    include_str!("view/view.js"),
    include_str!("view/standalone.js"),
];

const STYLES: [&str; 2] = [include_str!("view/standalone.css"), include_str!("view/report.css")];

/// Returns the page about `reports`. Without JavaScript it shows the table of [`table`].
///
/// # Errors
/// [`Error::Format`] if a report has numbers that JSON cannot hold.
pub fn page(reports: &[MemoryReport]) -> Result<String> {
    let json = serde_json::to_string(reports).map_err(|error| Error::format("report", error))?;
    // Nothing in the JSON can end its element.
    let json = json.replace('<', "\\u003c");
    let (program, style) = (program(), joined(STYLES.iter().flat_map(|style| style.lines())));
    let (script_hash, style_hash) = (hash(&program), hash(&style));
    let policy = format!(
        "default-src 'none'; img-src data:; script-src 'sha256-{script_hash}'; style-src 'sha256-{style_hash}'"
    );
    let plain = escaped(&table(reports));
    Ok(format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>wgvae: memory report</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<h1>Memory of VAEs: predicted, measured, and estimated</h1>
<main class="report"></main>
<noscript><pre>{plain}</pre></noscript>
<script type="application/json">{json}</script>
<script type="module">{program}</script>
</body>
</html>
"#
    ))
}

/// Joins the modules into one: their names are known to each other without imports.
fn program() -> String {
    let lines = MODULES.iter().flat_map(|module| module.lines()).filter(|line| !line.starts_with("import "));
    joined(lines.map(|line| line.strip_prefix("export ").unwrap_or(line)))
}

/// Joins lines. Browsers hash a text with these line ends, whatever the checkout has.
fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the hash of an element's text as a Content Security Policy names it.
fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_imports_nothing_and_no_line_of_an_import_is_left() {
        for module in MODULES {
            for line in module.lines().filter(|line| line.starts_with("import ")) {
                assert!(line.contains(" from './") && line.ends_with(".js';"), "one line from beside it: {line}");
            }
        }
        let program = program();
        assert!(!program.contains("</script") && !program.contains("<!--"), "the element would end early");
        assert!(program.lines().all(|line| !line.starts_with("import") && !line.starts_with("export")), "{program}");
    }
}
