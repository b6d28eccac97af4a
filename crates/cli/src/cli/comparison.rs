//! Result of `wgvae compare-tiling`, as a table and as JSON.

use std::path::PathBuf;

use serde_json::{Value, json};
use wgvae::{Bytes, Size};

use super::difference::Difference;

/// All tilings, side by side.
#[derive(Debug)]
pub(super) struct Comparison {
    /// Size of the image, pixels.
    pub(super) image: Size,
    /// Factor by which the pictures enlarge a difference.
    pub(super) amplify: u32,
    /// Name of the adapter.
    pub(super) adapter: String,
    /// Rows: the exact decode, then the others.
    pub(super) rows: Vec<Row>,
}

/// One tiling of the comparison.
#[derive(Debug)]
pub(super) struct Row {
    /// Time and memory of the decode.
    pub(super) cost: Cost,
    /// Difference from the exact image; `None` for the exact image itself.
    pub(super) difference: Option<Difference>,
    /// File with the picture of the difference.
    pub(super) file: Option<PathBuf>,
}

/// Time and memory of a decode.
#[derive(Debug)]
pub(super) struct Cost {
    /// Facts about the tiles, for JSON.
    pub(super) tiling: Value,
    /// Seconds from the upload of the first latents until the image is in host memory.
    pub(super) seconds: f64,
    /// Peak GPU memory that the plan predicted.
    pub(super) predicted: Bytes,
    /// Peak GPU memory that the ledger counted.
    pub(super) measured: Bytes,
}

impl Comparison {
    /// Returns the comparison as JSON. The errors of the exact decode, and the PSNR of equal
    /// images, are null.
    pub(super) fn to_json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "tiling": row.cost.tiling,
                "seconds": row.cost.seconds,
                "predicted_peak_bytes": row.cost.predicted,
                "measured_peak_bytes": row.cost.measured,
                "max_error_levels": row.difference.map(|difference| difference.max),
                "mean_error_levels": row.difference.map(|difference| difference.mean),
                "psnr_db": row.difference.and_then(|difference| difference.psnr),
                "difference": row.file.as_ref().map(|file| file.to_string_lossy()),
            })
        };
        json!({
            "image": self.image,
            "adapter": self.adapter,
            "amplify": self.amplify,
            "tilings": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }

    /// Returns the comparison as a table of text.
    pub(super) fn to_text(&self) -> String {
        let mut text = format!("{} on {}; errors in levels of 255, from the exact picture\n", self.image, self.adapter);
        let picture = format!("difference x{}", self.amplify);
        let titles =
            ["tiling", "tiles", "time", "predicted peak", "measured peak", "max error", "mean error", "PSNR", &picture];
        text.push_str(&line(titles));
        for Row { cost, difference, file } in &self.rows {
            let [max, mean, psnr] = match difference {
                None => ["", "", ""].map(str::to_owned),
                Some(Difference { max, mean, psnr }) => {
                    let psnr = psnr.map_or("equal".to_owned(), |psnr| format!("{psnr:.1} dB"));
                    [format!("{max:.2}"), format!("{mean:.3}"), psnr]
                }
            };
            text.push_str(&line([
                cost.tiling["name"].as_str().unwrap_or_default(),
                &cost.tiling["tiles"].to_string(),
                &format!("{:.2} s", cost.seconds),
                &cost.predicted.to_string(),
                &cost.measured.to_string(),
                &max,
                &mean,
                &psnr,
                &file.as_ref().map_or(String::new(), |file| file.display().to_string()),
            ]));
        }
        text
    }
}

/// Formats one line of the table.
fn line([tiling, tiles, time, predicted, measured, max, mean, psnr, file]: [&str; 9]) -> String {
    let cells =
        format!("{tiling:<8}{tiles:>6}{time:>11}{predicted:>16}{measured:>15}{max:>11}{mean:>12}{psnr:>10}  {file}");
    format!("{}\n", cells.trim_end())
}
