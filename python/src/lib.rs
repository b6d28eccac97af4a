//! The native half of the Python package `wgvae`, which converts Python's types. The public API is
//! in `wgvae/`.

mod arrays;
mod clip;
mod device;
mod errors;
mod hub;
mod images;
mod inputs;
mod model;
mod notes;
mod options;
mod watch;

use std::time::Duration;

use pyo3::prelude::*;

/// Time to wait for another thread before checking for signals again.
const SIGNALS: Duration = Duration::from_millis(50);

/// The compiled half of the package, for internal use: it changes without notice.
#[pymodule(name = "_native")]
mod wgvae_native {
    use pyo3::prelude::*;

    use super::arrays::Array;
    use super::device::Source;
    #[pymodule_export]
    use super::model::Model;
    use super::{errors, images, notes, watch};
    use std::path::PathBuf;

    /// Version of the crate.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn begin(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        notes::listen();
        Ok(())
    }

    /// Returns the adapters as JSON, best first.
    #[pyfunction]
    fn adapters(py: Python<'_>) -> PyResult<String> {
        let found = watch::run(py, None, |_| Ok(pollster::block_on(wgvae::device::adapters(None))?))?;
        let reports: Vec<_> = found.iter().map(|(_, report)| report).collect();
        serde_json::to_string(&reports).map_err(|error| errors::internal(py, &error.to_string()))
    }

    /// Returns a model's files and configuration as JSON, without a device.
    #[pyfunction]
    fn inspect(py: Python<'_>, path: PathBuf, family: Option<String>, border: Option<String>) -> PyResult<String> {
        let source = Source { path, family, border, variant: wgvae::files::Variant::Default, preview_rate: false };
        watch::run(py, None, |_| {
            let checkpoint = source.open()?;
            checkpoint.scaled_config()?;
            let files: Vec<&str> = checkpoint.files().map(|(name, _)| name).collect();
            let config = checkpoint.config();
            let step = config.image_step(wgvae::LatentSpace::Model);
            Ok(serde_json::json!({ "files": files, "config": config, "image_step": step }).to_string())
        })
    }

    /// See `wgvae.preview`.
    #[pyfunction]
    fn preview(
        py: Python<'_>,
        latents: &Bound<'_, PyAny>,
        bfloat16: bool,
        family: &str,
        max_side: u32,
    ) -> PyResult<Py<PyAny>> {
        let latents = Array::new(latents, "latents", bfloat16, false).map_err(|stop| stop.into_exception(py))?;
        watch::run(py, None, |_| images::previews(&latents, family, max_side))?.into_array(py)
    }

    /// Parses a number of bytes, such as 512MiB, as the command line does.
    #[pyfunction]
    fn parse_bytes(py: Python<'_>, text: &str) -> PyResult<u64> {
        match parse_size::parse_size(text) {
            Ok(bytes) if bytes > 0 => Ok(bytes),
            _ => {
                Err(errors::input(py, "memory_budget", "bytes, such as \"512MiB\" or \"1.5GB\"", &format!("{text:?}")))
            }
        }
    }
}
