//! Comments of source files.

use super::prose::{LONGEST, long_sentences};

/// Columns that a line of a comment may take.
const WIDTH: usize = 100;

/// Beginnings of a description that lacks its noun or its verb.
const FORBIDDEN: [&str; 10] =
    ["Of ", "The same", "That of", "Those ", "What ", "Whatever ", "Whether ", "Who ", "Whoever ", "Nobody "];

/// Consecutive lines of a comment, without what marks them as one.
struct Comment<'a> {
    line: usize,
    is_documentation: bool,
    lines: Vec<&'a str>,
}

/// The faults of the comments in a file whose name has this ending: the line and what is wrong.
pub(super) fn faults(ending: &str, text: &str) -> Vec<String> {
    let marks: &[&str] = match ending {
        "rs" | "wgsl" | "js" | "mjs" | "ts" => &["///", "//!", "//"],
        "py" | "toml" | "yml" => &["#"],
        _ => return Vec::new(),
    };
    let wide = text.lines().enumerate().filter(|(_, line)| {
        let comment = line.trim_start();
        let is_comment = marks.iter().any(|mark| comment.starts_with(mark)) || comment.starts_with("* ");
        // An address cannot be wrapped.
        is_comment && line.chars().count() > WIDTH && !comment.contains("://")
    });
    let wide = wide.map(|(index, line)| format!("{}: {} columns, not {WIDTH}", index + 1, line.chars().count()));
    wide.chain(comments(text, marks).iter().flat_map(faults_of)).collect()
}

fn faults_of(comment: &Comment) -> Vec<String> {
    let first = comment.lines.iter().find(|line| !line.is_empty()).copied().unwrap_or_default();
    let forbidden = FORBIDDEN.iter().find(|start| comment.is_documentation && first.starts_with(*start));
    let begins = forbidden.map(|start| format!("{}: begins with `{}`", comment.line, start.trim_end()));
    // A tag such as `@param` begins a text of its own.
    let markdown = comment.lines.join("\n").replace("\n@", "\n\n@");
    let long = long_sentences(&markdown)
        .into_iter()
        .map(|(words, start)| format!("{}: a sentence of {words} words, not {LONGEST}: {start} ...", comment.line));
    begins.into_iter().chain(long).collect()
}

/// The comments that fill whole lines.
fn comments<'a>(text: &'a str, marks: &[&str]) -> Vec<Comment<'a>> {
    let (mut comments, mut in_block) = (Vec::<Comment>::new(), false);
    // What marked the line before.
    let mut last = "";
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let (mark, body) = if in_block {
            ("/**", before_end(line).trim_start_matches('*'))
        } else if let Some(body) = line.strip_prefix("/**") {
            last = "";
            ("/**", before_end(body))
        } else if let Some(mark) = marks.iter().find(|mark| line.starts_with(**mark)) {
            (*mark, &line[mark.len()..])
        } else {
            ("", line)
        };
        in_block = mark == "/**" && !line.contains("*/");
        if !mark.is_empty() {
            let body = body.strip_prefix(' ').unwrap_or(body).trim_end();
            match comments.last_mut() {
                Some(comment) if mark == last => comment.lines.push(body),
                _ => comments.push(Comment {
                    line: index + 1,
                    is_documentation: ["///", "//!", "/**"].contains(&mark),
                    lines: vec![body],
                }),
            }
        }
        last = if mark == "/**" && !in_block { "" } else { mark };
    }
    comments
}

/// Returns what a line of a block says before the block ends.
fn before_end(line: &str) -> &str {
    line.split("*/").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::faults;

    #[test]
    fn faults_are_found_where_they_are() {
        let wide = format!("// {}", "word ".repeat(25));
        assert_eq!(faults("rs", &format!("fn f() {{}}\n{wide}\n")), ["2: 128 columns, not 100"]);
        assert_eq!(faults("rs", "/// Whether it is.\nbool"), ["1: begins with `Whether`"]);
        assert_eq!(faults("rs", "// Whether it is.\nlet a = \"/// Of it\";"), [] as [&str; 0]);
        assert_eq!(faults("rs", "/// True if it is.\n///\n/// What it is not.\nbool"), [] as [&str; 0]);
        assert_eq!(faults("js", "/** Text. */\n/** What it is. @param {x} y whether */"), ["2: begins with `What`"]);
        assert_eq!(faults("js", "/**\n * Of it.\n * @returns {x} that\n */\ncode * 2;"), ["1: begins with `Of`"]);
        let code = format!("/**\n * Of it.\n */\nlet a = [{}];\n/** Of it. */", "a, ".repeat(40));
        assert_eq!(faults("js", &code), ["1: begins with `Of`", "5: begins with `Of`"]);
        assert_eq!(faults("json", &wide), [] as [&str; 0]);
    }

    #[test]
    fn sentences_go_on_over_lines() {
        let line = "/// word word word word word word word word word\n".repeat(4);
        assert_eq!(faults("rs", &line).len(), 1);
        assert_eq!(faults("rs", &line.replacen("word\n", "word.\n", 2)), [] as [&str; 0]);
    }
}
