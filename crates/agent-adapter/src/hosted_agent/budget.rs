//! Budgets of providers: how many requests and tokens all replicas together may use in a minute (`docs/adr/0026`).
//!
//! A replica takes leases from a record that all replicas share: the last message on one subject of the shared memory, which
//! is replaced under an optimistic lock. While the broker is away nothing is granted and nothing is called.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concord_runtime::broker::shared_value::SharedValue;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::{Broker, service::clock};
use concord_wire::subject::Service;
use concord_wire::{ErrorCode, Token};
use tokio::time::Instant;

use crate::hosted_agent::failure::Failure;
use crate::hosted_agent::timing::Jitter;
use crate::metrics::{AdapterMetrics, BudgetLabels};
use crate::settings::BudgetSettings;

mod lease;
pub(crate) mod window;

use lease::{Charge, Lease};
use window::{Amount, GrantDecision, Granted, Limits};

/// Pause after a lost race or a broker that did not answer, at most.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The budgets of all providers.
pub(crate) type Budgets = BTreeMap<Token, Arc<Budget>>;

/// One provider's budget.
pub(crate) struct Budget {
    metrics: AdapterMetrics,
    provider: Token,
    register: SharedValue,
    limits: Limits,
    /// Held by the caller that renews the lease, so that the others wait in their order.
    renewal: tokio::sync::Mutex<()>,
    lease: Mutex<Lease>,
    jitter: Jitter,
}

/// The outcome of a call that its budget does not allow, in traces.
const OVER_BUDGET: &str = "over_budget";

/// The budgets in the settings.
pub(crate) fn budgets(
    broker: &Broker,
    metrics: &AdapterMetrics,
    settings: &BTreeMap<Token, BudgetSettings>,
) -> Budgets {
    let budget = |(provider, settings): (&Token, &BudgetSettings)| {
        let budget = Budget::new(broker, metrics.clone(), provider, *settings);
        (provider.clone(), Arc::new(budget))
    };
    settings.iter().map(budget).collect()
}

impl Budget {
    fn new(
        broker: &Broker,
        metrics: AdapterMetrics,
        provider: &Token,
        settings: BudgetSettings,
    ) -> Self {
        // The name's length was checked with the settings.
        let topic = Token::new(format!("budget-{provider}"))
            .unwrap_or_else(|_| Token::derived(provider.as_str()));
        Self {
            metrics,
            provider: provider.clone(),
            register: SharedValue::new(broker, Service::AgentAdapter.agent_id(), topic),
            limits: Limits {
                requests: settings.requests_per_minute,
                tokens: settings.tokens_per_minute,
            },
            renewal: tokio::sync::Mutex::default(),
            lease: Mutex::default(),
            jitter: Jitter::new(uuid::Uuid::now_v7().to_string()),
        }
    }

    /// Waits until one request of so many tokens may be made, no longer than `within`.
    pub(crate) async fn take(&self, tokens: u64, within: Duration) -> Result<Charge, Failure> {
        let until = Instant::now() + within;
        let taken = match tokio::time::timeout_at(until, self.renewal.lock()).await {
            Ok(_renewal) => self.take_in_order(tokens, until).await,
            Err(_) => Err((self.exhausted("others wait before it"), "late")),
        };
        let result = taken
            .as_ref()
            .map_or_else(|(_, result)| *result, |_| "granted");
        let labels = BudgetLabels {
            provider: self.provider.to_string(),
            result,
        };
        self.metrics.budgets.get_or_create(&labels).inc();
        taken.map_err(|(failure, _)| failure)
    }

    async fn take_in_order(
        &self,
        tokens: u64,
        until: Instant,
    ) -> Result<Charge, (Failure, &'static str)> {
        loop {
            let now = clock::now().unix_millis();
            let tokens = if self.limits.tokens.is_some() {
                tokens
            } else {
                0
            };
            let wish = Amount {
                requests: 1,
                tokens,
            };
            if let Some(charge) = self.lease().use_of(now, self.limits, wish) {
                return Ok(charge);
            }
            let renewed = tokio::time::timeout_at(until, self.renew(now, wish)).await;
            let wait = match renewed.unwrap_or(Err(RenewError::Silent)) {
                Ok(Renewed::Now { .. }) => continue,
                Ok(Renewed::Never) => {
                    let why = format!(
                        "one call of {tokens} tokens is more than {} allows in a minute",
                        self.name()
                    );
                    return Err((
                        Failure::local(ErrorCode::CapacityExceeded, why).with_outcome(OVER_BUDGET),
                        "never",
                    ));
                }
                Ok(Renewed::At(at)) => {
                    let wait = Duration::from_millis(u64::try_from(at - now).unwrap_or(0));
                    if Instant::now() + wait > until {
                        let why = format!("there is no room for {} s", wait.as_secs() + 1);
                        return Err((self.exhausted(&why), "late"));
                    }
                    wait
                }
                Ok(Renewed::Again) => Duration::ZERO,
                Err(error) => {
                    let error = ErrorChain(&error).to_string();
                    tracing::warn!(provider = %self.provider, error, "A budget could not be asked; nothing is called.");
                    if Instant::now() + PAUSE_MAX > until {
                        let why = format!(
                            "{} cannot be asked, for the broker does not answer",
                            self.name()
                        );
                        return Err((Failure::local(ErrorCode::AgentUnavailable, why), "away"));
                    }
                    PAUSE_MAX
                }
            };
            // Who has lost a race asks again almost at once: who has won it does, too.
            let apart = if wait.is_zero() {
                PAUSE_MAX / 100
            } else {
                PAUSE_MAX / 5
            };
            tokio::time::sleep(wait + self.jitter.up_to(apart)).await;
        }
    }

    async fn renew(&self, now: i64, wish: Amount) -> Result<Renewed, RenewError> {
        let held = self.register.read().await?;
        let granted = held.as_ref().map(|held| self.granted(&held.value));
        let granted = granted.unwrap_or_default();
        // Of what is owed, only as much as fits into a minute beside the wish can be asked for.
        let room = self
            .limits
            .tokens
            .map_or(0, |most| most.saturating_sub(wish.tokens));
        let owed = self.lease().owed.min(room);
        let whole = Amount {
            tokens: wish.tokens + owed,
            ..wish
        };
        let unused = self.lease().give_up();
        let rest = granted.without(&unused);
        let (stored, renewed) = match rest.grant(now, self.limits, whole) {
            GrantDecision::Never => (None, Renewed::Never),
            // Others may have room for what is given back.
            GrantDecision::Wait(at) => ((rest != granted).then_some(rest), Renewed::At(at)),
            GrantDecision::Lease {
                amount,
                until,
                noted,
                granted,
            } => (
                Some(granted),
                Renewed::Now {
                    amount,
                    until,
                    noted,
                    owed,
                },
            ),
        };
        let Some(stored) = stored else {
            self.lease().keep(unused);
            return Ok(renewed);
        };
        // Where it is not known whether it was stored, nothing is given back again: the provider is then asked for less than
        // it allows.
        if !self
            .register
            .replace(held.as_ref(), serde_json::to_vec(&stored)?.into())
            .await?
        {
            self.lease().keep(unused);
            return Ok(Renewed::Again);
        }
        if let Renewed::Now {
            amount,
            until,
            noted,
            owed,
        } = renewed
        {
            self.lease().renew(amount, until, noted, owed);
        }
        Ok(renewed)
    }

    /// What is granted, as it is stored. What cannot be read is no record, as when an agent has had the broker store an acknowledgement there
    /// (record 35): it is begun anew, since nothing would ever be called again.
    fn granted(&self, stored: &[u8]) -> Granted {
        serde_json::from_slice(stored).unwrap_or_else(|error| {
            tracing::warn!(provider = %self.provider, %error, "What stands for a budget is none; it is begun anew.");
            Granted::default()
        })
    }

    /// Corrects the lease by the tokens that a call has really used.
    pub(crate) fn settle(&self, charge: Charge, used: u64) {
        if self.limits.tokens.is_some() {
            self.lease().settle(charge, used);
        }
    }

    fn lease(&self) -> MutexGuard<'_, Lease> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name(&self) -> String {
        format!("the budget {}", self.provider)
    }

    fn exhausted(&self, why: &str) -> Failure {
        let why = format!("{} is used up until after its deadline: {why}", self.name());
        Failure::local(ErrorCode::CapacityExceeded, why).with_outcome(OVER_BUDGET)
    }
}

#[derive(Clone, Copy)]
enum Renewed {
    /// A lease, some of whose tokens are for what was owed.
    Now {
        amount: Amount,
        until: i64,
        noted: i64,
        owed: u64,
    },
    At(i64),
    Again,
    Never,
}

/// Why a lease could not be renewed.
#[derive(Debug, thiserror::Error)]
enum RenewError {
    #[error("the shared value cannot be used")]
    Register(#[from] concord_runtime::broker::Unavailable),
    #[error("the broker did not answer in time")]
    Silent,
    #[error("the shared value cannot be written")]
    Unwritable(#[from] serde_json::Error),
}

#[cfg(test)]
mod tests;
