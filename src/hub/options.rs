//! Options for requests to the hub, and their defaults from the environment.

use std::fmt;
use std::path::PathBuf;

use crate::error::{Error, Result};

/// Options for requests to the hub. The defaults are those of `huggingface_hub` without its
/// environment variables; [`Self::from_env`] reads those.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HubOptions {
    /// Folder of the cache. Defaults to `~/.cache/huggingface/hub`.
    pub cache: Option<PathBuf>,
    /// Token for private and gated repositories. Defaults to the text of `token_file`. It is sent
    /// only to the scheme, host and port of `endpoint`, never to the target of a redirect
    /// elsewhere.
    pub token: Option<String>,
    /// File in which `hf auth login` stores the token. Defaults to `~/.cache/huggingface/token`.
    pub token_file: Option<PathBuf>,
    /// Address of the hub, with `http://` or `https://`. Defaults to `https://huggingface.co`.
    pub endpoint: Option<String>,
    /// True if only the cache is used, without any request.
    pub offline: bool,
}

/// Keeps the token out of logs.
impl fmt::Debug for HubOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cache, token, token_file, endpoint, offline } = self;
        f.debug_struct("HubOptions")
            .field("cache", cache)
            .field("token", &token.as_ref().map(|_| "not shown"))
            .field("token_file", token_file)
            .field("endpoint", endpoint)
            .field("offline", offline)
            .finish()
    }
}

impl HubOptions {
    /// Reads the environment variables of `huggingface_hub`:
    ///
    /// - cache: `HF_HUB_CACHE`, else `HUGGINGFACE_HUB_CACHE`, else `hub` in `HF_HOME`
    /// - token: `HF_TOKEN`, else `HUGGING_FACE_HUB_TOKEN`, else the file `HF_TOKEN_PATH`, else the
    ///   file `token` in `HF_HOME`
    /// - `HF_HOME` itself defaults to `huggingface` in `XDG_CACHE_HOME`
    /// - `HF_ENDPOINT` and `HF_HUB_OFFLINE`
    #[expect(clippy::disallowed_methods, reason = "the variables are those of the hub's other tools")]
    pub fn from_env() -> Self {
        let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let path = |name: &str| read(name).map(PathBuf::from);
        let home = path("HF_HOME").or_else(|| path("XDG_CACHE_HOME").map(|cache| cache.join("huggingface")));
        let in_home = |name: &str| home.as_ref().map(|home| home.join(name));
        let is_on = |value: String| ["1", "ON", "YES", "TRUE"].contains(&value.to_uppercase().as_str());
        Self {
            cache: path("HF_HUB_CACHE").or_else(|| path("HUGGINGFACE_HUB_CACHE")).or_else(|| in_home("hub")),
            token: read("HF_TOKEN").or_else(|| read("HUGGING_FACE_HUB_TOKEN")),
            token_file: path("HF_TOKEN_PATH").or_else(|| in_home("token")),
            endpoint: read("HF_ENDPOINT"),
            offline: read("HF_HUB_OFFLINE").is_some_and(is_on),
        }
    }

    /// Returns the folder of the cache, which may not exist yet.
    ///
    /// # Errors
    /// [`Error::Input`] if no folder is set and the user has no home folder.
    pub fn cache_folder(&self) -> Result<PathBuf> {
        self.cache
            .clone()
            .or_else(|| in_default_home("hub"))
            .ok_or_else(|| Error::input("cache of the hub", "a home folder, or HF_HOME", "neither"))
    }

    /// True if there is a token to send.
    pub fn has_token(&self) -> bool {
        self.found_token().is_some()
    }

    /// Returns the token to send, if there is one.
    pub(super) fn found_token(&self) -> Option<String> {
        let kept = || std::fs::read_to_string(self.token_file.clone().or_else(|| in_default_home("token"))?).ok();
        let token = self.token.clone().or_else(kept)?;
        Some(token.trim().to_owned()).filter(|token| !token.is_empty())
    }
}

/// Returns a path in the default folder of Hugging Face's tools.
fn in_default_home(name: &str) -> Option<PathBuf> {
    Some(std::env::home_dir()?.join(".cache/huggingface").join(name))
}

#[cfg(test)]
mod tests {
    use super::HubOptions;

    #[test]
    fn a_token_is_not_for_logs() {
        let options = HubOptions { token: Some("hf_secret".to_owned()), ..HubOptions::default() };
        let text = format!("{options:?}");
        assert!(!text.contains("secret") && text.contains("token: Some"), "{text}");
    }
}
