//! FIPA's contract net: a call for proposals, bids, the award to the best of them, and the next best when the winner fails.
//!
//! The score of a bid is a weighted sum; see [`BidWeights`]. Of equal bids the one of the agent that is first by its id wins.

use concord_wire::AgentId;
use concord_wire::ErrorCode;
use concord_wire::payload::{Bid, BidWeights};

use super::{Failure, Next, Progress, TaskStrategy, all_failed, in_part, one_in_time};
use crate::aggregates::task::{Part, Stage};

pub(super) struct ContractNet;

impl TaskStrategy for ContractNet {
    fn after(&self, progress: &Progress<'_>) -> Next {
        if let Some((agent, result)) = progress.results().next() {
            return Next::Complete {
                result: result.clone(),
                by: vec![agent.clone()],
                partial: false,
            };
        }
        let is_called = |part: &Part| part.stage == Stage::Called;
        let waits = progress.bids_open && progress.parts.values().any(is_called);
        if progress.is_active() || waits {
            return Next::Wait;
        }
        match best(progress) {
            Some(agent) => Next::Ask(agent.clone()),
            None if progress.parts.values().all(|part| part.bid.is_none()) => Next::Fail(Failure {
                code: ErrorCode::AgentUnavailable,
                reason: "no_bids",
                why: format!("Nobody has made a bid: {}.", progress.reasons()),
                advice: "Wait longer for bids (bids_ms), or call other agents.",
            }),
            None => in_part(progress).unwrap_or_else(|| Next::Fail(all_failed(progress))),
        }
    }

    fn at_deadline(&self, progress: &Progress<'_>) -> Next {
        one_in_time(progress)
    }

    fn asks_one(&self) -> bool {
        true
    }

    fn calls_for_proposals(&self) -> bool {
        true
    }
}

/// The bidder with the best bid among those that were not awarded yet.
fn best<'a>(progress: &Progress<'a>) -> Option<&'a AgentId> {
    let bids = progress.parts.iter();
    let bids = bids.filter(|(_, part)| part.stage == Stage::Bidding);
    let bids: Vec<(&AgentId, &(Bid, f64))> = bids
        .filter_map(|(agent, part)| Some((agent, part.bid.as_ref()?)))
        .collect();
    let lowest = |of: fn(&Bid) -> f64| {
        bids.iter()
            .map(|(_, (bid, _))| of(bid))
            .fold(f64::INFINITY, f64::min)
    };
    let (price, time) = (lowest(price_of), lowest(time_of));
    let scored = bids.iter().map(|(agent, (bid, reliability))| {
        let weights = &progress.terms.weights;
        (*agent, score(weights, bid, *reliability, (price, time)))
    });
    // The last of equals is the first by its id.
    let best = scored.rev().max_by(|a, b| a.1.total_cmp(&b.1));
    best.map(|(agent, _)| agent)
}

fn price_of(bid: &Bid) -> f64 {
    bid.price
}

fn time_of(bid: &Bid) -> f64 {
    std::time::Duration::from_millis(bid.time_ms).as_secs_f64()
}

/// The score of a bid, 0 to 1, given the lowest price and the shortest time of all.
fn score(weights: &BidWeights, bid: &Bid, reliability: f64, (price, time): (f64, f64)) -> f64 {
    let beside = |lowest: f64, own: f64| if own <= lowest { 1.0 } else { lowest / own };
    let parts = [
        (weights.price, beside(price, price_of(bid))),
        (weights.time, beside(time, time_of(bid))),
        (weights.confidence, bid.confidence),
        (weights.capability, bid.capability),
        (weights.reliability, reliability),
    ];
    let weight: f64 = parts.iter().map(|(weight, _)| weight).sum();
    let sum: f64 = parts.iter().map(|(weight, part)| weight * part).sum();
    sum / weight
}
