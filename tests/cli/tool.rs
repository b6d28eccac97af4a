//! Test folder with a small model and its latents, in which the command runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pollster::block_on;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_kit::{formula, repository};
use wgvae::HostTensor;
use wgvae::config::AutoencoderConfig;
use wgvae::files::FileSource;
use wgvae::internals::safetensors::{read_header, read_tensor};
use wgvae::model::networks::encoder_tensors;

/// Shape of the latents of the small model's golden decode. Its images have 18 x 20 pixels (h x w).
pub(crate) const LATENTS: [usize; 4] = [1, 8, 9, 10];

/// Tensor to write, of any type, valid or not.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) dtype: &'static str,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Entry {
    pub(crate) fn f32(tensor: &HostTensor) -> Self {
        let bytes = tensor.data.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { dtype: "F32", shape: tensor.shape.clone(), bytes }
    }

    pub(crate) fn f16(tensor: &HostTensor) -> Self {
        let bytes = tensor.data.iter().flat_map(|&value| half::f16::from_f32(value).to_le_bytes()).collect();
        Self { dtype: "F16", shape: tensor.shape.clone(), bytes }
    }
}

/// Tensors by name.
pub(crate) type Entries = BTreeMap<String, Entry>;

/// Returns a .safetensors file of `entries`.
pub(crate) fn safetensors(entries: &Entries) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    for (name, entry) in entries {
        let begin = data.len();
        data.extend_from_slice(&entry.bytes);
        let value = json!({ "dtype": entry.dtype, "shape": entry.shape, "data_offsets": [begin, data.len()] });
        header.insert(name.clone(), value);
    }
    with_header(&Value::Object(header).to_string(), &data)
}

/// Returns a .safetensors file with this header and data, valid or not.
pub(crate) fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(data);
    file
}

/// Returns the path of a file in `tests/fixtures`.
pub(crate) fn fixture_path(name: &str) -> PathBuf {
    repository().join("tests/fixtures").join(name)
}

/// Reads a file in `tests/fixtures`.
pub(crate) fn fixture_bytes(name: &str) -> Vec<u8> {
    std::fs::read(fixture_path(name)).unwrap()
}

/// Reads a tensor of a fixture.
pub(crate) fn fixture(name: &str, tensor: &str) -> HostTensor {
    let source = FileSource::open(fixture_path(&format!("{name}.safetensors"))).unwrap();
    let header = block_on(read_header(&source)).unwrap();
    block_on(read_tensor(&source, tensor, &header.tensors[tensor])).unwrap()
}

/// Returns the config of the small model, and its golden image `[1, 3, 18, 20]`.
pub(crate) fn golden() -> (String, HostTensor) {
    let source = FileSource::open(fixture_path("toy_two_levels.safetensors")).unwrap();
    let header = block_on(read_header(&source)).unwrap();
    (header.metadata["config"].clone(), fixture("toy_two_levels", "image"))
}

/// Returns the small model's decoder weights.
pub(crate) fn weights() -> Entries {
    decoder_weights(&AutoencoderConfig::from_json(&golden().0).unwrap())
}

/// Returns the small model's weights, encoder included.
pub(crate) fn weights_of_both() -> Entries {
    let mut weights = weights();
    weights.extend(encoder_weights(&AutoencoderConfig::from_json(&golden().0).unwrap()));
    weights
}

/// Returns all weights of the decoder that `config` describes.
pub(crate) fn decoder_weights(config: &AutoencoderConfig) -> Entries {
    formula::decoder(config).iter().map(|(name, tensor)| (name.clone(), Entry::f32(tensor))).collect()
}

/// Returns all weights of the encoder that `config` describes.
pub(crate) fn encoder_weights(config: &AutoencoderConfig) -> Entries {
    let weights = formula::weights(&encoder_tensors(config));
    weights.iter().map(|(name, tensor)| (name.clone(), Entry::f32(tensor))).collect()
}

/// Temporary folder of one test.
pub(crate) struct Folder {
    folder: TempDir,
}

/// Environment variables with the user's hub settings, which must not reach the command.
const HUB_SETTINGS: [&str; 21] = [
    "HF_HOME",
    "HF_HUB_CACHE",
    "HUGGINGFACE_HUB_CACHE",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HF_TOKEN_PATH",
    "HF_ENDPOINT",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// Outcome of a run of the command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    /// Makes a folder with the model in `model/` and latents in `latents.safetensors`.
    pub(crate) fn new() -> Self {
        let folder = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(folder.path("model")).unwrap();
        folder.write("model/config.json", golden().0.as_bytes());
        folder.write_weights(&weights());
        folder.write_latents(&Entry::f32(&formula::latents(&LATENTS)));
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}; there are {:?}", self.names()))
    }

    pub(crate) fn write_weights(&self, weights: &Entries) {
        self.write("model/diffusion_pytorch_model.safetensors", &safetensors(weights));
    }

    pub(crate) fn write_latents(&self, latents: &Entry) {
        self.write("latents.safetensors", &safetensors(&BTreeMap::from([("latents".to_owned(), latents.clone())])));
    }

    /// Returns the names of all entries of the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Returns true once `process` has begun a file in this folder, either under a name of its own
    /// or open without a name.
    #[cfg(unix)]
    pub(crate) fn is_written_by(&self, process: u32) -> bool {
        let folder = std::fs::canonicalize(self.folder.path()).unwrap();
        let is_unnamed = |path: PathBuf| path.starts_with(&folder) && path.to_string_lossy().ends_with(" (deleted)");
        let open = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        let mut open = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        open.any(is_unnamed) || self.names().iter().any(|name| name.ends_with(".part"))
    }

    /// Returns the command, with this folder as its working directory.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wgvae"));
        // Tests share this cache, which is not the user's: there, `wgvae tune` may have kept
        // kernels. `tuning` has folders of its own for such kernels, but shares what Mesa compiles.
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("MESA_SHADER_CACHE_DIR", &cache).env("XDG_CACHE_HOME", cache);
        for name in HUB_SETTINGS {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        finish(&mut self.command(args))
    }

    /// Runs the command so that it finds no driver.
    pub(crate) fn run_without_adapter(&self, args: &[&str]) -> Outcome {
        let mut command = self.command(args);
        for variable in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"] {
            command.env(variable, "/nonexistent/driver.json");
        }
        finish(&mut command)
    }

    /// Runs `wgvae decode` of the model and latents in this folder, in f32, with more arguments.
    pub(crate) fn decode(&self, more: &[&str]) -> Outcome {
        let mut args = vec!["decode", "--model", "model", "--latents", "latents.safetensors", "--precision", "f32"];
        args.extend_from_slice(more);
        self.run(&args)
    }
}

/// Runs `command` to its end.
pub(crate) fn finish(command: &mut Command) -> Outcome {
    let output = command.output().unwrap();
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Outcome {
    /// Fails the test unless the command succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }

    /// Parses stdout as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.ok().stdout).unwrap()
    }

    /// Fails the test unless the command failed with `code` and printed one error line that
    /// contains all of `words`.
    #[track_caller]
    pub(crate) fn failed(&self, what: &str, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{what}: {self:?}");
        assert!(self.stdout.is_empty(), "{what}: {self:?}");
        // Drivers print lines of their own.
        let said = |line: &str| line.starts_with("error: ") && words.iter().all(|word| line.contains(word));
        let whole = self.stderr.replace("\n  ", " ");
        assert!(whole.lines().any(said), "{what}: no line \"error: ...\" with {words:?} in\n{}", self.stderr);
    }
}
