//! `concord up --secure`: the local broker in operator mode, and credentials for each service.

use std::path::{Path, PathBuf};

use concord_credentials::{Directory, Holder, Issue, Resolver};
use concord_events::topology::Layout;
use concord_installation::{Plan, SERVICES};
use concord_runtime::service::clock;
use concord_wire::AgentId;

use crate::shared::failure::Failure;
use crate::shared::speaker::permissions_of;

/// The tenant of a local installation.
const TENANT: &str = "CONCORD";
/// Under which name whoever runs it works.
const OPERATOR: &str = "local";

/// What a secure installation has beside the plan.
pub(super) struct Secure {
    /// The directory of the credentials, for `concord credentials`.
    pub(super) credentials: PathBuf,
    /// Settings with which the command connects as an operator.
    pub(super) config: PathBuf,
    operator: PathBuf,
}

/// Makes the credentials that are missing, and has the broker and the services of the plan use them.
pub(super) fn prepare(plan: &mut Plan, layout: &Layout) -> Result<Secure, Failure> {
    let path = plan.directory.join("credentials");
    let now = clock::now().unix_millis() / 1_000;
    let mut directory = if path.join("operator.seed").is_file() {
        Directory::open(&path)?
    } else {
        let resolver = Resolver::Folder(path.join("resolver").display().to_string());
        Directory::create(&path, resolver, &[TENANT.to_owned()], now)?
    };
    for service in SERVICES {
        let file = issued(&mut directory, &Holder::Service(service), layout, now)?;
        let setting = format!("broker.credentials={}", file.display());
        plan.service_settings
            .entry(service)
            .or_default()
            .push(setting);
    }
    let operator = AgentId::new(OPERATOR).map_err(|error| Failure::failed(error.to_string()))?;
    let operator = issued(&mut directory, &Holder::Operator(operator), layout, now)?;
    let config = directory.server_config();
    plan.nats_config =
        std::fs::read_to_string(&config).map_err(|error| unusable(&config, &error))?;
    plan.credentials = Some(operator.clone());
    Ok(Secure {
        credentials: path,
        config: plan.directory.join("concord.toml"),
        operator,
    })
}

/// The file of credentials that count; they are issued where there are none.
fn issued(
    directory: &mut Directory,
    holder: &Holder,
    layout: &Layout,
    now: i64,
) -> Result<PathBuf, Failure> {
    let file = directory.file_of(TENANT, holder);
    let known = directory.issued(TENANT)?;
    let counts = known.iter().any(|one| one.is_of(holder) && one.counts(now));
    if counts && file.is_file() {
        return Ok(file);
    }
    let permissions = permissions_of(holder, layout);
    let issue = Issue {
        tenant: TENANT,
        holder,
        permissions: permissions.as_ref(),
        expires_at: None,
        beside: true,
    };
    Ok(directory.issue(&issue, now)?)
}

impl Secure {
    /// Writes the settings with which the command connects, now that the address is known.
    pub(super) fn write_config(&self, url: &str, prefix: &str) -> Result<(), Failure> {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let text = format!(
            "# Written by `concord up --secure`, for `concord --config`.\n[broker]\nservers = {}\ncredentials = {}\n\n\
             [storage]\nprefix = {}\n",
            quoted(url),
            quoted(&self.operator.display().to_string()),
            quoted(prefix)
        );
        std::fs::write(&self.config, text).map_err(|error| unusable(&self.config, &error))
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{} cannot be used: {error}", path.display()))
}
