//! `concord record show`: an agent's credibility, factor by factor.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use concord_domain::aggregates::track_record::{
    TrackRecordMachine, TrackRecordState, credibility_of,
};
use concord_domain::aggregates::watch::{self, WatchMachine};
use concord_domain::rules::canonical::normalise;
use concord_domain::rules::credibility::share_for;
use concord_events::RegimeChanged;
use concord_runtime::service::clock;
use concord_wire::payload::track_record::{Context, Query, Version};
use concord_wire::payload::{Circumstances, Credibility};
use concord_wire::{AgentId, Timestamp, Token};
use serde::Serialize;

use crate::command::record::months::{Month, months};
use crate::command::record::view;
use crate::shared::args::JsonArg;
use crate::shared::circumstances::{CircumstancesArgs, name};
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;

/// Arguments of `concord record show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord record show risk_assessor
  concord record show risk_assessor --domain valuation --version comprehensive --regime bull_low_rates --sector software
  concord record show risk_assessor --domain valuation.revenue --version specialised
  concord record show risk_assessor --json

The score is the product of the factors. It decides a debate only from 15 data points on. Regime and circumstances
count in the comprehensive and the specialised version. What of one opener's cases is held back, so that they do not outweigh
all others, is said below the factors, and how often the agent was right in the last twelve months with observations.")]
pub(crate) struct ShowArgs {
    /// The agent.
    #[arg(value_parser = |text: &str| AgentId::new(text).map_err(|error| error.to_string()))]
    agent: AgentId,
    /// The domain; every domain with observations when absent.
    #[arg(long, value_parser = name)]
    domain: Option<String>,
    /// The version of the formula of credibility.
    #[arg(long, value_enum, default_value_t = VersionArg::Simple)]
    version: VersionArg,
    #[command(flatten)]
    circumstances: CircumstancesArgs,
    #[command(flatten)]
    json: JsonArg,
}

/// The version of the formula of credibility.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum VersionArg {
    /// Accuracy in the domain, weighted by age.
    Simple,
    /// The simple version, adjusted for the regime, the circumstances, the trend, and overrides by people.
    Comprehensive,
    /// The comprehensive version, with a share of what is known of wider domains: of `valuation` for `valuation.revenue`.
    Specialised,
}

impl From<VersionArg> for Version {
    fn from(version: VersionArg) -> Self {
        match version {
            VersionArg::Simple => Self::Simple,
            VersionArg::Comprehensive => Self::Comprehensive,
            VersionArg::Specialised => Self::Specialised,
        }
    }
}

/// The credibility of an agent, as it is printed.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    pub(super) agent_id: AgentId,
    /// The present, from which ages are counted back.
    pub(super) now: Timestamp,
    pub(super) version: Version,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) regime: Option<String>,
    /// The alert that has named the regime, where none was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) regime_of_alert: Option<Token>,
    pub(super) context: Context,
    /// Observations in all domains.
    pub(super) observations: usize,
    /// Older ones that are forgotten.
    pub(super) forgotten: u64,
    pub(super) domains: Vec<InDomain>,
}

/// The credibility in one domain.
#[derive(Debug, Serialize)]
pub(super) struct InDomain {
    pub(super) domain: String,
    pub(super) credibility: Credibility,
    /// How often it was right in each month, the oldest first.
    pub(super) months: Vec<Month>,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &ShowArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    let id = args.agent.token();
    let (record, _) = source.aggregate::<TrackRecordMachine>(&id).await?;
    // In the regime that alerts have named, where none is asked for.
    let (watch, _) = source.aggregate::<WatchMachine>(&watch::id()).await?;
    let present = watch.regime.as_deref();
    let shown = shown(args, &record, present, clock::now())?;
    args.json.print(&shown, view::text)?;
    Ok(0)
}

fn shown(
    args: &ShowArgs,
    record: &TrackRecordState,
    present: Option<&RegimeChanged>,
    now: Timestamp,
) -> Result<Shown, Failure> {
    let agent = &args.agent;
    let domains = domains(record);
    if domains.is_empty() {
        return Err(Failure::failed(format!(
            "nothing is recorded of the agent {agent}; a record begins with the first outcome, ruling or override that \
             shows whether it was right"
        )));
    }
    let asked = match &args.domain {
        None => domains.values().copied().collect(),
        Some(asked) => match domains.get(&normalise(asked)) {
            Some(domain) => vec![*domain],
            None if has_wider(&domains, asked, args.version.into()) => vec![asked.as_str()],
            None => {
                let known = domains.values().copied().collect::<Vec<_>>().join(", ");
                return Err(Failure::failed(format!(
                    "nothing is recorded of the agent {agent} in the domain {asked:?}; its domains are: {known}"
                )));
            }
        },
    };
    let (version, circumstances) = (
        args.version.into(),
        Circumstances::from(args.circumstances.clone()),
    );
    let Circumstances { regime, context } = circumstances;
    let present = present.filter(|_| regime.is_none());
    let regime = regime.or_else(|| present.map(|now| now.regime.clone()));
    let in_domain = |domain: &str| {
        let query = Query {
            now,
            domain: domain.to_owned(),
            regime: regime.clone(),
            context: context.clone(),
        };
        InDomain {
            domain: domain.to_owned(),
            credibility: credibility_of(record, version, &query),
            months: months(record, domain),
        }
    };
    Ok(Shown {
        agent_id: agent.clone(),
        now,
        version,
        regime: regime.clone(),
        regime_of_alert: present.map(|now| now.alert.clone()),
        observations: record.observations().len(),
        forgotten: record.forgotten(),
        domains: asked.into_iter().map(in_domain).collect(),
        context,
    })
}

/// Whether observations of a wider domain count for this one.
fn has_wider(domains: &BTreeMap<String, &str>, asked: &str, version: Version) -> bool {
    let asked = normalise(asked);
    version == Version::Specialised && domains.keys().any(|seen| share_for(&asked, seen).is_some())
}

/// The domains with observations, as they were last written, by their normalised names.
fn domains(record: &TrackRecordState) -> BTreeMap<String, &str> {
    record
        .observations()
        .map(|observation| (normalise(&observation.domain), observation.domain.as_str()))
        .collect()
}
