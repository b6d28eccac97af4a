//! The committed table: the figures of each kernel by each compiler, as somebody last accepted
//! them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::figures::{COLUMNS, Figures};

/// Figures of a kernel on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Bytes of workgroup memory that the kernel declares, the same for all devices.
    pub(crate) workgroup_bytes: u32,
    /// Figures as this crate compiles it. `None` if it was not compiled.
    pub(crate) native: Option<Figures>,
    /// Figures as a browser on wgpu compiles it. `None` if it was not compiled.
    pub(crate) firefox: Option<Figures>,
}

/// Kernels of a device by name.
pub(crate) type Rows = BTreeMap<String, Row>;

/// All devices by their id.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Table {
    /// Version of the compilers, for example `Mesa 26.1.6-1`. Other versions count differently.
    pub(crate) driver: String,
    pub(crate) devices: BTreeMap<String, Rows>,
}

impl Table {
    /// Reads the table at `path`. Returns an empty one if there is no file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        if !path.is_file() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is not a table of figures", path.display()))
    }

    /// Formats the table as JSON with one line for each kernel, so that diffs are readable.
    pub(crate) fn to_json(&self) -> Result<String> {
        let columns = serde_json::to_string(&COLUMNS)?;
        let driver = serde_json::to_string(&self.driver)?;
        let mut text = format!("{{\n\"driver\": {driver},\n\"columns\": {columns},\n\"devices\": {{\n");
        for (place, (device, rows)) in self.devices.iter().enumerate() {
            let _ = writeln!(text, "{}\"{device}\": {{", if place > 0 { "},\n" } else { "" });
            for (place, (kernel, row)) in rows.iter().enumerate() {
                let end = if place + 1 < rows.len() { "," } else { "" };
                let _ = writeln!(text, "{}: {}{end}", serde_json::to_string(kernel)?, serde_json::to_string(row)?);
            }
        }
        text.push_str("}\n}\n}\n");
        Ok(text)
    }

    /// Takes compile times from `older` unless they differ by more than a factor of about two. They
    /// vary with the load of the machine, and would change every line.
    pub(crate) fn keep_times(&mut self, older: &Self) {
        for (device, rows) in &mut self.devices {
            for (kernel, row) in rows {
                let Some(old) = older.devices.get(device).and_then(|rows| rows.get(kernel)) else { continue };
                for (new, old) in [(&mut row.native, old.native), (&mut row.firefox, old.firefox)] {
                    if let (Some(new), Some(old)) = (new, old) {
                        let (low, high) = (old.milliseconds / 2, old.milliseconds * 2 + 10);
                        if (low..=high).contains(&new.milliseconds) {
                            new.milliseconds = old.milliseconds;
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let figures = Some(Figures::from([1, 2, 3, 4, 5, 6, 7, 8]));
        let row = Row { workgroup_bytes: 8192, native: figures, firefox: None };
        let rows = Rows::from([("a".to_owned(), row), ("b".to_owned(), row)]);
        let devices = BTreeMap::from([("x".to_owned(), rows.clone()), ("y".to_owned(), rows)]);
        let table = Table { driver: "Mesa 1".to_owned(), devices };
        let read: Table = serde_json::from_str(&table.to_json().unwrap()).unwrap();
        assert_eq!(read.devices, table.devices);
        assert_eq!(read.driver, "Mesa 1");
    }
}
