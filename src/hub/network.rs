//! The way to the hub: proxies, and certificates of private authorities.

use std::path::{Path, PathBuf};

use ureq::Proxy;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use url::Url;

use super::options::HubOptions;
use crate::error::{Error, Result};

/// A proxy with its exceptions, and the certificates to trust.
#[derive(Debug)]
pub(super) struct Network {
    proxy: Option<Proxy>,
    /// Hosts that are reached without the proxy.
    direct: Vec<String>,
    certificates: Option<PathBuf>,
}

impl Network {
    /// Reads the settings of `options`, and opens no file.
    ///
    /// # Errors
    /// [`Error::Input`] for an unusable address of a proxy.
    pub(super) fn new(options: &HubOptions) -> Result<Self> {
        let HubOptions { proxy, no_proxy, certificates, .. } = options;
        let parsed = proxy.as_deref().map(Proxy::new).transpose();
        // The address is not shown, because it may have a password.
        let proxy = parsed.map_err(|error| {
            let what = "address of the proxy (HTTPS_PROXY, HTTP_PROXY or ALL_PROXY)";
            Error::input(what, "one such as http://proxy.example:8080 or socks5://localhost", error.to_string())
        })?;
        let direct = no_proxy.iter().flat_map(|list| list.split([',', ' '])).map(bare).filter(|host| !host.is_empty());
        Ok(Self { proxy, direct: direct.collect(), certificates: certificates.clone() })
    }

    /// Returns the proxy for a request to `url`, unless its host is an exception. An exception
    /// includes all names below it.
    pub(super) fn proxy_to(&self, url: &Url) -> Option<Proxy> {
        let host = bare(url.host_str().unwrap_or_default());
        let matches = |direct: &String| {
            direct == "*"
                || host.strip_suffix(direct.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        self.proxy.clone().filter(|_| !self.direct.iter().any(matches))
    }

    /// Returns the settings of encryption for the hub at `endpoint`. Certificates of a file replace
    /// those of public authorities.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read; [`Error::Input`] if it has no certificates.
    pub(super) fn tls(&self, endpoint: &Url) -> Result<TlsConfig> {
        let file = self.certificates.as_deref().filter(|_| endpoint.scheme() == "https");
        let given = file.map(certificates).transpose()?;
        let roots = given.map_or(RootCerts::WebPki, |given| RootCerts::new_with_certs(&given));
        Ok(TlsConfig::builder().root_certs(roots).build())
    }
}

/// Reads a file of certificates in PEM.
fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>> {
    let text = std::fs::read(file).map_err(|source| Error::io(file.display(), source))?;
    let certificates = parse_pem(&text).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
        Ok(_) => None,
        Err(error) => Some(Err(Error::format(file.display(), format!("unreadable as PEM: {error}")))),
    });
    let certificates: Vec<_> = certificates.collect::<Result<_>>()?;
    if certificates.is_empty() {
        let what = format!("{} (SSL_CERT_FILE, REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE)", file.display());
        return Err(Error::input(what, "certificates in PEM", "none"));
    }
    Ok(certificates)
}

/// Returns a host in small letters, without the brackets of IPv6, and without the dot before all
/// names of a domain.
fn bare(host: &str) -> String {
    let host = host.trim().trim_start_matches("*.").trim_start_matches('.');
    host.trim_start_matches('[').trim_end_matches(']').to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_include_the_names_below_them() {
        let options = |no_proxy: &str| HubOptions {
            proxy: Some("http://name:word@proxy.example:8080".to_owned()),
            no_proxy: Some(no_proxy.to_owned()),
            ..HubOptions::default()
        };
        for (no_proxy, url, is_direct) in [
            ("", "https://hub.example", false),
            ("hub.example", "https://hub.example/a", true),
            ("a, hub.example", "https://cdn.HUB.example", true),
            (".hub.example", "https://cdn.hub.example", true),
            ("*.hub.example", "https://cdn.hub.example", true),
            ("hub.example", "https://notthehub.example", false),
            ("b.example", "https://hub.example", false),
            ("::1", "http://[::1]:80", true),
            ("*", "https://hub.example", true),
        ] {
            let network = Network::new(&options(no_proxy)).expect("a proxy");
            let proxy = network.proxy_to(&Url::parse(url).expect("an address"));
            assert_eq!(proxy.is_none(), is_direct, "{no_proxy} {url}");
        }
        assert!(!format!("{:?}", options("")).contains("word"), "a password is not for logs");
    }
}
