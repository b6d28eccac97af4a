//! Reader of a Rust file's uses of other files of its crate, from its words alone, without a
//! compiler.

use std::collections::BTreeSet;

/// Names in a file that refer to other files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Path of the module in the crate, such as `["plan", "fuse"]`; empty for the crate's root.
    pub path: Vec<String>,
    /// Names that its `use` lines bind.
    pub bound: Vec<Bound>,
    /// Paths in the rest of the file, as written.
    pub paths: BTreeSet<Vec<String>>,
    /// All words in the rest of the file.
    pub words: BTreeSet<String>,
}

/// Name that a `use` line binds; `*` and `_` stand for themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    pub name: String,
    /// Path as written.
    pub path: Vec<String>,
    /// True if the line re-exports the name.
    pub public: bool,
}

impl Module {
    /// Reads `text`, the file of the module `path`. Skips code under `#[cfg(test)] mod`.
    pub fn read(path: &[String], text: &str) -> Self {
        let tokens = without_tests(&tokens(text));
        let mut module =
            Self { path: path.to_vec(), bound: Vec::new(), paths: BTreeSet::new(), words: BTreeSet::new() };
        let mut at = 0;
        while at < tokens.len() {
            if tokens[at] == "use" {
                let end = at + tokens[at..].iter().position(|token| token == ";").unwrap_or(tokens.len() - at);
                // `pub use` and `pub(super) use`.
                let public = at > 0 && (tokens[at - 1] == "pub" || tokens[at - 1] == ")");
                bind(&tokens[at + 1..end], &mut Vec::new(), public, &mut module.bound);
                at = end;
            } else if is_word(&tokens[at]) {
                let path = path_at(&tokens, at);
                at += path.len() * 2 - 2;
                module.words.insert(path[0].clone());
                if path.len() > 1 {
                    module.paths.insert(path);
                }
            }
            at += 1;
        }
        module
    }
}

/// Returns the path that begins at token `at`, which is a word.
fn path_at(tokens: &[String], mut at: usize) -> Vec<String> {
    let mut path = vec![tokens[at].clone()];
    while let [colons, word, ..] = &tokens[at + 1..]
        && colons == "::"
        && is_word(word)
    {
        path.push(word.clone());
        at += 2;
    }
    path
}

/// Collects the names that a `use` tree binds, after the path `before`.
fn bind(tree: &[String], before: &mut Vec<String>, public: bool, bound: &mut Vec<Bound>) {
    let depth = before.len();
    let mut at = 0;
    while at < tree.len() {
        match tree[at].as_str() {
            "::" => {}
            "{" => {
                let inner = &tree[at + 1..at + closing(&tree[at..])];
                for part in split(inner) {
                    bind(part, before, public, bound);
                }
                before.truncate(depth);
                return;
            }
            "as" => {
                let path = without_self(before);
                bound.push(Bound { name: tree[at + 1].clone(), path, public });
                before.truncate(depth);
                return;
            }
            word => before.push(word.to_owned()),
        }
        at += 1;
    }
    let path = without_self(before);
    if let Some(name) = path.last() {
        bound.push(Bound { name: name.clone(), path: path.clone(), public });
    }
    before.truncate(depth);
}

/// Removes a final `self`, because `a::{self}` binds `a`.
fn without_self(path: &[String]) -> Vec<String> {
    let end =
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") { path.len() - 1 } else { path.len() };
    path[..end].to_vec()
}

/// Splits a group at the commas between its own braces.
fn split(inner: &[String]) -> Vec<&[String]> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, token) in inner.iter().enumerate() {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

/// Returns the index at which the brace that begins `tokens` closes.
fn closing(tokens: &[String]) -> usize {
    let mut depth = 0;
    let end = tokens.iter().position(|token| {
        depth += i32::from(token == "{") - i32::from(token == "}");
        depth == 0
    });
    end.unwrap_or(tokens.len())
}

fn without_tests(tokens: &[String]) -> Vec<String> {
    const TESTS: [&str; 8] = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
    let mut rest = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at..].iter().zip(TESTS).filter(|(token, word)| *token == word).count() == TESTS.len() {
            let open = tokens[at..].iter().position(|token| token == "{" || token == ";").unwrap_or(0);
            at += open + closing(&tokens[at + open..]);
        } else {
            rest.push(tokens[at].clone());
        }
        at += 1;
    }
    rest
}

fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Splits text into words, `::`, and all other signs one by one. Skips comments, strings,
/// characters and lifetimes.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let length = if let Some(length) = skipped(rest) {
            length
        } else if is_part(first) {
            let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            tokens.push(rest[..length].to_owned());
            length
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

/// Returns the length of the comment, string, character or lifetime that `text` begins with.
fn skipped(text: &str) -> Option<usize> {
    let until = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(until("*/", 2));
    }
    if text.starts_with("r\"") {
        return Some(until("\"", 2));
    }
    if text.starts_with("r#\"") {
        return Some(until("\"#", 3));
    }
    let quote = text.chars().next().filter(|first| "\"'".contains(*first))?;
    let after = &text[1..];
    let is_character = after.starts_with('\\') || after.chars().nth(1) == Some('\'');
    if quote == '\'' && !is_character {
        return Some(
            1 + after.find(|letter: char| !(letter.is_alphanumeric() || letter == '_')).unwrap_or(after.len()),
        );
    }
    let mut escaped = false;
    let end = after.char_indices().find(|(_, letter)| {
        let ends = *letter == quote && !escaped;
        escaped = *letter == '\\' && !escaped;
        ends
    });
    Some(end.map_or(text.len(), |(at, _)| at + 2))
}

#[test]
fn what_a_file_names_is_read_off_its_words() {
    let text = r#"
        //! use crate::not::this;
        use std::fmt;
        use crate::{plan::{self, fuse::Fused as Whole}, tensor::*};
        pub(super) use self::child::Thing;
        mod child;
        fn f<'a>(x: &'a super::Other) { let _ = ('"', "use crate::nor::this;", '\'', child::g(x)); }
        #[cfg(test)]
        mod tests { use crate::only::Tests; }
    "#;
    let module = Module::read(&[], text);
    let bound: Vec<String> = module
        .bound
        .iter()
        .map(|bound| format!("{}{}={}", if bound.public { "pub " } else { "" }, bound.name, bound.path.join("::")))
        .collect();
    assert_eq!(
        bound,
        [
            "fmt=std::fmt",
            "plan=crate::plan",
            "Whole=crate::plan::fuse::Fused",
            "*=crate::tensor::*",
            "pub Thing=self::child::Thing"
        ]
    );
    let paths: Vec<String> = module.paths.iter().map(|path| path.join("::")).collect();
    assert_eq!(paths, ["child::g", "super::Other"]);
    assert!(module.words.contains("child") && !module.words.contains("Tests"));
}
