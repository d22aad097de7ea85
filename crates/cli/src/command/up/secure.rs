//! `concord up --secure`: the local broker in operator mode and under TLS, with credentials for each service.

use std::path::{Path, PathBuf};

use concord_credentials::{Directory, Holder, Issue, Resolver};
use concord_events::topology::Layout;
use concord_installation::{Plan, SERVICES, Tls};
use concord_runtime::service::clock;
use concord_wire::AgentId;

use super::tls;
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
    pub(super) tls: Tls,
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
    let (tls, config) = tls::prepare(&plan.directory.join("tls"))?;
    plan.nats_config.push_str(&config);
    plan.settings.extend([
        "broker.tls_required=true".to_owned(),
        format!("broker.tls_ca={}", tls.authority.display()),
        format!("broker.tls_certificate={}", tls.certificate.display()),
        format!("broker.tls_key={}", tls.key.display()),
    ]);
    plan.tls = Some(tls.clone());
    Ok(Secure {
        tls,
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
        let of_file = |path: &Path| quoted(&path.display().to_string());
        let text = format!(
            "# Written by `concord up --secure`, for `concord --config`.\n[broker]\nservers = {}\ncredentials = {}\n\
             tls_required = true\ntls_ca = {}\ntls_certificate = {}\ntls_key = {}\n\n[storage]\nprefix = {}\n",
            quoted(url),
            of_file(&self.operator),
            of_file(&self.tls.authority),
            of_file(&self.tls.certificate),
            of_file(&self.tls.key),
            quoted(prefix)
        );
        std::fs::write(&self.config, text).map_err(|error| unusable(&self.config, &error))
    }
}

pub(super) fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{} cannot be used: {error}", path.display()))
}
