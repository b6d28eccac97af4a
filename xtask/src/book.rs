//! Documents as pages of `dist/`: those listed in `docs/SUMMARY.md` and all others in `docs/`, each
//! with the list beside it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use crate::links::{document_of, relative};
use crate::offline::files;

/// List of all documents.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Folder of the documents' pictures, which keep their paths in `dist/`.
pub(crate) const DRAWINGS: &str = "docs/drawings";

/// Documents whose pages have a fixed path; the page links to them.
const PLACES: [(&str, &str); 3] =
    [("README.md", "docs/index.html"), ("docs/guide/browser.md", "manual.html"), ("web/README.md", "package.html")];

/// HTML before the text of the package's manual.
const PACKAGE_LEAD: &str = "<p>The package as npm packs it: <a href=\"wgvae.tgz\">wgvae.tgz</a>. <code>npm install</code> takes its address.</p>\n";

/// All documents, with the list of them.
pub(crate) struct Book {
    summary: String,
    /// Paths in the repository.
    documents: Vec<String>,
}

impl Book {
    /// Reads the list of documents, and finds those in `docs/` that the list lacks.
    pub(crate) fn read() -> Result<Self> {
        let mut book = Self::new(read(SUMMARY)?);
        for file in files(Path::new("docs"))? {
            let path = file.to_string_lossy().replace('\\', "/");
            if path.ends_with(".md") && path != SUMMARY && !book.documents.contains(&path) {
                book.documents.push(path);
            }
        }
        Ok(book)
    }

    fn new(summary: String) -> Self {
        let documents = Parser::new(&summary).filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. }) => Some(document_of(SUMMARY, &dest_url).0),
            _ => None,
        });
        Self { documents: documents.collect(), summary }
    }

    /// Writes the page of each document into `dist`, which must contain everything else by then.
    pub(crate) fn write(&self, dist: &Path) -> Result<()> {
        for document in &self.documents {
            let page = dist.join(page_of(document));
            page.parent().map(fs::create_dir_all).transpose()?;
            let text = self.to_html(document, &read(document)?, &|path| dist.join(path).is_file());
            fs::write(&page, text).with_context(|| format!("could not write {}", page.display()))?;
        }
        let without = PLACES.iter().find(|(document, _)| !self.documents.iter().any(|listed| listed == document));
        ensure!(without.is_none(), "{SUMMARY} does not list {without:?}");
        Ok(())
    }

    /// Returns the page of a document. A link to a file that is not in `dist/`, according to
    /// `is_there`, becomes plain text.
    fn to_html(&self, document: &str, markdown: &str, is_there: &dyn Fn(&str) -> bool) -> String {
        let page = page_of(document);
        let render = |source: &str, text: &str| {
            let mut html = String::new();
            html::push_html(&mut html, self.events(source, text, &page, is_there).into_iter());
            html
        };
        let root = relative(&page, "./");
        // Marks the current page in the list. `<` and `>` in the text are escaped, so this match is
        // a tag.
        let here = format!("<a href=\"{}\"", relative(&page, &page));
        let list = render(SUMMARY, &self.summary)
            .replacen(&here, &format!("{here} aria-current=\"page\""), 1)
            .replace("h1>", "h2>");
        // Blocks wider than a phone scroll, also by keyboard. An empty corner of a table is no
        // heading.
        let text = render(document, markdown)
            .replace("<th></th>", "<td></td>")
            .replace("<pre>", "<pre tabindex=\"0\">")
            .replace("<table>", "<div class=\"scroll\" tabindex=\"0\"><table>")
            .replace("</table>", "</table></div>");
        let lead = if page == "package.html" { PACKAGE_LEAD } else { "" };
        let title = markdown.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(document);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} - wgvae</title>\n\
             <link rel=\"icon\" href=\"{root}assets/icon.svg\">\n<link rel=\"stylesheet\" href=\"{root}web/page/style.css\">\n</head>\n\
             <body class=\"manual\">\n<a class=\"skip\" href=\"#documents\">Skip to the list of documents</a>\n\
             <nav aria-label=\"Pages\"><a href=\"{root}\">The page</a> <a href=\"{root}manual.html\">Manual</a> \
             <a href=\"{root}package.html\">Package</a> <a href=\"{root}docs/index.html\">Documents</a></nav>\n\
             <main>\n{lead}{text}</main>\n<nav id=\"documents\" class=\"documents\" aria-label=\"Documents\">\n{list}</nav>\n</body>\n</html>\n"
        )
    }

    /// Returns the text's events, with links as the page needs them and an id for each heading.
    fn events<'a>(&self, source: &str, text: &'a str, page: &str, is_there: &dyn Fn(&str) -> bool) -> Vec<Event<'a>> {
        let target = |link: &str| self.target(source, link, page, is_there);
        let mut events: Vec<Event<'a>> = Vec::new();
        let mut kept = Vec::new();
        let mut heading = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                    let target = target(&dest_url);
                    kept.push(target.is_some());
                    let link = target.map(|url| Tag::Link { link_type, dest_url: CowStr::from(url), title, id });
                    events.extend(link.map(Event::Start));
                }
                Event::End(TagEnd::Link) => events.extend(kept.pop().unwrap_or(true).then_some(event)),
                Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                    let dest_url = target(&dest_url).map_or(dest_url, CowStr::from);
                    events.push(Event::Start(Tag::Image { link_type, dest_url, title, id }));
                }
                Event::Start(Tag::Heading { .. }) => {
                    heading = Some(events.len());
                    events.push(event);
                }
                Event::End(TagEnd::Heading(_)) => {
                    let start = heading.take().unwrap_or_default();
                    let name = slug(&events[start..]);
                    if let Event::Start(Tag::Heading { id, .. }) = &mut events[start] {
                        *id = (source != SUMMARY).then(|| CowStr::from(name));
                    }
                    events.push(event);
                }
                event => events.push(event),
            }
        }
        events
    }

    /// Returns the address on `page` of a link in the document `source`; None if there is no such
    /// file.
    fn target(&self, source: &str, link: &str, page: &str, is_there: &dyn Fn(&str) -> bool) -> Option<String> {
        if link.contains("://") || link.starts_with('#') {
            return Some(link.to_owned());
        }
        let (path, fragment) = document_of(source, link);
        let place = if self.documents.contains(&path) { page_of(&path) } else { path };
        let listed = self.documents.iter().any(|document| page_of(document) == place);
        (listed || is_there(&place)).then(|| relative(page, &place) + fragment)
    }
}

/// Returns the path of a document's page in `dist/`.
fn page_of(document: &str) -> String {
    if let Some((_, place)) = PLACES.iter().find(|(source, _)| *source == document) {
        return (*place).to_owned();
    }
    format!("docs/{}.html", document.trim_start_matches("docs/").trim_end_matches(".md"))
}

/// Returns the id of a heading, as code hosts make it.
pub(crate) fn slug(heading: &[Event<'_>]) -> String {
    let text: String = heading
        .iter()
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
            _ => None,
        })
        .collect();
    let kept = text.chars().filter(|sign| sign.is_alphanumeric() || matches!(sign, ' ' | '-' | '_'));
    kept.map(|sign| if sign == ' ' { '-' } else { sign.to_ascii_lowercase() }).collect()
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("could not read {path}"))
}

#[cfg(test)]
mod tests {
    use super::{Book, document_of, page_of};

    const LIST: &str = "[wgvae](../README.md)\n\n- [Line](guide/cli.md)\n- [The page](guide/browser.md)\n- [Package](../web/README.md)\n";

    fn page(document: &str, markdown: &str) -> String {
        Book::new(LIST.to_owned()).to_html(document, markdown, &|path| path == "assets/demo.png")
    }

    #[test]
    fn links_lead_to_what_is_there() {
        let text = "[a](browser.md#links), [**b**](../../src/lib.rs), [c](https://example.org/), ![d](../../assets/demo.png), [e](../../README.md)\n";
        let page = page("docs/guide/cli.md", text);
        let paragraph = "<p><a href=\"../../manual.html#links\">a</a>, <strong>b</strong>, <a href=\"https://example.org/\">c</a>, \
                         <img src=\"../../assets/demo.png\" alt=\"d\" />, <a href=\"../../docs/index.html\">e</a></p>";
        assert!(page.contains(paragraph), "{page}");
        assert!(
            page.contains("<li><a href=\"../../docs/guide/cli.html\" aria-current=\"page\">Line</a></li>"),
            "{page}"
        );
    }

    #[test]
    fn every_document_becomes_a_page_whose_links_lead_to_pages() {
        std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).unwrap();
        let dist = crate::paths::target().join("documents");
        // The id of a heading must not match a style of the page's parts. Rules that begin with a
        // state of the page's body concern that page alone.
        let style = std::fs::read_to_string("web/page/style.css").unwrap();
        let style = style.lines().filter(|line| !line.starts_with("[data-")).collect::<Vec<_>>().join("\n");
        let named: Vec<_> = style.split(|sign: char| !sign.is_alphanumeric() && !"#-".contains(sign)).collect();
        let book = Book::read().unwrap();
        book.write(&dist).unwrap();
        for document in &book.documents {
            let page = page_of(document);
            let text = std::fs::read_to_string(dist.join(&page)).unwrap();
            let places = text.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default());
            for place in places.filter(|place| place.ends_with(".html")) {
                let (path, _) = document_of(&page, place);
                let beside = ["index.html", "reports.html"].contains(&path.as_str());
                assert!(beside || dist.join(&path).is_file(), "{document}: {place}");
            }
            for heading in text.split("<h").filter_map(|rest| rest[1..].strip_prefix(" id=\"")) {
                let id = heading.split('"').next().unwrap_or_default();
                assert!(
                    !named.contains(&format!("#{id}").as_str()),
                    "{document}: web/page/style.css has a rule for #{id}"
                );
            }
        }
    }

    #[test]
    fn headings_and_tables_can_be_reached() {
        let page = page("README.md", "# wgvae\n\n## Node, and `Deno`\n\n| | a |\n|---|---|\n| b | c |\n");
        assert!(page.contains("<h2 id=\"node-and-deno\">"), "{page}");
        assert!(page.contains("<title>wgvae - wgvae</title>") && page.contains("<td></td><th>a</th>"), "{page}");
        assert!(page.contains("<link rel=\"stylesheet\" href=\".././web/page/style.css\">"), "{page}");
    }
}
