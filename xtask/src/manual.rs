//! The manuals of `dist/`: README files as pages beside the page.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// Where `README.md` and the package's own are to be, and what a link to either becomes.
const PAGES: [(&str, &str); 2] = [("README.md", "manual.html"), ("web/README.md", "package.html")];

/// A page and its text in the repository.
pub(crate) struct Manual {
    /// The text, Markdown.
    pub(crate) source: &'static str,
    /// The page in `dist/`.
    pub(crate) page: &'static str,
    title: &'static str,
    /// HTML that stands before the text.
    lead: &'static str,
}

/// All of them.
pub(crate) const MANUALS: [Manual; 2] = [
    Manual { source: PAGES[0].0, page: PAGES[0].1, title: "wgvae: manual", lead: "" },
    Manual {
        source: PAGES[1].0,
        page: PAGES[1].1,
        title: "wgvae: the package",
        lead: "<p>The package as npm packs it: <a href=\"wgvae.tgz\">wgvae.tgz</a>. <code>npm install</code> takes its address.</p>\n",
    },
];

impl Manual {
    /// The page of `markdown`. Links to files that are not beside it lose their address: `is_there` knows.
    pub(crate) fn to_html(&self, markdown: &str, is_there: impl Fn(&str) -> bool) -> String {
        let mut text = String::new();
        html::push_html(&mut text, Links { events: parser(markdown), is_there, kept: Vec::new() });
        // What is wider than a phone scrolls, by keys, too. Signs of the text are escaped, so these are tags.
        let text = text
            .replace("<pre>", "<pre tabindex=\"0\">")
            .replace("<table>", "<div class=\"scroll\" tabindex=\"0\"><table>")
            .replace("</table>", "</table></div>");
        let Self { title, lead, .. } = self;
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <link rel=\"icon\" href=\"assets/icon.svg\">\n<link rel=\"stylesheet\" href=\"web/page/style.css\">\n</head>\n\
             <body class=\"manual\">\n<nav aria-label=\"Pages\"><a href=\"./\">The page</a> <a href=\"manual.html\">Manual</a> <a href=\"package.html\">Package</a></nav>\n\
             <main>\n{lead}{text}</main>\n</body>\n</html>\n"
        )
    }
}

fn parser(markdown: &str) -> Parser<'_> {
    Parser::new_ext(markdown, Options::ENABLE_TABLES)
}

/// Events, with links as they have to be in `dist/`.
struct Links<'a, F> {
    events: Parser<'a>,
    is_there: F,
    /// Of each link that is open: whether it is one on the page, too.
    kept: Vec<bool>,
}

impl<'a, F: Fn(&str) -> bool> Iterator for Links<'a, F> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        loop {
            match self.events.next()? {
                Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                    let place =
                        PAGES.iter().find(|(source, _)| **source == *dest_url).map_or(&*dest_url, |(_, page)| page);
                    let is_kept = place.contains("://") || (self.is_there)(place);
                    self.kept.push(is_kept);
                    if is_kept {
                        let dest_url = CowStr::from(place.to_owned());
                        return Some(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                    }
                }
                Event::End(TagEnd::Link) => {
                    if self.kept.pop() == Some(true) {
                        return Some(Event::End(TagEnd::Link));
                    }
                }
                event => return Some(event),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MANUALS;

    #[test]
    fn links_lead_to_what_is_there() {
        let text = "[one](there.txt), [**two**](gone.txt), [three](https://example.org/), [the package](web/README.md)\n\n| a |\n|---|\n| b |\n";
        let page = MANUALS[0].to_html(text, |path| ["there.txt", "package.html"].contains(&path));
        let paragraph = "<p><a href=\"there.txt\">one</a>, <strong>two</strong>, <a href=\"https://example.org/\">three</a>, <a href=\"package.html\">the package</a></p>";
        assert!(page.contains(paragraph), "{page}");
        assert!(page.contains("<td>b</td>"), "{page}");
    }
}
