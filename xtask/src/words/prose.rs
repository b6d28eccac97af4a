//! Sentences of Markdown.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Words that a sentence may have.
pub(super) const LONGEST: usize = 35;

/// Returns the sentences of more than [`LONGEST`] words in `markdown`: the number of words and the
/// first few of them.
/// Code counts as one word; each cell of a table and each item of a list is a text of its own.
pub(super) fn long_sentences(markdown: &str) -> Vec<(usize, String)> {
    let (mut long, mut text, mut in_code) = (Vec::new(), String::new(), false);
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(part) if !in_code => text.push_str(&part),
            Event::Code(_) => text.push('x'),
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            Event::Start(Tag::Item | Tag::Paragraph | Tag::TableCell)
            | Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell | TagEnd::Heading(_)) => {
                long.extend(sentences(&text).filter_map(too_long));
                text.clear();
            }
            _ => {}
        }
    }
    long
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['.', '!', '?', ';', ':'])
        .scan((text, 0, 0), |(text, start, end), piece| {
            *end += piece.len();
            let is_end = text[*end..].is_empty() || text[*end..].starts_with(' ');
            let sentence = is_end.then(|| &text[std::mem::replace(start, *end)..*end]);
            Some(sentence)
        })
        .flatten()
}

fn too_long(sentence: &str) -> Option<(usize, String)> {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    (words.len() > LONGEST).then(|| (words.len(), words[..8].join(" ")))
}

/// The number of words of a document, code and tables included.
pub(super) fn words(markdown: &str) -> usize {
    markdown.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[cfg(test)]
mod tests {
    use super::long_sentences;

    #[test]
    fn sentences_end_where_readers_pause() {
        let of = |words: usize| "word ".repeat(words).trim_end().to_owned();
        assert_eq!(long_sentences(&format!("{}. {}.", of(35), of(35))), []);
        assert_eq!(long_sentences(&format!("{} 0.5 `some code` {}", of(17), of(16))), []);
        assert_eq!(long_sentences(&format!("# {}\n\nShort. {}\n{}.", of(3), of(20), of(16)))[0].0, 36);
        assert_eq!(long_sentences(&format!("- {}\n- {}", of(30), of(30))), []);
        assert_eq!(long_sentences(&format!("| {} | {} |\n|---|---|\n| {} | b |", of(30), of(30), of(36))).len(), 1);
        assert_eq!(long_sentences(&format!("```\n{}\n```", of(50))), []);
    }
}
