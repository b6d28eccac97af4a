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
    /// True if the token of `token_file` is not sent.
    pub without_stored_token: bool,
    /// Address of a proxy, such as `http://name:password@proxy.example:8080` or
    /// `socks5://localhost`. Defaults to none.
    pub proxy: Option<String>,
    /// Hosts that are reached without the proxy, separated by commas. `*` means all.
    pub no_proxy: Option<String>,
    /// File of certificates in PEM, which replace those of public authorities.
    pub certificates: Option<PathBuf>,
}

/// Keeps the token, and the password of the proxy, out of logs.
impl fmt::Debug for HubOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cache, token, token_file, endpoint, offline, without_stored_token, proxy, no_proxy, certificates } =
            self;
        f.debug_struct("HubOptions")
            .field("cache", cache)
            .field("token", &token.as_ref().map(|_| "not shown"))
            .field("token_file", token_file)
            .field("endpoint", endpoint)
            .field("offline", offline)
            .field("without_stored_token", without_stored_token)
            .field("proxy", &proxy.as_ref().map(|_| "not shown"))
            .field("no_proxy", no_proxy)
            .field("certificates", certificates)
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
    /// - `HF_ENDPOINT`, and `HF_HUB_OFFLINE`, else `TRANSFORMERS_OFFLINE`
    /// - `HF_HUB_DISABLE_IMPLICIT_TOKEN`: no token is sent, neither a stored one nor that of a
    ///   variable; a token that is set afterwards is sent
    /// - proxy: `https_proxy` or `http_proxy` by the scheme of `HF_ENDPOINT`, else `all_proxy`,
    ///   each also in capitals; exceptions: `no_proxy`
    /// - certificates: `SSL_CERT_FILE`, else `REQUESTS_CA_BUNDLE`, else `CURL_CA_BUNDLE`
    ///
    /// A path may begin with `~/`.
    #[expect(clippy::disallowed_methods, reason = "the variables are those of the hub's other tools")]
    pub fn from_env() -> Self {
        let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let path = |name: &str| read(name).map(from_home);
        let home = path("HF_HOME").or_else(|| path("XDG_CACHE_HOME").map(|cache| cache.join("huggingface")));
        let in_home = |name: &str| home.as_ref().map(|home| home.join(name));
        let is_on = |value: String| ["1", "ON", "YES", "TRUE"].contains(&value.to_uppercase().as_str());
        let without_token = read("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some_and(is_on);
        let token = || read("HF_TOKEN").or_else(|| read("HUGGING_FACE_HUB_TOKEN"));
        let endpoint = read("HF_ENDPOINT");
        let any_case = |name: &str| read(name).or_else(|| read(&name.to_uppercase()));
        let is_plain = endpoint.as_ref().is_some_and(|endpoint| endpoint.to_lowercase().starts_with("http:"));
        Self {
            cache: path("HF_HUB_CACHE").or_else(|| path("HUGGINGFACE_HUB_CACHE")).or_else(|| in_home("hub")),
            token: if without_token { None } else { token() },
            token_file: path("HF_TOKEN_PATH").or_else(|| in_home("token")),
            endpoint,
            offline: read("HF_HUB_OFFLINE").or_else(|| read("TRANSFORMERS_OFFLINE")).is_some_and(is_on),
            without_stored_token: without_token,
            proxy: any_case(if is_plain { "http_proxy" } else { "https_proxy" }).or_else(|| any_case("all_proxy")),
            no_proxy: any_case("no_proxy"),
            certificates: ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"].into_iter().find_map(path),
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
        let token = self.token.clone().or_else(|| if self.without_stored_token { None } else { kept() })?;
        Some(token.trim().to_owned()).filter(|token| !token.is_empty())
    }
}

/// Makes a path of `text`, and replaces `~` at its start by the user's home folder.
fn from_home(text: String) -> PathBuf {
    let below = text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with(std::path::is_separator));
    match (below, std::env::home_dir()) {
        (Some(below), Some(home)) => home.join(below.trim_start_matches(std::path::is_separator)),
        _ => PathBuf::from(text),
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
