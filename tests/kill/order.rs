//! In which order an agent is told things within one case.
//!
//! What follows from events of one name is published by a consumer of their own (record 4), side by side with what follows from others, by
//! whichever process. So where nothing waits for the other, no order is promised, within one aggregate either: an answer that is passed on
//! may come behind the next question, and the end of a debate behind the decision of its case. What waits for something comes after it,
//! whatever is restarted meanwhile: the questions after the task, each round after the one before, the end of a debate after its
//! questions, and the decision after all questions. Nothing comes again.

use std::collections::{BTreeMap, BTreeSet};

use async_nats::{Client, Subscriber};
use concord_domain::effect::source_of;
use concord_events::topology::StreamKind;
use concord_testkit::stored;
use futures::StreamExt;
use serde_json::Value;

use crate::kill::events::text;

/// What services say to agents, and what agents say.
const SAID: &str = "concord.v1.msg.>";

/// A message that services have said in a case.
#[derive(Debug, Clone)]
struct Told {
    /// Its type; of a notification what has happened.
    what: String,
    id: String,
}

impl Told {
    fn new(body: &Value) -> Self {
        let payload = &body["payload"];
        let what = match text(&body["message_type"]) {
            "notification" => &payload["event"],
            _ => &body["message_type"],
        };
        Self {
            what: text(what).to_owned(),
            id: text(&body["message_id"]).to_owned(),
        }
    }

    fn is(&self, what: &str) -> bool {
        self.what == what
    }

    /// The aggregate whose event it follows from, and the sequence of that event.
    fn source(&self) -> (&str, u64) {
        source_of(&self.id).unwrap_or_else(|| panic!("{} names no event", self.id))
    }
}

/// What each of these agents was told in each case, in order.
#[derive(Default)]
pub(crate) struct Record(BTreeMap<(String, &'static str), Vec<Told>>);

impl Record {
    fn add(&mut self, agents: &[&'static str], subject: &str, body: &Value) {
        let named: Vec<&str> = subject.split('.').skip(3).collect();
        let [case, _, to, _] = named[..] else {
            panic!("{subject} is no subject of a message")
        };
        // What agents say names no event, and who comes and goes is told in no case.
        if case == "_" || source_of(text(&body["message_id"])).is_none() {
            return;
        }
        for agent in agents
            .iter()
            .filter(|agent| [**agent, "_all"].contains(&to))
        {
            let told = self.0.entry((case.to_owned(), agent)).or_default();
            told.push(Told::new(body));
        }
    }

    /// As the stream has it.
    pub(crate) async fn stored(client: &Client, agents: &[&'static str]) -> Self {
        let mut record = Self::default();
        let all = stored(client, StreamKind::Messages, SAID).await;
        for message in all.expect("the stream can be read") {
            record.add(agents, &message.subject, &message.json());
        }
        record
    }

    /// As a subscription has it that was made by [`subscribe`]. What was published again is heard again, and counts when it came first.
    pub(crate) async fn heard(
        client: &Client,
        mut subscription: Subscriber,
        agents: &[&'static str],
    ) -> Self {
        client.flush().await.expect("the broker answers");
        // What has come until now can still be read.
        subscription.unsubscribe().await.expect("it ends");
        let (mut record, mut before) = (Self::default(), BTreeSet::new());
        while let Some(message) = subscription.next().await {
            let body: Value = serde_json::from_slice(&message.payload).expect("JSON");
            if before.insert((message.subject.clone(), body["message_id"].to_string())) {
                record.add(agents, &message.subject, &body);
            }
        }
        record
    }

    /// Checks that each agent was told in each of so many cases what the other record has, in an order that is promised.
    pub(crate) fn check(&self, cases: usize, agents: usize, other: &Self) {
        assert_eq!(self.0.len(), cases * agents);
        let mut questions = 0;
        for (whose, told) in &self.0 {
            assert_eq!(disorder(told), None, "{whose:?}: {told:#?}");
            let ids = |told: &[Told]| {
                told.iter()
                    .map(|one| one.id.clone())
                    .collect::<BTreeSet<_>>()
            };
            assert_eq!(ids(told), ids(&other.0[whose]), "{whose:?}");
            assert_eq!(
                ids(told).len(),
                told.len(),
                "{whose:?} was told something twice"
            );
            questions += told.iter().filter(|one| one.is("question")).count();
        }
        assert!(questions > cases, "only {questions} questions");
    }
}

/// Hears everything that is said from now on, as who is told does.
pub(crate) async fn subscribe(client: &Client) -> Subscriber {
    let subscription = client.subscribe(SAID).await.expect("a subscription");
    client.flush().await.expect("the broker has it");
    subscription
}

/// What was not told in an order that is promised.
fn disorder(told: &[Told]) -> Option<String> {
    let places = |what| {
        let all = told.iter().enumerate();
        let places = all.filter(move |(_, one)| one.is(what));
        places.map(|(place, _)| place).collect::<Vec<_>>()
    };
    if places("task_assignment") != [0] {
        return Some("not one task, and that first".to_owned());
    }
    let (decided, last_question) = (places("case_decided"), places("question").pop());
    if decided.len() != 1 || last_question > decided.first().copied() {
        return Some("not one decision, and that after all questions".to_owned());
    }
    let mut debates = BTreeMap::new();
    for one in told {
        if !one.is("question") && !one.is("debate_resolved") {
            continue;
        }
        let (debate, sequence) = one.source();
        let before = debates.insert(debate, sequence);
        if before >= Some(sequence) {
            return Some(format!("{debate} went back to {sequence}"));
        }
    }
    None
}

/// What is told too early, too late, or again is found.
#[test]
fn what_is_told_out_of_order_is_found() {
    let one = |what: &str, id: &str| Told {
        what: what.to_owned(),
        id: id.to_owned(),
    };
    let told = [
        one("task_assignment", "case-1-1-1"),
        one("question", "d-7-0"),
        one("question", "d-9-0"),
        one("debate_resolved", "d-12-0"),
        one("case_decided", "case-1-13-0"),
    ];
    assert_eq!(disorder(&told), None);
    // Neither waits for the other.
    let (mut either, last) = (told.to_vec(), told.len() - 1);
    either.swap(last - 1, last);
    assert_eq!(disorder(&either), None);
    for (from, to) in [(0, 1), (1, 2), (2, 3), (1, last)] {
        let mut moved = told.to_vec();
        let late = moved.remove(from);
        moved.insert(to, late);
        assert!(disorder(&moved).is_some(), "{moved:#?}");
    }
    for (place, again) in told.iter().enumerate() {
        let mut told_again = told.to_vec();
        told_again.push(again.clone());
        assert!(disorder(&told_again).is_some(), "{place}");
    }
}
