//! What `wgvae compare-tiling` found, as a table and as JSON.

use std::path::PathBuf;

use serde_json::{Value, json};
use wgvae::{Bytes, Size};

use super::difference::Difference;

/// All tilings, side by side.
#[derive(Debug)]
pub(super) struct Comparison {
    /// Size of the image.
    pub(super) image: Size,
    /// How many times larger the pictures show a difference.
    pub(super) amplify: u32,
    /// What it was decoded on.
    pub(super) adapter: String,
    /// The exact decode, then the others.
    pub(super) rows: Vec<Row>,
}

/// One tiling of the comparison.
#[derive(Debug)]
pub(super) struct Row {
    /// What it took.
    pub(super) cost: Cost,
    /// From the exact image; `None` for that itself.
    pub(super) difference: Option<Difference>,
    /// The picture of the difference.
    pub(super) file: Option<PathBuf>,
}

/// What a decode took.
#[derive(Debug)]
pub(super) struct Cost {
    /// The facts about the tiles.
    pub(super) tiling: Value,
    /// From the upload of the first latents until the image is in host memory.
    pub(super) seconds: f64,
    /// GPU memory at the peak, as planned.
    pub(super) predicted: Bytes,
    /// GPU memory at the peak, as counted.
    pub(super) measured: Bytes,
}

impl Comparison {
    /// For programs. Errors of the exact decode, and a PSNR without a difference, are null.
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
                "difference": row.file,
            })
        };
        json!({
            "image": self.image,
            "adapter": self.adapter,
            "amplify": self.amplify,
            "tilings": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }

    /// For people.
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

/// One line of the table.
fn line([tiling, tiles, time, predicted, measured, max, mean, psnr, file]: [&str; 9]) -> String {
    let cells =
        format!("{tiling:<8}{tiles:>6}{time:>11}{predicted:>16}{measured:>15}{max:>11}{mean:>12}{psnr:>10}  {file}");
    format!("{}\n", cells.trim_end())
}
