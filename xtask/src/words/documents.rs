//! Documents: their length, sentences and links, and the words that the glossary must explain.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::prose::{LONGEST, long_sentences, words};
use crate::book::slug;
use crate::links::document_of;

/// Words that a document may have where it has a limit of its own.
const LENGTHS: [(&str, usize); 5] = [
    ("README.md", 900),
    ("ARCHITECTURE.md", 1100),
    ("CONTRIBUTING.md", 650),
    ("web/README.md", 1600),
    ("CHANGELOG.md", usize::MAX),
];

/// Words that any other document may have.
const LENGTH: usize = 1500;

/// Words that mean something particular in this project, those that were given up among them.
/// A document that uses one needs a row of it in the glossary.
const PARTICULAR: [&str; 23] = [
    "algorithm",
    "band",
    "barrier",
    "chunk",
    "doubling",
    "epilogue",
    "gather",
    "goal",
    "kin",
    "launch",
    "ledger",
    "moments",
    "pace",
    "parking",
    "part",
    "pass",
    "retention",
    "slot",
    "spill",
    "stage",
    "state",
    "tile",
    "twin",
];

/// The faults of one document: the line where it is known, and what is wrong.
/// `is_ours` is true if a person wrote it, and not a program.
pub(super) fn faults(path: &str, text: &str, glossary: &str, is_ours: bool) -> Vec<String> {
    let mut faults = dead_links(path, text);
    if is_ours {
        let limit = LENGTHS.iter().find(|(file, _)| *file == path).map_or(LENGTH, |(_, limit)| *limit);
        let length = words(text);
        if length > limit {
            faults.push(format!("1: {length} words, not {limit}"));
        }
        faults.extend(unexplained(text, glossary));
        faults.extend(
            long_sentences(text)
                .iter()
                .map(|(n, start)| format!("1: a sentence of {n} words, not {LONGEST}: {start} ...")),
        );
    }
    faults
}

/// Links to files that are not there, and to headings that their documents do not have.
fn dead_links(path: &str, text: &str) -> Vec<String> {
    let links = Parser::new(text).into_offset_iter().filter_map(|(event, range)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some((dest_url, range.start)),
        _ => None,
    });
    let dead =
        links.filter(|(url, _)| !url.contains("://") && !url.starts_with("mailto:") && !leads_somewhere(path, url));
    dead.map(|(url, at)| format!("{}: no such place: {url}", text[..at].matches('\n').count() + 1)).collect()
}

fn leads_somewhere(path: &str, url: &str) -> bool {
    let (file, fragment) = match url.strip_prefix('#') {
        Some(_) => (path.to_owned(), url),
        None => document_of(path, url),
    };
    let Some(fragment) = fragment.strip_prefix('#').filter(|_| file.ends_with(".md")) else {
        return Path::new(&file).exists();
    };
    fs::read_to_string(&file).is_ok_and(|text| anchors(&text).contains(fragment))
}

/// The names of a document's headings, and those that it gives in HTML.
fn anchors(markdown: &str) -> BTreeSet<String> {
    let given = markdown.split("<a id=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
    let (mut names, mut heading) = (BTreeSet::from_iter(given), None);
    for event in Parser::new(markdown) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(Vec::new()),
            Event::End(TagEnd::Heading(_)) => names.extend(heading.take().map(|events| slug(&events))),
            event => heading.iter_mut().for_each(|events| events.push(event.clone())),
        }
    }
    names
}

/// Words of [`PARTICULAR`] in `text` that have no row in the glossary.
fn unexplained(text: &str, glossary: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let used: BTreeSet<&str> = lower.split(|sign: char| !sign.is_alphabetic()).collect();
    let missing = PARTICULAR.iter().filter(|word| {
        let plural = format!("{word}s");
        (used.contains(**word) || used.contains(plural.as_str())) && !glossary.contains(&format!("<a id=\"{word}\">"))
    });
    missing.map(|word| format!("1: the glossary has no `{word}`")).collect()
}

#[cfg(test)]
mod tests {
    use super::{dead_links, faults, unexplained};

    #[test]
    fn links_lead_to_files_and_headings() {
        std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).unwrap();
        let dead = |text: &str| dead_links("docs/a.md", text);
        assert_eq!(dead("[a](../README.md) [b](https://a.example/x) [c](glossary.md#plan) ![d](drawings)"), [""; 0]);
        assert_eq!(dead("[a](glossary.md) [b](missing/glossary.md)"), ["1: no such place: missing/glossary.md"]);
        assert_eq!(dead("\n[a](none.md)"), ["2: no such place: none.md"]);
        assert_eq!(dead("[a](glossary.md#none)"), ["1: no such place: glossary.md#none"]);
    }

    #[test]
    fn words_are_explained() {
        let glossary = "| <a id=\"band\"></a>band | rows |";
        assert_eq!(unexplained("Two bands.", glossary), [""; 0]);
        assert_eq!(unexplained("A Chunk of a band; apart.", glossary), ["1: the glossary has no `chunk`"]);
    }

    #[test]
    fn documents_end() {
        let long = "Word word.\n".repeat(751);
        assert_eq!(faults("docs/a.md", &long, "", true), ["1: 1502 words, not 1500"]);
        assert_eq!(faults("benches/results/a.md", &long, "", false), [""; 0]);
    }
}
