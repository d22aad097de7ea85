//! A server that is called for a hosted agent, parsed from its settings.

use std::path::{Path, PathBuf};

use concord_outbound::{Authorities, HeaderMap, HeaderName, HeaderValue, Origin, header};
use concord_runtime::service::settings::Secret;
use url::Url;

use super::{Error, HttpAgent, OpenAiAgent};

/// Most bytes of a model's answer.
const MODEL_ANSWER_BYTES_MAX: usize = 4_194_304;
/// The two settings of a hosted agent that can hold its key.
const KEY_SETTINGS: (&str, &str) = ("api_key_env", "api_key_file");

/// A server that can be called: address, headers and trusted authorities.
#[derive(Debug)]
pub(crate) struct EndpointConfig {
    /// The whole address.
    pub(crate) url: Url,
    /// The scheme, host and port of `url`.
    pub(crate) origin: Origin,
    /// The headers of each call, with the key.
    pub(crate) headers: HeaderMap,
    /// Those of the headers whose values are in files.
    pub(crate) header_files: Vec<HeaderFile>,
    pub(crate) authorities: Authorities,
    /// Most bytes of an answer.
    pub(crate) answer_bytes_max: usize,
    /// Whether the server honours the header `Idempotency-Key`.
    pub(crate) idempotent: bool,
}

/// A header whose value is in a file. The file is read for each call: whoever changes a Secret of Kubernetes changes the file.
#[derive(Debug)]
pub(crate) struct HeaderFile {
    pub(crate) name: HeaderName,
    /// What is written before the text of the file.
    scheme: &'static str,
    pub(crate) file: PathBuf,
}

impl HeaderFile {
    /// The value that the file has now. None where there is none that can be sent.
    pub(crate) fn read(&self) -> Option<HeaderValue> {
        let text = std::fs::read_to_string(&self.file).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| sensitive(&format!("{}{text}", self.scheme)))?
    }
}

/// What is written before a key.
const BEARER: &str = "Bearer ";

/// The places where a key may be given. At most one of them is used.
pub(crate) struct KeySource<'a> {
    pub(crate) env: Option<&'a String>,
    pub(crate) file: Option<&'a PathBuf>,
    /// The names of the two settings, for refusals.
    pub(crate) names: (&'static str, &'static str),
}

impl EndpointConfig {
    /// Parses the settings of a server that is sent messages. `key` is the path of these settings.
    pub(crate) fn of_server(key: &str, agent: &HttpAgent) -> Result<Self, Error> {
        let source = KeySource {
            env: agent.api_key_env.as_ref(),
            file: agent.api_key_file.as_ref(),
            names: KEY_SETTINGS,
        };
        let address = parse_address(&format!("{key}.url"), &agent.url)?;
        let mut config = Self::new(key, address, &source, agent.tls_ca.as_ref())?;
        for (name, value) in &agent.headers {
            let wrong =
                |what: &str| Error::new(format!("{key}.headers"), format!("{name:?} {what}"));
            let parsed =
                HeaderName::try_from(name.as_str()).map_err(|_| wrong("is no name of a header"))?;
            let value =
                sensitive(value.reveal()).ok_or_else(|| wrong("has no value that can be sent"))?;
            config.header_files.retain(|one| one.name != parsed);
            config.headers.insert(parsed, value);
        }
        for (name, file) in &agent.header_files {
            let (name, value) = read_header(key, name, file, &config.headers)?;
            config.header_files.push(HeaderFile {
                name: name.clone(),
                scheme: "",
                file: file.clone(),
            });
            config.headers.insert(name, value);
        }
        config.answer_bytes_max = agent.answer_bytes_max;
        config.idempotent = agent.idempotent;
        Ok(config)
    }

    /// Parses the settings of a model's server. `key` is the path of these settings.
    pub(crate) fn of_model(key: &str, agent: &OpenAiAgent) -> Result<Self, Error> {
        let source = KeySource {
            env: agent.api_key_env.as_ref(),
            file: agent.api_key_file.as_ref(),
            names: KEY_SETTINGS,
        };
        let (mut url, origin) = parse_address(&format!("{key}.base_url"), &agent.base_url)?;
        let path = format!("{}/chat/completions", url.path().trim_end_matches('/'));
        url.set_path(&path);
        let mut config = Self::new(key, (url, origin), &source, agent.tls_ca.as_ref())?;
        config.idempotent = agent.idempotent;
        Ok(config)
    }

    fn new(
        key: &str,
        (url, origin): (Url, Origin),
        source: &KeySource<'_>,
        tls_ca: Option<&PathBuf>,
    ) -> Result<Self, Error> {
        let authorities = Authorities::read(tls_ca.map(PathBuf::as_path))
            .map_err(|error| Error::of_file(format!("{key}.tls_ca"), error.to_string()))?;
        let mut headers = HeaderMap::new();
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json.clone());
        headers.insert(header::ACCEPT, json);
        if let Some((name, secret)) = read_key(key, source)? {
            let value = sensitive(&format!("{BEARER}{}", secret.reveal())).ok_or_else(|| {
                let message = "the key cannot be sent in a header";
                Error::new(format!("{key}.{name}"), message)
            })?;
            headers.insert(header::AUTHORIZATION, value);
        }
        let header_files = source.file.map(|file| HeaderFile {
            name: header::AUTHORIZATION,
            scheme: BEARER,
            file: file.clone(),
        });
        Ok(Self {
            url,
            origin,
            headers,
            header_files: header_files.into_iter().collect(),
            authorities,
            answer_bytes_max: MODEL_ANSWER_BYTES_MAX,
            idempotent: false,
        })
    }
}

fn parse_address(key: &str, text: &str) -> Result<(Url, Origin), Error> {
    let form = "write an address such as https://example.org/path, without a user name";
    let url = Url::parse(text).map_err(|error| Error::new(key, format!("{error}; {form}")))?;
    let has_user = !url.username().is_empty() || url.password().is_some();
    match Origin::of(&url) {
        Some(origin) if !has_user => Ok((url, origin)),
        _ => Err(Error::new(key, form)),
    }
}

/// Reads a key and says by which of its two settings it was given. None where neither is set.
pub(crate) fn read_key(
    key: &str,
    source: &KeySource<'_>,
) -> Result<Option<(&'static str, Secret)>, Error> {
    let (env_name, file_name) = source.names;
    let (name, text) = match (source.env, source.file) {
        (Some(_), Some(_)) => {
            let message = format!("leave out {env_name} or {file_name}");
            return Err(Error::new(format!("{key}.{env_name}"), message));
        }
        (None, None) => return Ok(None),
        (Some(variable), None) => {
            let text = std::env::var(variable).map_err(|_| {
                let message = format!("there is no variable {variable}");
                Error::new(format!("{key}.{env_name}"), message)
            })?;
            (env_name, text)
        }
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file).map_err(|error| {
                let message = format!("{} cannot be read: {error}", file.display());
                Error::of_file(format!("{key}.{file_name}"), message)
            })?;
            (file_name, text)
        }
    };
    let text = text.trim();
    if text.is_empty() {
        Err(Error::new(format!("{key}.{name}"), "the key is empty"))
    } else {
        Ok(Some((name, Secret::new(text))))
    }
}

/// Reads a header whose value is in a file. One that `given` has already is refused.
fn read_header(
    key: &str,
    name: &str,
    file: &Path,
    given: &HeaderMap,
) -> Result<(HeaderName, HeaderValue), Error> {
    let key = format!("{key}.header_files");
    let wrong = |what: &str| Error::new(key.clone(), format!("{name:?} {what}"));
    let parsed = HeaderName::try_from(name).map_err(|_| wrong("is no name of a header"))?;
    if given.contains_key(&parsed) {
        return Err(wrong("is given already"));
    }
    let text = std::fs::read_to_string(file).map_err(|error| {
        let message = format!("{} cannot be read: {error}", file.display());
        Error::of_file(key.clone(), message)
    })?;
    match text.trim() {
        "" => Err(wrong("has an empty file")),
        text => {
            let value = sensitive(text).ok_or_else(|| wrong("has no value that can be sent"))?;
            Ok((parsed, value))
        }
    }
}

/// A header's value that logs do not show.
fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
