//! What the adapter's handlers share besides the context of every service.

use std::sync::Arc;

use concord_domain::activation::conversation::WakeMachine;
use concord_runtime::context::ServiceContext;
use concord_runtime::{Aggregates, Ports};

use crate::case_cache::CaseCache;
use crate::metrics::AdapterMetrics;

/// What the adapter's handlers share. Cheap to clone.
#[derive(Clone)]
pub struct AdapterContext<P: Ports> {
    /// What the handlers of every service share.
    pub service: ServiceContext<P>,
    /// The metrics that only the adapter has.
    pub metrics: AdapterMetrics,
    /// The opening events of cases.
    pub cases: Arc<CaseCache<P>>,
    /// The conversations of the installation, as they are stored.
    pub conversations: Arc<Aggregates<WakeMachine, P>>,
}

impl<P: Ports> AdapterContext<P> {
    /// Registers the adapter's metrics. To be called once in a process.
    pub fn new(service: &ServiceContext<P>) -> Self {
        let ports = &service.ports;
        let cache = &service.cache;
        Self {
            metrics: AdapterMetrics::registered(&service.metrics),
            cases: Arc::new(CaseCache::new(ports.clone())),
            conversations: Arc::new(Aggregates::new(ports.clone(), cache)),
            service: service.clone(),
        }
    }
}
