//! The counters of all processes of an installation, added up.

use std::time::Duration;

use super::Installation;
use crate::Error;
use crate::discover::{Instance, instances};

/// The time in which all processes must announce themselves when their counters are read.
const COUNTER_MAX: Duration = Duration::from_secs(5);

impl Installation {
    /// A counter, added up over its labels and over all processes that run; for example `concord_effects_total`.
    pub async fn counter(&self, name: &str) -> Result<u64, Error> {
        let client = self.client().await?;
        let pids: Vec<u32> = self
            .services
            .iter()
            .filter_map(|s| s.process.pid())
            .collect();
        let is_own = |instance: &Instance| instance.pid().is_some_and(|p| pids.contains(&p));
        let all = |found: &[Instance]| found.iter().filter(|i| is_own(i)).count() == pids.len();
        let found = instances(&client, COUNTER_MAX, all)
            .await
            .unwrap_or_default();
        let own: Vec<&Instance> = found.iter().filter(|i| is_own(i)).collect();
        let unread = |why: String| Error::Metrics {
            name: name.to_owned(),
            why,
        };
        if own.len() < pids.len() {
            let (found, of) = (own.len(), pids.len());
            return Err(unread(format!("{found} of {of} processes answer")));
        }
        let mut sum = 0;
        for instance in own {
            sum += instance.counter(name).await.map_err(unread)?;
        }
        Ok(sum)
    }
}
