//! Test that no files use each other in a circle, in the source of each crate and in the JavaScript
//! of the page and its package. Each file can then be read, moved and changed with only the files
//! below it in mind.
//!
//! Uses are found from words (`tests/kit/rust_uses.rs`):
//!
//! - In Rust, a file uses the files that contain the items named by its paths, through any
//!   re-exports. Roots of the modules that contain the file (`mod.rs`, or `x.rs` beside `x/`) do
//!   not count, because a child is a part of its parent and sees its private items. A root does not
//!   use items that it only declares or re-exports. Methods of a value are not found, so an `impl`
//!   may span several files.
//! - In JavaScript, a file uses the files that it imports. Types in comments do not count, because
//!   they load nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use test_kit::repository;
use test_kit::rust_uses::Module;

/// Files that each file uses, with the first name that refers to each.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.extension().is_some_and(|known| known == ending) {
            found.push(path);
        }
    }
}

/// Reads the files below the folders `names`. Returns their texts by their paths in the repository.
fn texts(names: &[&str], ending: &str) -> BTreeMap<String, String> {
    let root = repository();
    let mut found = Vec::new();
    names.iter().for_each(|name| files(&root.join(name), ending, &mut found));
    let name = |path: &Path| path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
    found.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// Modules of a crate by their paths, each with the name of its file.
struct Crate(BTreeMap<Vec<String>, (String, Module)>);

impl Crate {
    /// Reads the crate whose files are `texts`, all below the folder `root`.
    fn new(root: &str, texts: &BTreeMap<String, String>) -> Self {
        let mut modules = BTreeMap::new();
        for (file, text) in texts {
            let name = file[root.len() + 1..].trim_end_matches(".rs");
            let mut path: Vec<String> = name.split('/').map(str::to_owned).collect();
            if ["mod", "lib", "main"].contains(&path[path.len() - 1].as_str()) {
                path.pop();
            }
            let module = Module::read(&path, text);
            // If a folder has a library and a program, the library's root stands for both: nothing
            // could use other items of a root.
            modules.entry(path).or_insert((file.clone(), module));
        }
        Self(modules)
    }

    fn uses(&self) -> Uses {
        let mut uses = Uses::new();
        for (file, module) in self.0.values() {
            let used = uses.entry(file.clone()).or_default();
            let own = |path: &[String]| module.path.starts_with(path);
            for (path, targets) in self.named_by(module) {
                for target in targets.into_iter().filter(|target| !own(target)) {
                    used.entry(self.0[&target].0.clone()).or_insert_with(|| path.join("::"));
                }
            }
        }
        uses
    }

    /// Returns the paths of `module` that count as uses, with the modules that contain what each
    /// names.
    fn named_by(&self, module: &Module) -> Vec<(Vec<String>, Vec<Vec<String>>)> {
        let counts = |name: &String| name == "*" || name == "_" || module.words.contains(name);
        let bound = module.bound.iter().filter(|bound| !bound.public || counts(&bound.name));
        let paths = bound.map(|bound| &bound.path).chain(&module.paths);
        paths.filter_map(|path| Some((path.clone(), self.holders(&self.absolute(module, path)?, 0)))).collect()
    }

    /// Resolves `path`, as written in `module`, to a path from the crate's root. Returns `None` for
    /// another crate's path, and if it names no module.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Vec<String>> {
        let mut place = module.path.clone();
        let rest = match path[0].as_str() {
            "crate" => {
                place.clear();
                &path[1..]
            }
            "self" => &path[1..],
            "super" => {
                let up = path.iter().take_while(|part| *part == "super").count();
                place.truncate(place.len().saturating_sub(up));
                &path[up..]
            }
            first => {
                place.push(first.to_owned());
                if self.0.contains_key(&place) {
                    place.pop();
                    path
                } else {
                    let bound = module.bound.iter().find(|bound| bound.name == first && bound.path != path);
                    place = self.absolute(module, &bound?.path)?;
                    &path[1..]
                }
            }
        };
        Some([place.as_slice(), rest].concat())
    }

    /// Returns the modules that contain what `path` names. A module itself has none: its uses are
    /// found by the names of its items.
    fn holders(&self, path: &[String], depth: usize) -> Vec<Vec<String>> {
        let place = (0..=path.len()).rev().find(|end| self.0.contains_key(&path[..*end])).unwrap_or(0);
        let (place, rest) = path.split_at(place);
        let (Some(name), Some((_, module))) = (rest.first(), self.0.get(place)) else { return Vec::new() };
        let handed_on: Vec<_> = module.bound.iter().filter(|bound| bound.name == *name).collect();
        if handed_on.is_empty() || depth > 8 {
            return vec![place.to_vec()];
        }
        let paths =
            handed_on.iter().filter_map(|bound| Some([&self.absolute(module, &bound.path)?, &rest[1..]].concat()));
        paths.flat_map(|path| self.holders(&path, depth + 1)).collect()
    }
}

/// Returns the imports between JavaScript files.
fn imports(texts: &BTreeMap<String, String>) -> Uses {
    let mut uses = Uses::new();
    for (file, text) in texts {
        let used = uses.entry(file.clone()).or_default();
        for line in text.lines().filter(|line| !line.trim_start().starts_with(['*', '/'])) {
            for start in [" from '", "import '", "import('"] {
                let Some((before, rest)) = line.split_once(start) else { continue };
                let Some(name) = rest.split('\'').next().filter(|name| name.starts_with('.')) else { continue };
                let target = beside(file, name);
                if texts.contains_key(&target) && !before.contains("/*") {
                    used.insert(target, name.to_owned());
                }
            }
        }
    }
    uses
}

/// Resolves the import `name` of `file` to a file.
fn beside(file: &str, name: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns a shortest circle through each file that is in one, except for files of earlier circles.
fn circles(uses: &Uses) -> Vec<String> {
    let (mut told, mut seen) = (Vec::new(), BTreeSet::new());
    for start in uses.keys() {
        let Some(circle) = circle(uses, start).filter(|circle| circle.iter().all(|file| !seen.contains(file))) else {
            continue;
        };
        let steps = circle.iter().zip(circle.iter().cycle().skip(1));
        let steps = steps.map(|(user, used)| format!("{user} uses {} of {used}", uses[user][used]));
        told.push(steps.collect::<Vec<_>>().join(", "));
        seen.extend(circle);
    }
    told
}

fn circle(uses: &Uses, start: &String) -> Option<Vec<String>> {
    let mut before: BTreeMap<&String, &String> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(user) = next.pop_front() {
        for used in uses.get(user)?.keys() {
            if used == start {
                let back = std::iter::successors(Some(user), |file| before.get(file).copied());
                let mut circle: Vec<String> = back.cloned().collect();
                circle.reverse();
                return Some(circle);
            }
            if !before.contains_key(used) {
                before.insert(used, user);
                next.push_back(used);
            }
        }
    }
    None
}

fn refuse(uses: &Uses, least: usize) {
    let arrows: usize = uses.values().map(BTreeMap::len).sum();
    assert!(arrows >= least, "found only {arrows} uses: they are no longer read");
    let circles = circles(uses);
    assert!(circles.is_empty(), "files that use each other in circles:\n{}", circles.join("\n"));
}

#[test]
fn no_files_of_the_crate_use_each_other() {
    refuse(&Crate::new("src", &texts(&["src"], "rs")).uses(), 300);
}

#[test]
fn no_files_of_the_other_crates_use_each_other() {
    for (source, least) in
        [("crates/media/src", 60), ("crates/memory-report/src", 3), ("crates/cli/src", 120), ("xtask/src", 10)]
    {
        refuse(&Crate::new(source, &texts(&[source], "rs")).uses(), least);
    }
}

#[test]
fn no_files_of_the_page_and_its_package_import_each_other() {
    refuse(&imports(&texts(&["web/src", "web/page", "crates/memory-report/src/view"], "js")), 60);
}

fn of(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn circles_are_found_through_re_exports_and_named() {
    let files = [
        ("src/lib.rs", "mod high; mod low;"),
        ("src/high.rs", "use crate::low::{Low, other}; fn f() -> Low { other::g() }"),
        ("src/low/mod.rs", "mod inner; mod other; pub use self::inner::Low;"),
        ("src/low/inner.rs", "pub struct Low; use super::super::high::f;"),
        ("src/low/other.rs", "pub fn g() {}"),
    ];
    let found = circles(&Crate::new("src", &of(&files)).uses());
    let wanted = "src/high.rs uses crate::low::Low of src/low/inner.rs, src/low/inner.rs uses super::super::high::f of src/high.rs";
    assert_eq!(found, [wanted]);
    // A path through a bound module counts like a path to its item.
    let files = [("src/a.rs", "use crate::b; fn f() { b::g() }"), ("src/b.rs", "fn g() { crate::a::f() }")];
    let found = circles(&Crate::new("src", &of(&files)).uses());
    assert_eq!(found, ["src/a.rs uses b::g of src/b.rs, src/b.rs uses crate::a::f of src/a.rs"]);
}

#[test]
fn a_child_may_use_its_parent_and_cousins_below() {
    let files = [
        ("src/lib.rs", "mod parent; pub use crate::parent::Own;"),
        (
            "src/parent.rs",
            "mod child; mod cousin; pub struct Own; pub fn f() { child::g() } pub use self::cousin::Cousin;",
        ),
        ("src/parent/child.rs", "use super::{Cousin, Own}; pub fn g() -> (Own, Cousin) {}"),
        ("src/parent/cousin.rs", "use crate::Own; pub struct Cousin(Own);"),
    ];
    let uses = Crate::new("src", &of(&files)).uses();
    assert_eq!(circles(&uses), Vec::<String>::new());
    assert_eq!(uses["src/parent.rs"].keys().collect::<Vec<_>>(), ["src/parent/child.rs"]);
    assert_eq!(uses["src/parent/child.rs"].keys().collect::<Vec<_>>(), ["src/parent/cousin.rs"]);
}

#[test]
fn imports_in_circles_are_found_and_types_in_comments_are_none() {
    let files = [
        ("web/src/a.js", "import { b } from './b.js';\nimport { x } from '../pkg/x.js';"),
        ("web/src/b.js", "/** @typedef {import('./a.js').A} A */\nimport {\n  c,\n} from '../page/c.js';"),
        ("web/page/c.js", "export * from '../src/d.js';"),
        ("web/src/d.js", "const late = () => import('./b.js');"),
    ];
    let found = circles(&imports(&of(&files)));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("web/page/c.js uses ../src/d.js of web/src/d.js"), "{found:?}");
    assert!(!found[0].contains("a.js"), "{found:?}");
}
