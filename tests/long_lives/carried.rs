//! Aggregates whose events carry the state: whoever knows nothing of them begins with the last one, however old they are.

use concord_domain::activation::conversation::{DecidedMessage, WakeInput, WakeMachine};
use concord_domain::activation::{Decisions, WINDOW_MAX};
use concord_domain::aggregates::agent::{AgentInput, AgentMachine};
use concord_domain::aggregates::commitment::{
    CommitmentInput, CommitmentMachine, ReceivedCommitment,
};
use concord_domain::machine::CARRY_EVERY;
use concord_events::{Heard, LeaseBounds, OpenerEvent, Remembered};
use concord_wire::Recipient;
use concord_wire::payload::{AgentStatus, Card, Commitment, CommitmentAct};
use serde_json::json;

use super::*;

/// Stores hundreds of events of an aggregate, and loads it in processes that know none, or few: `most` events at most are read.
async fn is_loaded_from_its_last_state<M: Machine>(
    id: &'static str,
    most: usize,
    input: impl Fn(u64) -> M::Input,
) {
    let broker = TestBroker::start().await;
    let life = Life::<M, _> {
        store: event_store(&broker).await,
        id: Token::fixed(id),
        input,
        machine: PhantomData,
    };
    let (busy, idle) = (life.process(), life.process());
    for step in 0..EVENTS {
        life.append(&busy, step).await;
        if step == 2 {
            life.load(&idle).await;
        }
    }
    let known = life.load(&busy).await;
    for other in [&idle, &life.process()] {
        let found = life.load(other).await;
        assert_eq!(found.state, known.state);
        assert_eq!(found.named(), known.named());
    }
    let form = M::CARRY.as_ref().map(|carry| carry.form);
    for (form, range) in [
        (form, 1..=most),
        // Whoever does not know the form reads them all.
        (Some(77), EVENTS as usize..=EVENTS as usize),
    ] {
        let since = Since { after: 0, form };
        let loaded = life.store.load(&life.id, since, Consistency::Any).await;
        let records: Vec<StoredEvent<M::Event>> = loaded.unwrap().records;
        assert!(range.contains(&records.len()), "{}", records.len());
    }
    // Processes that know nothing, or little, go on from there.
    life.append(&life.process(), EVENTS).await;
    life.append(&idle, EVENTS + 1).await;
    life.append(&busy, EVENTS + 2).await;
    let events = life.events_after(0, Consistency::Leader).await;
    assert_eq!(events.len() as u64, EVENTS + 3);
    assert_eq!(replay::rebuild::<M>(&events).1, []);
    let longest = events.iter().map(|event| event.meta.earlier.len()).max();
    assert_eq!(longest, Some(most));
}

#[tokio::test]
async fn an_opener_of_hundreds_of_cases_is_loaded_from_its_last_state() {
    is_loaded_from_its_last_state::<OpenerMachine>("olga", CARRY_EVERY, opened).await;
}

/// Its status changes before and after each task.
#[tokio::test]
async fn an_agent_of_hundreds_of_tasks_is_loaded_from_its_last_state() {
    let agent = AgentId::fixed("ada");
    is_loaded_from_its_last_state::<AgentMachine>("ada", CARRY_EVERY, |step| match step {
        0 => AgentInput::Register {
            card: Box::new(Card::new(agent.clone())),
            by: agent.clone(),
            request_id: None,
            must_exist: false,
        },
        step => AgentInput::Status {
            agent_id: agent.clone(),
            status: match step.is_multiple_of(2) {
                true => AgentStatus::Available,
                false => AgentStatus::Busy,
            },
            why: String::new(),
        },
    })
    .await;
}

/// The messages that it remembers take more room than a few events.
#[tokio::test]
async fn a_commitment_that_is_renewed_for_hours_is_loaded_from_its_last_state() {
    let said = |step| ReceivedCommitment {
        heard: Heard {
            agent_id: AgentId::fixed("ada"),
            message_id: MessageId::new(format!("m-{step}")).unwrap(),
            digest: format!("{step:064x}"),
        },
        case_id: None,
        said: Commitment {
            act: CommitmentAct::Commit,
            resource: "build".into(),
            lease_ms: None,
            why: String::new(),
        },
        bounds: LeaseBounds::default(),
    };
    is_loaded_from_its_last_state::<CommitmentMachine>("c-1", 2 * CARRY_EVERY, |step| {
        CommitmentInput::Said(Box::new(said(step)))
    })
    .await;
}

#[tokio::test]
async fn a_conversation_of_hundreds_of_messages_is_loaded_from_its_last_state() {
    let said = |step: u64| DecidedMessage {
        said: Remembered {
            message_id: MessageId::new(format!("m-{step}")).unwrap(),
            from: AgentId::fixed(["ada", "ben"][usize::from(step.is_multiple_of(3))]),
            to: Recipient::All,
            message_type: "info_update".into(),
            at: start().plus_millis(step),
            reply_to: None,
            text: format!("The build {step} is green."),
        },
        case_id: None,
        from_outside: false,
        message: json!({ "content": "The build is green." }),
        decisions: Decisions::default(),
        with_model: false,
        question: None,
        thread: "builds".into(),
        bounds: None,
        context_max: WINDOW_MAX,
    };
    is_loaded_from_its_last_state::<WakeMachine>("builds", CARRY_EVERY, |step| {
        WakeInput::Message(Box::new(said(step)))
    })
    .await;
}

/// The more cases are open, the more events there are from one state to the next: more than one event names.
#[tokio::test]
async fn an_opener_with_thousands_of_open_cases_is_loaded_whole() {
    const OPEN: u64 = 2_870;
    let broker = TestBroker::start().await;
    let life = Life::<OpenerMachine, _> {
        store: event_store(&broker).await,
        id: Token::fixed("olga"),
        input: |step| {
            OpenerInput::Admit(Admitted {
                opener: AgentId::fixed("olga"),
                case_id: CaseId::new(format!("c-{step}")).unwrap(),
                gates: 0,
                quotas: Quotas {
                    open_cases: 0,
                    ..Quotas::default()
                },
            })
        },
        machine: PhantomData,
    };
    let busy = life.process();
    for step in 0..OPEN {
        life.append(&busy, step).await;
    }
    let form = OpenerMachine::CARRY.as_ref().map(|carry| carry.form);
    let since = Since { after: 0, form };
    let loaded = life.store.load(&life.id, since, Consistency::Any).await;
    let records: Vec<StoredEvent<OpenerEvent>> = loaded.unwrap().records;
    let range = EARLIER_MAX + 1..OPEN as usize;
    assert!(range.contains(&records.len()), "{}", records.len());
    let found = life.load(&life.process()).await;
    assert_eq!(found.state, life.load(&busy).await.state);
    assert_eq!(found.state.cases.len() as u64, OPEN);
}
