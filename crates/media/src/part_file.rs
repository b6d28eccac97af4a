//! Files that appear only when they are complete. They are written without a name or under a
//! temporary one, and then moved into place.

#[cfg(target_os = "linux")]
mod unnamed;

use std::fs::File;
use std::io::{BufWriter, Cursor, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

#[cfg(target_os = "linux")]
use self::unnamed::UnnamedFile;
use wgvae::{Error, Result};

/// A file that is moved into place when it is complete, and vanishes otherwise.
///
/// On Linux it has no name until then, so not even SIGKILL leaves anything behind. If the file
/// system does not support that, it lies beside its place under a temporary name. Output to
/// something that is not a file, such as a named pipe, is kept in memory and written at the end.
/// Output to stdout, also by the name `/dev/stdout`, goes to a temporary file without a name first.
/// A symbolic link stays a link. A new file takes over the permissions of the replaced file.
#[derive(Debug)]
pub struct PartFile {
    path: PathBuf,
    content: Content,
}

#[derive(Debug)]
enum Content {
    #[cfg(target_os = "linux")]
    Unnamed {
        file: BufWriter<UnnamedFile>,
        target: PathBuf,
    },
    Beside {
        file: BufWriter<NamedTempFile>,
        target: PathBuf,
    },
    Memory(Cursor<Vec<u8>>),
    Stdout(BufWriter<File>),
}

impl PartFile {
    /// Begins the file that will replace `path`.
    pub fn create(path: &Path) -> Result<Self> {
        Self::replacing(path, |target| {
            #[cfg(target_os = "linux")]
            if let Some(file) = UnnamedFile::create(folder_of(&target), permissions_for(&target)?)? {
                return Ok(Content::Unnamed { file: BufWriter::new(file), target });
            }
            beside(target)
        })
    }

    /// Begins the file that will replace `path`, under a name that another program can open:
    /// [`Self::part`].
    pub fn create_named(path: &Path) -> Result<Self> {
        Self::replacing(path, beside)
    }

    fn replacing(path: &Path, begin: impl FnOnce(PathBuf) -> std::io::Result<Content>) -> Result<Self> {
        if let Some(Descriptor::Stdout) = descriptor(path) {
            return Self::stdout();
        }
        let content = replaceable(path).and_then(|target| match target {
            Some(target) => begin(target),
            None => Ok(Content::Memory(Cursor::new(Vec::new()))),
        });
        let content = content.map_err(|source| Error::io(path.display(), source))?;
        Ok(Self { path: path.to_owned(), content })
    }

    /// Begins output that goes to stdout all at once, when it is complete.
    pub fn stdout() -> Result<Self> {
        let path = PathBuf::from("stdout");
        let file = tempfile::tempfile().map_err(|source| Error::io(std::env::temp_dir().display(), source))?;
        Ok(Self { path, content: Content::Stdout(BufWriter::new(file)) })
    }

    /// Returns its temporary name, or `None` if it has none.
    pub fn part(&self) -> Option<&Path> {
        match &self.content {
            Content::Beside { file, .. } => Some(file.get_ref().path()),
            _ => None,
        }
    }

    /// True if it can be written in any order.
    pub fn is_seekable(&self) -> bool {
        !matches!(self.content, Content::Memory(_) | Content::Stdout(_))
    }

    /// Returns the file itself, for a writer that wants to own it, or `None` for content in memory.
    pub fn file(&mut self) -> Result<Option<File>> {
        let file = match &mut self.content {
            #[cfg(target_os = "linux")]
            Content::Unnamed { file, .. } => file.flush().and_then(|()| file.get_ref().as_file().try_clone()),
            Content::Beside { file, .. } => file.flush().and_then(|()| file.get_ref().as_file().try_clone()),
            Content::Stdout(file) => file.flush().and_then(|()| file.get_ref().try_clone()),
            Content::Memory(_) => return Ok(None),
        };
        file.map(Some).map_err(|source| Error::io(self.path.display(), source))
    }

    /// Makes sure that all content is stored, so that only the move into place is left.
    ///
    /// # Errors
    /// [`Error::Io`], for example if the disk is full.
    pub fn complete(&mut self) -> Result<()> {
        let complete = match &mut self.content {
            #[cfg(target_os = "linux")]
            Content::Unnamed { file, .. } => file.flush().and_then(|()| file.get_ref().as_file().sync_all()),
            Content::Beside { file, .. } => file.flush().and_then(|()| file.get_ref().as_file().sync_all()),
            Content::Stdout(file) => file.flush(),
            Content::Memory(_) => Ok(()),
        };
        complete.map_err(|source| Error::io(self.path.display(), source))
    }

    /// Moves the file into its place. A reader that closes stdout early is not an error.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn persist(mut self) -> Result<()> {
        self.complete()?;
        let path = self.path;
        let persist = || match self.content {
            #[cfg(target_os = "linux")]
            Content::Unnamed { file, target } => {
                file.into_inner().map_err(std::io::IntoInnerError::into_error)?.place(&target)
            }
            Content::Beside { file, target } => {
                let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
                if let Some(permissions) = permissions_for(&target)? {
                    file.as_file().set_permissions(permissions)?;
                }
                file.persist(target).map(drop).map_err(|error| error.error)
            }
            Content::Memory(bytes) => {
                std::fs::OpenOptions::new().append(true).open(&path)?.write_all(&bytes.into_inner())
            }
            Content::Stdout(file) => {
                let mut file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
                let mut stdout = std::io::stdout().lock();
                let copied = file.rewind().and_then(|()| std::io::copy(&mut file, &mut stdout));
                match copied.and_then(|_| stdout.flush()) {
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                    written => written,
                }
            }
        };
        persist().map_err(|source| Error::io(path.display(), source))
    }

    /// Adds the name of the file to an error.
    pub fn error(&self, source: std::io::Error) -> Error {
        Error::io(self.path.display(), source)
    }

    fn medium(&mut self) -> &mut dyn Medium {
        match &mut self.content {
            #[cfg(target_os = "linux")]
            Content::Unnamed { file, .. } => file,
            Content::Beside { file, .. } => file,
            Content::Memory(content) => content,
            Content::Stdout(file) => file,
        }
    }
}

/// A place for the content of a file.
trait Medium: Write + Seek {}

impl<T: Write + Seek> Medium for T {}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.medium().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.medium().flush()
    }
}

impl Seek for PartFile {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.medium().seek(to)
    }
}

/// Writes `bytes` to `path`, which always holds either its old content or all of the new content.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = PartFile::create(path)?;
    file.write_all(bytes).map_err(|source| Error::io(path.display(), source))?;
    file.persist()
}

/// Checks, before long work, that `path` can be written, and leaves nothing behind. Fails if its
/// folder is missing or not writable, or if it is a folder itself. Does not open a named pipe: its
/// reader would take the end of the check for the end of the output.
pub fn check_writable(path: &Path) -> Result<()> {
    if let Some(Descriptor::Stdout) = descriptor(path) {
        return Ok(());
    }
    let check = || match replaceable(path)? {
        Some(target) => create_beside(&target)?.close(),
        None if is_named_pipe(path)? => Ok(()),
        None => std::fs::OpenOptions::new().append(true).open(path).map(drop),
    };
    check().map_err(|source| Error::io(path.display(), source))
}

#[cfg(unix)]
fn is_named_pipe(path: &Path) -> std::io::Result<bool> {
    std::fs::metadata(path).map(|metadata| std::os::unix::fs::FileTypeExt::is_fifo(&metadata.file_type()))
}

#[cfg(not(unix))]
fn is_named_pipe(_path: &Path) -> std::io::Result<bool> {
    Ok(false)
}

/// Open file of a process, by the name that the system gives it.
enum Descriptor {
    /// This process's stdout.
    Stdout,
    Other,
}

/// Returns the open file that `path` names or links to, such as `/dev/stdout`. Where that leads to
/// a file, the file must not be replaced: it may hold other lines.
fn descriptor(path: &Path) -> Option<Descriptor> {
    let own = Path::new("/proc/self/fd").canonicalize().unwrap_or_else(|_| PathBuf::from("/dev/fd"));
    let mut path = path.to_owned();
    // As many links as Linux follows.
    for _ in 0..40 {
        let folder = folder_of(&path).canonicalize().ok()?;
        if folder == own {
            let is_stdout = path.file_name()? == "1";
            return Some(if is_stdout { Descriptor::Stdout } else { Descriptor::Other });
        }
        if folder.ends_with("fd") && folder.starts_with("/proc") {
            return Some(Descriptor::Other);
        }
        path = folder.join(std::fs::read_link(&path).ok()?);
    }
    None
}

/// Returns the path to put the file at, or `None` for something that exists and is not a file.
fn replaceable(path: &Path) -> std::io::Result<Option<PathBuf>> {
    // `Path` ignores separators at the end, and systems do not.
    if path.file_name().is_none() || path.to_string_lossy().ends_with(std::path::is_separator) {
        return Err(ErrorKind::IsADirectory.into());
    }
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(metadata) if metadata.is_file() && descriptor(path).is_none() => std::fs::canonicalize(path).map(Some),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => match std::fs::read_link(path) {
            // A dangling link: its target is created, as the redirection of a shell does. Links in
            // a circle are another error.
            Ok(to) => replaceable(&folder_of(path).join(to)),
            Err(_) => check_folder_of(path).map(|()| Some(path.to_owned())),
        },
        Err(error) => Err(error),
    }
}

/// Begins a file under another name beside `target`.
fn beside(target: PathBuf) -> std::io::Result<Content> {
    Ok(Content::Beside { file: BufWriter::new(create_beside(&target)?), target })
}

/// Creates a temporary file in the folder of `target`, from where it can be renamed. It is deleted
/// if it is not renamed.
fn create_beside(target: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = temporary_name();
    // Temporary files are private by default. A new file gets the usual permissions; a replaced one
    // passes on its own at the end.
    #[cfg(unix)]
    if permissions_for(target)?.is_none() {
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    builder.tempfile_in(folder_of(target))
}

/// Makes the pattern of temporary names.
fn temporary_name() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".wgvae-").suffix(".part");
    builder
}

/// Returns the permissions of the file to be replaced, if there is one.
fn permissions_for(target: &Path) -> std::io::Result<Option<std::fs::Permissions>> {
    match std::fs::metadata(target) {
        Ok(metadata) => Ok(Some(metadata.permissions())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Fails with the name of the folder of `path`, if there is no such folder.
///
/// # Errors
/// The system's, or one that says what to do.
pub fn check_folder_of(path: &Path) -> std::io::Result<()> {
    let folder = folder_of(path);
    match std::fs::metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let problem = format!("expected an existing folder {}, found none: create it first", folder.display());
            Err(std::io::Error::new(ErrorKind::NotFound, problem))
        }
        found => found.map(drop),
    }
}

/// Returns the folder that `path` lies in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
