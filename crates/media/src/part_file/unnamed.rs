//! Files without a name (`O_TMPFILE`), which Linux can name when they are complete. Until then,
//! nothing is left behind even if the process is killed.

use std::fs::{File, Permissions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::temporary_name;

/// A file that has no name yet.
#[derive(Debug)]
pub(super) struct UnnamedFile(File);

impl UnnamedFile {
    /// Creates a file on the file system of `folder`. Returns `None` if that file system needs
    /// names. Without `permissions` it gets those of a new file.
    pub(super) fn create(folder: &Path, permissions: Option<Permissions>) -> std::io::Result<Option<Self>> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = match rustix::fs::open(folder, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => File::from(file),
            // Kernels and file systems say "not supported" in several ways.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let file = Self(file);
        // The file gets its name through /proc, which some containers lack.
        if !Path::new(&file.link()).exists() {
            return Ok(None);
        }
        if let Some(permissions) = permissions {
            file.0.set_permissions(permissions)?;
        }
        Ok(Some(file))
    }

    /// Returns the open file.
    pub(super) fn as_file(&self) -> &File {
        &self.0
    }

    /// Names it `target`, and replaces any file there.
    pub(super) fn place(&self, target: &Path) -> std::io::Result<()> {
        match self.name(target) {
            // A link cannot replace another file, but a rename can. So it gets a second name first.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let folder = target.parent().unwrap_or(Path::new("."));
                let named = temporary_name().make_in(folder, |path| self.name(path))?;
                named.persist(target).map(drop).map_err(|error| error.error)
            }
            named => named,
        }
    }

    fn name(&self, path: &Path) -> std::io::Result<()> {
        Ok(rustix::fs::linkat(CWD, self.link(), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }

    /// Returns the path under which the kernel shows the open file.
    fn link(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }
}

impl Write for UnnamedFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Seek for UnnamedFile {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}
