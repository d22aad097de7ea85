//! What happens outside the adapter.

use concord_wire::subject::Lane;
use concord_wire::{ErrorCode, MessageId};

use super::{Asked, Cause, Cell, Happening, Reply, Request, Said, World};
use crate::faults::Faults;
use crate::hosted::setup::{Kind, Mood, Outcome};

/// How long the coordinator waits for the answer to a request that names no deadline.
const REQUEST_MS: u64 = 30_000;
/// Somebody asks this often when nothing goes wrong any more.
const CALM_GAP_MS: (u64, u64) = (200, 600);

impl World {
    pub(crate) fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Ask => self.ask_some(),
            Happening::Lapse { sequence, lease } => {
                if self
                    .asked
                    .get(sequence)
                    .is_some_and(|asked| asked.lease == Some(lease))
                {
                    self.plan(0, Happening::Offer { sequence });
                }
            }
            Happening::Arrive(request, cell) => self.arrive(request, cell),
            Happening::Reach { call, cell } => self.reach(call, &cell),
            Happening::TimeOver { sequence } => self.time_over(sequence),
            Happening::Mood => self.change_mood(),
            Happening::Second => self.second(),
            Happening::Calm => {
                self.note(|| "nothing goes wrong from here on".into());
                self.faults = Faults::none();
                self.calm_since = Some(self.now);
                self.mood = Mood::Well;
            }
            Happening::Close => self.closed_at = Some(self.now),
            // These concern processes.
            Happening::Offer { .. }
            | Happening::Deliver { .. }
            | Happening::Progress { .. }
            | Happening::Answer(..)
            | Happening::GiveUp(_)
            | Happening::Crash(_)
            | Happening::Restart { .. } => {}
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
        self.plan(gap, Happening::Ask);
    }

    fn ask(&mut self) {
        let sequence = self.asked.len();
        let Ok(id) = MessageId::new(format!("m-{sequence}")) else {
            return;
        };
        let lane = if self.random.chance(0.2) {
            Lane::Urgent
        } else {
            Lane::Normal
        };
        let within = self.random.between(50, self.setup.timeout_ms * 6);
        let stated = self.random.chance(0.5).then_some(self.now + within);
        let of_agent = self.random.chance(0.5);
        let ended_at = of_agent.then(|| stated.unwrap_or(self.now + REQUEST_MS));
        // Who is asked by an agent is told until when, whether that was stated or not.
        let deadline = ended_at.or(stated);
        let asked = Asked {
            id,
            lane,
            deadline,
            ended_at,
            deliveries: 0,
            lease: Some(0),
        };
        self.note(|| format!("{sequence} is asked: {asked:?}"));
        self.asked.push(asked);
        self.hosted().asked += 1;
        if let Some(at) = ended_at {
            self.plan(at - self.now, Happening::TimeOver { sequence });
        }
        let delay = self.delay();
        self.plan(delay, Happening::Offer { sequence });
    }

    /// A request has arrived: it waits while the broker is away, else it is done and its answer sent.
    fn arrive(&mut self, request: Request, cell: Cell) {
        let away = self.away_ms();
        if away > 0 {
            let after = self.delay();
            return self.plan(away + after, Happening::Arrive(request, cell));
        }
        match request {
            Request::Say(id, said) => self.store(id, said),
            Request::Acknowledge { sequence } => {
                if let Some(asked) = self.asked.get_mut(sequence) {
                    asked.lease = None;
                }
            }
            Request::PutBack { sequence, wait_ms } => {
                self.renew(sequence);
                self.plan(wait_ms, Happening::Offer { sequence });
            }
        }
        let lost = self.faults.lost_answer;
        if self.random.chance(lost) {
            self.counts.lost_answers += 1;
            return;
        }
        let delay = self.delay();
        self.plan(delay, Happening::Answer(cell, Reply::Done));
    }

    /// What is said first stands.
    fn store(&mut self, id: MessageId, said: Said) {
        if self
            .ids
            .get(&id)
            .is_some_and(|at| self.now.saturating_sub(*at) < self.window_ms)
        {
            self.hosted().repeated += 1;
            return;
        }
        self.note(|| format!("{} is told: {:?}", said.sequence, said.error));
        self.ids.insert(id, self.now);
        self.said.push(Said {
            at: self.now,
            ..said
        });
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
            Happening::Answer(cell.clone(), Reply::Called(outcome, after)),
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
        self.plan(lasts, Happening::Mood);
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
        self.plan(1_000, Happening::Second);
    }
}
