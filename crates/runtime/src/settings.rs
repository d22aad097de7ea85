//! Settings: defaults, then a file, then the environment, then flags. One struct a service; its doc comments become
//! `docs/configuration.md`. An unknown key is an error that names the nearest known one.

use std::collections::HashMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod broker;
pub mod reference;
mod secret;
mod storage;
mod work;

pub use broker::BrokerSettings;
pub(crate) use broker::without_users;
pub use secret::Secret;
pub(crate) use storage::ArchivePlace;
pub use storage::StorageSettings;
pub use work::WorkSettings;

/// How the advice about a word begins that is none of those that can stand there.
const ONE_OF: &str = "Write one of";

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file, variable or flag cannot be read. What is wrong stands in the sentence, and is not said again as its cause.
    #[error("the settings cannot be read: {0}")]
    Read(config::ConfigError),
    /// A key that does not exist.
    #[error("there is no setting {key:?}{}", nearest.as_ref().map_or(String::new(), |n| format!("; did you mean {n:?}?")))]
    Unknown {
        /// The key.
        key: String,
        /// The most similar key there is.
        nearest: Option<String>,
    },
    /// A value that does not fit.
    #[error("the setting {key:?} is wrong: {message}")]
    Value {
        /// The key.
        key: String,
        /// What is wrong.
        message: String,
    },
    /// A file that a setting names cannot be used.
    #[error("the setting {key:?} names a file that cannot be used: {message}")]
    File {
        /// The key.
        key: String,
        /// Which file, and what is wrong.
        message: String,
    },
    /// A variable that would be a setting if its name were written right.
    #[error("the variable {variable} sets nothing; did you mean {meant}?")]
    Variable {
        /// Its name.
        variable: String,
        /// The name of the setting.
        meant: String,
    },
    /// A `--set` that is not `key=value`.
    #[error("--set {0:?} is not of the form key=value")]
    Flag(String),
}

impl From<config::ConfigError> for Error {
    fn from(error: config::ConfigError) -> Self {
        Self::Read(error)
    }
}

/// Settings of a service; `S` are those of this service alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    bound(deserialize = "S: Default + serde::de::DeserializeOwned")
)]
#[schemars(bound = "S: JsonSchema + Default + Serialize")]
pub struct Settings<S> {
    /// The broker.
    pub broker: BrokerSettings,
    /// Names and storage on the broker.
    pub storage: StorageSettings,
    /// The HTTP endpoint for health and metrics.
    pub http: HttpSettings,
    /// Logs and traces, and what a collector is sent.
    pub telemetry: TelemetrySettings,
    /// How work is done.
    pub work: WorkSettings,
    /// Settings of this service alone.
    pub service: S,
}

/// A service without settings of its own.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NoSettings {}

/// The HTTP endpoint for health and metrics.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpSettings {
    /// Whether to listen.
    pub enabled: bool,
    /// Where to listen; port 0 takes any free port, which is logged and published as service metadata.
    pub address: String,
    /// `/readyz` notes it while more messages than this wait in one of the service's consumers, unless they are a flood that others
    /// are read past. The replica stays ready.
    pub ready_lag_max: u64,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            address: "127.0.0.1:0".into(),
            ready_lag_max: 100_000,
        }
    }
}

impl HttpSettings {
    /// Refuses an address that is none. Whether it can be listened on is known only when it is tried.
    pub fn check(&self) -> Result<(), Error> {
        let parts = self.address.rsplit_once(':');
        let is_address =
            parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if is_address || !self.enabled {
            return Ok(());
        }
        Err(Error::Value {
            key: "http.address".to_owned(),
            message: format!(
                "{:?} is no host with a port, such as 127.0.0.1:8080",
                self.address
            ),
        })
    }
}

/// Logs and traces.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetrySettings {
    /// What to log, in the syntax of `RUST_LOG`, for example `info` or `concord_runtime=debug,warn`.
    pub log: String,
    /// `text` or `json`.
    pub log_format: LogFormat,
    /// Base address of an OpenTelemetry collector (OTLP over HTTP or HTTPS), for example `http://127.0.0.1:4318`; empty for none.
    pub otlp_endpoint: String,
    /// Believe these authorities, too, when the collector is spoken to under TLS (a PEM file).
    pub otlp_ca: Option<PathBuf>,
    /// Whether the collector is sent log lines, too: those that `log` lets through, each with the trace that it belongs to.
    pub otlp_logs: bool,
    /// How often the collector is sent what `/metrics` shows, in milliseconds; 0 for never.
    pub otlp_metrics_ms: u64,
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        Self {
            log: "info".into(),
            log_format: LogFormat::Text,
            otlp_endpoint: String::new(),
            otlp_ca: None,
            otlp_logs: false,
            otlp_metrics_ms: 0,
        }
    }
}

/// Form of the log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Where settings come from, besides the defaults.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// Environment variables; those that begin with `CONCORD_` and contain `__` are settings.
    pub environment: HashMap<String, String>,
    /// `key=value` flags, keys with dots.
    pub flags: Vec<String>,
}

impl Sources {
    /// Sources of a process: its environment, and the given file and flags.
    pub fn of_process(file: Option<PathBuf>, flags: Vec<String>) -> Self {
        Self {
            file,
            flags,
            environment: std::env::vars().collect(),
        }
    }
}

/// Reads settings of type `T`.
pub fn read<T: DeserializeOwned + Serialize + Default + JsonSchema>(
    sources: &Sources,
) -> Result<T, Error> {
    let merged = merge(sources)?;
    let schema = schema::<T>();
    if let Some(error) = misspelt_variable(&sources.environment, schema.as_value()) {
        return Err(error);
    }
    if let Some(error) = unknown_key(&merged, schema.as_value(), "") {
        return Err(error);
    }
    let text = merged.to_string();
    concord_wire::envelope::from_json(text.as_bytes(), "").map_err(|fault| Error::Value {
        key: fault.pointer.trim_start_matches('/').replace('/', "."),
        message: match fault.advice.starts_with(ONE_OF) {
            true => format!("{} {}", fault.message, fault.advice),
            false => fault.message,
        },
    })
}

/// Whether a file, a variable or a flag states the setting with this key, such as `storage.replicas`; what nobody states is the default.
pub fn is_stated(sources: &Sources, key: &str) -> Result<bool, Error> {
    let place = format!("/{}", key.replace('.', "/"));
    Ok(merge(sources)?.pointer(&place).is_some())
}

/// Settings as a TOML file that [`read`] takes. Secrets stay hidden in it, so its first lines say to fill them in.
pub fn to_toml<T: Serialize>(settings: &T) -> Result<String, toml::ser::Error> {
    let text = toml::to_string(settings)?;
    let advice = if text.contains(secret::HIDDEN) {
        "# Secrets are not shown. Fill in what is (hidden) before you use this file.\n\n"
    } else {
        ""
    };
    Ok(format!("{advice}{text}"))
}

fn schema<T: JsonSchema>() -> schemars::Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>()
}

fn merge(sources: &Sources) -> Result<Value, Error> {
    let mut builder = config::Config::builder();
    if let Some(file) = &sources.file {
        builder =
            builder.add_source(config::File::from(file.as_path()).format(config::FileFormat::Toml));
    }
    // Only names with `__` are settings: `CONCORD_NATS_SERVER` and the like belong to scripts.
    let variables = sources
        .environment
        .iter()
        .filter(|(name, _)| name.starts_with("CONCORD_") && name.contains("__"));
    let environment = config::Environment::with_prefix("CONCORD")
        .prefix_separator("_")
        .separator("__")
        .try_parsing(true)
        .source(Some(
            variables
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        ));
    builder = builder.add_source(environment);
    for flag in &sources.flags {
        let (key, value) = flag
            .split_once('=')
            .ok_or_else(|| Error::Flag(flag.clone()))?;
        builder = builder.set_override(key, parse_scalar(value))?;
    }
    Ok(builder.build()?.try_deserialize::<Value>()?)
}

fn parse_scalar(text: &str) -> config::Value {
    let kind = if let Ok(flag) = text.parse::<bool>() {
        config::ValueKind::Boolean(flag)
    } else if let Ok(number) = text.parse::<i64>() {
        config::ValueKind::I64(number)
    } else if let Ok(number) = text.parse::<f64>() {
        config::ValueKind::Float(number)
    } else {
        config::ValueKind::String(text.to_owned())
    };
    config::Value::new(None, kind)
}

/// A variable with `_` where the name of a setting has `__`: it would be passed over, and whoever set it would not know.
fn misspelt_variable(environment: &HashMap<String, String>, schema: &Value) -> Option<Error> {
    let names = environment.keys().filter(|name| !name.contains("__"));
    let mut wrong = names.filter_map(|name| {
        let rest = name.strip_prefix("CONCORD_")?;
        let key = setting_of(&rest.to_lowercase(), schema)?;
        // Without a section it is one that belongs to the command, such as CONCORD_SERVER.
        key.contains("__").then(|| Error::Variable {
            variable: name.clone(),
            meant: format!("CONCORD_{}", key.to_uppercase()),
        })
    });
    wrong.next()
}

/// The setting that is meant by a name without its borders, with `__` between its parts.
fn setting_of(name: &str, schema: &Value) -> Option<String> {
    let known = schema.get("properties")?.as_object()?;
    known.iter().find_map(|(key, inner)| {
        let rest = name.strip_prefix(key.as_str())?;
        if rest.is_empty() {
            return inner.get("properties").is_none().then(|| key.clone());
        }
        let inside = setting_of(rest.strip_prefix('_')?, inner)?;
        Some(format!("{key}__{inside}"))
    })
}

/// The first key of `found` that `schema` does not know.
fn unknown_key(found: &Value, schema: &Value, path: &str) -> Option<Error> {
    let fields = found.as_object()?;
    let known = schema.get("properties")?.as_object()?;
    for (key, value) in fields {
        let full = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        match known.get(key) {
            Some(inner) => {
                if let Some(error) = unknown_key(value, inner, &full) {
                    return Some(error);
                }
            }
            None => {
                let nearest = known.keys().max_by(|a, b| {
                    strsim::jaro_winkler(key, a)
                        .total_cmp(&strsim::jaro_winkler(key, b))
                        .then_with(|| b.cmp(a))
                });
                let nearest = nearest.map(|near| full.replace(key.as_str(), near));
                return Some(Error::Unknown { key: full, nearest });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;
