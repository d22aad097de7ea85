//! The circumstances by which track records are weighed, on the command line.

use clap::Args;
use concord_domain::rules::canonical::normalise;
use concord_wire::payload::Circumstances;
use concord_wire::payload::track_record::Context;

/// The circumstances of what is judged.
#[derive(Debug, Clone, Args)]
pub(crate) struct CircumstancesArgs {
    /// The regime, for example `bull_low_rates`.
    #[arg(long, value_parser = name)]
    regime: Option<String>,
    /// Sector of the economy, for example `software`.
    #[arg(long, value_parser = name)]
    sector: Option<String>,
    /// What is judged, for example `price_target`.
    #[arg(long, value_parser = name)]
    metric: Option<String>,
    /// How far ahead, for example `1y`.
    #[arg(long, value_parser = name)]
    horizon: Option<String>,
    /// Size of what is judged, for example `large_cap`.
    #[arg(long, value_parser = name)]
    size: Option<String>,
    /// Stage of its life, for example `growth`.
    #[arg(long, value_parser = name)]
    stage: Option<String>,
}

impl From<CircumstancesArgs> for Circumstances {
    fn from(args: CircumstancesArgs) -> Self {
        let CircumstancesArgs {
            regime,
            sector,
            metric,
            horizon,
            size,
            stage,
        } = args;
        Self {
            regime,
            context: Context {
                sector,
                metric,
                horizon,
                size,
                stage,
            },
        }
    }
}

/// Reads a name from the command line; it must have a letter or digit.
pub(crate) fn name(text: &str) -> Result<String, String> {
    if normalise(text).is_empty() {
        Err("a name is expected".to_owned())
    } else {
        Ok(text.to_owned())
    }
}
