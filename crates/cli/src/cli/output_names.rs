//! Names of the output files of several input files, by a folder or a pattern.

use std::collections::BTreeMap;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use wgvae::{Error, Result};
use wgvae_media::clip_files::Pattern;
use wgvae_media::image_file::numbered;
use wgvae_media::part_file::check_folder_of;

use super::stdio;

/// Text of a pattern that stands for the name of an input file, without its ending.
const STEM: &str = "%s";

/// Rule that gives each input file the names of its output files.
#[derive(Debug)]
pub(super) struct OutputNames {
    folder: PathBuf,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    /// The input's name with this ending.
    Ending(&'static str),
    /// The input's name without its ending, between these texts.
    Stem { before: String, after: String },
    /// Numbers from 1 on.
    Number(Pattern),
}

/// Input file, and the number of files that it needs.
pub(super) type Needs<'a> = (&'a Path, usize);

impl OutputNames {
    /// Parses `path`: a folder, or a pattern such as `pictures/%s.png`. If the input is a folder,
    /// `path` may also be a new folder, or `%05d.png`. Files in a folder end in the format `given`,
    /// or else in `usual`. Returns `None` for the name of one file.
    ///
    /// # Errors
    /// [`Error::Input`] for a wrong pattern of numbers, and for a format with a pattern.
    pub(super) fn of(
        path: &Path,
        (given, usual): (Option<&'static str>, &'static str),
        from_folder: bool,
    ) -> Result<Option<Self>> {
        let Some(names) = Self::parse(path, given.unwrap_or(usual), from_folder)? else { return Ok(None) };
        if let (Some(format), Rule::Stem { .. } | Rule::Number(_)) = (given, &names.rule) {
            let expected = "use with a folder or - as the output (a file's ending decides its format)";
            return Err(Error::input("--format", expected, format!("{format} with --output {}", path.display())));
        }
        Ok(Some(names))
    }

    fn parse(path: &Path, ending: &'static str, from_folder: bool) -> Result<Option<Self>> {
        if stdio::is_meant(path) {
            return Ok(None);
        }
        let parent = || path.parent().map(Path::to_owned).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some((before, after)) = name.split_once(STEM) {
            let rule = Rule::Stem { before: before.to_owned(), after: after.to_owned() };
            return Ok(Some(Self { folder: parent(), rule }));
        }
        if from_folder && Pattern::is_meant(path) {
            return Ok(Some(Self { folder: parent(), rule: Rule::Number(Pattern::new(path)?) }));
        }
        if is_folder(path) || (from_folder && path.extension().is_none()) {
            return Ok(Some(Self { folder: path.to_owned(), rule: Rule::Ending(ending) }));
        }
        Ok(None)
    }

    /// Returns the names of the output files of each of `inputs`. Several files of one input get
    /// numbers.
    ///
    /// # Errors
    /// [`Error::Input`] if two inputs would have the same output.
    pub(super) fn assign(&self, inputs: &[Needs<'_>]) -> Result<Vec<Vec<PathBuf>>> {
        let (mut taken, mut all, mut number) = (BTreeMap::new(), Vec::new(), 0);
        for &(input, count) in inputs {
            let names: Vec<PathBuf> = (0..count).map(|index| self.name(input, (index, count), number)).collect();
            for name in &names {
                if let Some(other) = taken.insert(name.clone(), input) {
                    let inputs = format!("{} and {}", Path::display(other), input.display());
                    let found = format!("{} for both {inputs}", name.display());
                    return Err(Error::input("--output", "another name for the output of each input", found));
                }
            }
            all.push(names);
            number += count as u64;
        }
        Ok(all)
    }

    /// Returns the names of the output files of `inputs`, one for each.
    ///
    /// # Errors
    /// See [`Self::assign`].
    pub(super) fn assign_one_each(&self, inputs: &[PathBuf]) -> Result<Vec<PathBuf>> {
        let needs: Vec<Needs<'_>> = inputs.iter().map(|input| (input.as_path(), 1)).collect();
        Ok(self.assign(&needs)?.concat())
    }

    /// Returns the name of the output file of `input`, if that is the first and needs one.
    pub(super) fn first(&self, input: &Path) -> PathBuf {
        self.name(input, (0, 1), 0)
    }

    /// Creates the folder of the files, if it is missing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn create_folder(&self) -> Result<()> {
        if self.folder.as_os_str().is_empty() || self.folder.is_dir() {
            return Ok(());
        }
        let failed = |source| Error::io(self.folder.display(), source);
        check_folder_of(&self.folder).and_then(|()| std::fs::create_dir(&self.folder)).map_err(failed)
    }

    /// Returns the name of file `index` of the `count` files of `input`. `number` files have names
    /// already.
    fn name(&self, input: &Path, (index, count): (usize, usize), number: u64) -> PathBuf {
        let stem = input.file_stem().unwrap_or_default().to_string_lossy();
        let name = match &self.rule {
            Rule::Number(pattern) => return pattern.file(number + index as u64 + 1),
            Rule::Ending(ending) => format!("{stem}.{ending}"),
            Rule::Stem { before, after } => format!("{before}{stem}{after}"),
        };
        numbered(&self.folder.join(name), index, count)
    }
}

/// True for an existing folder, and for a name that ends like one.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.to_string_lossy().ends_with(['/', MAIN_SEPARATOR])
}
