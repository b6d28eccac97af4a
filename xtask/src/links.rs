//! Relative links between files of the repository and between pages of `dist/`.

/// Resolves a link in the document `source`. Returns the file's path in the repository, and the
/// link's fragment.
pub(crate) fn document_of<'a>(source: &str, link: &'a str) -> (String, &'a str) {
    let (path, fragment) = link.split_at(link.find('#').unwrap_or(link.len()));
    let mut parts: Vec<&str> = source.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    (parts.join("/"), fragment)
}

/// Returns the relative link from a page of `dist/` to a file there.
pub(crate) fn relative(page: &str, place: &str) -> String {
    "../".repeat(page.matches('/').count()) + place
}

#[cfg(test)]
mod tests {
    use super::{document_of, relative};

    #[test]
    fn links_are_relative_to_their_document() {
        assert_eq!(document_of("docs/guide/cli.md", "../glossary.md#plan"), ("docs/glossary.md".to_owned(), "#plan"));
        assert_eq!(document_of("README.md", "./web/README.md"), ("web/README.md".to_owned(), ""));
        assert_eq!(relative("docs/guide/cli.html", "manual.html"), "../../manual.html");
        assert_eq!(relative("manual.html", "docs/index.html"), "docs/index.html");
    }
}
