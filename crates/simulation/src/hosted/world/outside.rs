//! What happens outside the adapter.

use concord_domain::aggregates::request::admissibility;
use concord_wire::subject::Service;
use concord_wire::{AgentId, Envelope, ErrorCode, Timestamp, payload};
use serde_json::json;

use super::{Action, Asked, Cause, Cell, Reply, Request, Said, World};
use crate::faults::Faults;
use crate::hosted::setup::{AGENT, Kind, Mood, Outcome};
use crate::world::instant;

/// The agents that ask.
const AGENTS: [&str; 6] = ["bob", "cleo", "dan", "eve", "fay", "gus"];
/// Somebody asks this often when nothing goes wrong any more.
const CALM_GAP_MS: (u64, u64) = (200, 600);

impl World {
    pub(crate) fn act(&mut self, action: Action) {
        match action {
            Action::Ask => self.ask_some(),
            Action::Lapse { sequence, lease } => {
                if self
                    .asked
                    .get(sequence)
                    .is_some_and(|asked| asked.lease == Some(lease))
                {
                    self.plan(0, Action::Offer { sequence });
                }
            }
            Action::Arrive(request, cell) => self.arrive(request, cell),
            Action::Reach { call, cell } => self.reach(call, &cell),
            Action::TimeOver { sequence } => self.time_over(sequence),
            Action::Mood => self.change_mood(),
            Action::Second => self.second(),
            Action::Calm => {
                self.note(|| "nothing goes wrong from here on".into());
                self.faults = Faults::none();
                self.calm_since = Some(self.now);
                self.mood = Mood::Well;
            }
            Action::Close => self.closed_at = Some(self.now),
            // These concern processes.
            Action::Offer { .. }
            | Action::Deliver { .. }
            | Action::Progress { .. }
            | Action::Answer(..)
            | Action::GiveUp(_)
            | Action::Crash(_)
            | Action::Restart { .. } => {}
        }
    }

    fn ask_some(&mut self) {
        if self.closed_at.is_some() {
            return;
        }
        let calm = self.calm_since.is_some();
        let many = if !calm && self.random.chance(0.15) {
            self.random.between(2, 8)
        } else {
            1
        };
        for _ in 0..many {
            self.ask();
        }
        let (least, most) = if calm {
            CALM_GAP_MS
        } else {
            (0, self.setup.gap_ms_max)
        };
        let gap = self.random.between(least, most);
        self.plan(gap, Action::Ask);
    }

    fn ask(&mut self) {
        let place = self.asked.len();
        let critical = self.random.chance(0.2);
        let within = self.random.between(50, self.setup.timeout_ms * 6);
        let stated = self.random.chance(0.5).then_some(self.now + within);
        let of_agent = self.random.chance(0.5);
        let deadline = stated.map(instant);
        let sender = if of_agent {
            let agents = AGENTS.map(AgentId::new);
            self.random.pick(&agents).cloned().and_then(Result::ok)
        } else {
            let services = [Service::Coordinator, Service::DebateFacilitator];
            self.random
                .pick(&services)
                .map(|service| service.agent_id())
        };
        let now = self.clock();
        let envelope = sender.and_then(|sender| message(place, &sender, critical, deadline, now));
        let Some(envelope) = envelope else {
            debug_assert!(false, "a message to the agent cannot be written");
            return;
        };
        let stored_at = self.clock();
        // The coordinator ends a request between agents, whether its time was stated or not.
        let request = envelope.payload::<payload::Request>().ok();
        let request = request.filter(|_| of_agent);
        let due = request.map(|request| admissibility::due(&envelope, &request, stored_at));
        let ended_at = due.map(|due| self.now + due.millis_since(stored_at));
        let asked = Asked {
            sequence: self.next_sequence(),
            envelope,
            stored_at,
            ended_at,
            deliveries: 0,
            lease: Some(0),
        };
        self.note(|| format!("{place} is asked: {:?}", asked.envelope));
        self.asked.push(asked);
        self.hosted().asked += 1;
        if let Some(at) = ended_at {
            self.plan(at - self.now, Action::TimeOver { sequence: place });
        }
        let delay = self.delay();
        self.plan(delay, Action::Offer { sequence: place });
    }

    /// A request has arrived: it waits while the broker is away, else it is done and its answer sent.
    fn arrive(&mut self, request: Request, cell: Cell) {
        let away = self.away_ms();
        if away > 0 {
            let after = self.delay();
            return self.plan(away + after, Action::Arrive(request, cell));
        }
        let reply = match request {
            Request::Publish(publication) => Reply::Published {
                first: self.store(*publication),
            },
            Request::NextMessage {
                lane,
                filter,
                start,
            } => Reply::Found(self.next_message(lane, &filter, start)),
            Request::Acknowledge { sequence } => {
                if let Some(asked) = self.asked.get_mut(sequence) {
                    asked.lease = None;
                }
                Reply::Done
            }
            Request::PutBack { sequence, wait_ms } => {
                self.renew(sequence);
                self.plan(wait_ms, Action::Offer { sequence });
                Reply::Done
            }
        };
        let lost = self.faults.lost_answer;
        if self.random.chance(lost) {
            self.counts.lost_answers += 1;
            return;
        }
        let delay = self.delay();
        self.plan(delay, Action::Answer(cell, reply));
    }

    /// Requests between agents are ended by the coordinator when nobody has answered them in time.
    fn time_over(&mut self, sequence: usize) {
        if !self.said.iter().any(|said| said.sequence == sequence) {
            self.note(|| format!("{sequence} is ended by the coordinator"));
            let error = Some((ErrorCode::Timeout, Cause::Coordinator));
            self.said.push(Said {
                sequence,
                error,
                sent: self.now,
                at: self.now,
            });
        }
    }

    /// A call has reached the endpoint, unless it is given up already.
    fn reach(&mut self, call: u64, cell: &Cell) {
        let (timeout, kind) = (self.setup.timeout_ms, self.kind());
        // Even a bad server answers now and then.
        let mood = if self.random.chance(0.12) {
            Mood::Well
        } else {
            self.mood
        };
        let quick = self.random.between(1, timeout / 4);
        let (asks, patience) = (self.random.chance(0.5), self.random.between(0, 1_500));
        let patience = (asks && kind != Kind::Program).then_some(patience);
        let Some(called) = self.calls.get_mut(&call) else {
            return;
        };
        if called.abandoned {
            return;
        }
        if !matches!(mood, Mood::Unreachable | Mood::Unroutable) {
            called.taken = Some(mood);
        }
        let (in_ms, outcome, after) = match mood {
            Mood::Well => (quick, Outcome::Said, None),
            Mood::Slow => (timeout + quick, Outcome::Said, None),
            Mood::Silent | Mood::Unroutable => return,
            Mood::Unreachable => (0, Outcome::Unreachable, None),
            Mood::Cut => (quick, Outcome::Cut, None),
            Mood::Status(status @ (429 | 503)) => (quick, Outcome::Status(status), patience),
            Mood::Status(status) => (quick, Outcome::Status(status), None),
            Mood::Garbage => (quick, Outcome::Garbage, None),
            Mood::Rambling => (quick, Outcome::Rambled, None),
        };
        self.plan(
            in_ms,
            Action::Answer(cell.clone(), Reply::Called(outcome, after)),
        );
    }

    fn change_mood(&mut self) {
        if self.calm_since.is_some() {
            return;
        }
        let kind = self.kind();
        self.mood = Mood::draw(&mut self.random, kind);
        let mood = self.mood;
        self.note(|| format!("the endpoint: {mood:?}"));
        let lasts = self.random.between(500, 10_000);
        self.plan(lasts, Action::Mood);
    }

    fn second(&mut self) {
        if self.calm_since.is_some() {
            return;
        }
        let (pause, longest) = (self.faults.pause, self.faults.pause_ms_max);
        if self.random.chance(pause) {
            let away = self.random.between(1, longest.max(1));
            self.away_until = self.now + away;
            self.counts.pauses += 1;
            self.note(|| format!("the broker is away for {away} ms"));
        }
        self.plan(1_000, Action::Second);
    }
}

/// A request of an agent, or a question of a service.
fn message(
    place: usize,
    sender: &AgentId,
    critical: bool,
    deadline: Option<Timestamp>,
    now: Timestamp,
) -> Option<Envelope> {
    let (kind, payload) = if Service::parse(sender.as_str()).is_ok() {
        ("question", json!({ "text": "Is it so?" }))
    } else {
        ("request", json!({ "action": "assess", "parameters": {} }))
    };
    let envelope = json!({
        "message_id": format!("m-{place}"), "timestamp": now, "from_agent": sender, "to_agent": AGENT,
        "message_type": kind, "priority": if critical { "critical" } else { "normal" },
        "requires_response": true, "deadline": deadline, "payload": payload,
    });
    serde_json::from_value(envelope).ok()
}
