//! Committed text that is compared with the current result. `UPDATE_SNAPSHOTS=1` writes it anew.

use crate::repository;

/// Checks that `file`, a path in the repository, contains `found`. `filter` selects the tests that
/// write it.
pub fn check(file: &str, found: &str, filter: &str) {
    let path = repository().join(file);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, found).unwrap();
        return;
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    let lines = found.lines().map(Some).chain(std::iter::repeat(None));
    let difference =
        (1..).zip(wanted.lines().map(Some).chain([None]).zip(lines)).find(|(_, (wanted, found))| wanted != found);
    if let Some((line, (wanted, found))) = difference {
        panic!(
            "{file} differs in line {line}:\n- {}\n+ {}\nIf the plan was meant to change: UPDATE_SNAPSHOTS=1 cargo test \
             --release --test cpu {filter}, and review the diff",
            wanted.unwrap_or("(end)"),
            found.unwrap_or("(end)"),
        );
    }
}
