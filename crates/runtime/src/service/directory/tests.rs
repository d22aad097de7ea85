use super::*;

fn stored(bytes: &[u8], sequence: u64) -> StoredEvent<AgentEvent> {
    StoredEvent::decode(bytes, sequence).unwrap()
}

/// The coordinator works on events before the directory has followed as far, and in any order.
#[test]
fn only_a_registration_is_taken_early() {
    let registered = include_bytes!(
        "../../../../../proto-schemas/examples/accepted/event.agent.registered.json"
    );
    let registered = stored(registered, 4);
    let changed = include_bytes!(
        "../../../../../proto-schemas/examples/accepted/event.agent.status_changed.json"
    );
    let changed = stored(changed, 5);
    let agent = AgentId::new(registered.meta.id.as_str()).unwrap();

    let directory = Directory::new();
    directory.apply_early(&registered);
    assert!(directory.agent(&agent).is_some());
    assert!(directory.preference_of(&agent).is_some());

    let directory = Directory::new();
    directory.apply_early(&changed);
    directory.apply(registered);
    let known = directory.agent(&agent);
    assert!(known.is_some(), "the registration is not passed over");
    directory.apply(changed);
    let known = directory.agent(&agent).unwrap();
    assert_eq!(known.why, "No heartbeat for 30004 ms.");
}

/// At the start the last event of each kind is read. An acknowledgement in the place of the registration comes after what came later.
#[test]
fn a_card_that_is_found_late_does_not_count_as_old() {
    let registered = stored(
        include_bytes!(
            "../../../../../proto-schemas/examples/accepted/event.agent.registered.json"
        ),
        4,
    );
    let changed = stored(
        include_bytes!(
            "../../../../../proto-schemas/examples/accepted/event.agent.status_changed.json"
        ),
        5,
    );
    let id = registered.meta.id.clone();
    let agent = AgentId::new(id.as_str()).unwrap();
    let mut read = Versioned::<AgentMachine>::default();
    read.apply(registered.clone());
    let stale = read.clone();
    read.apply(changed.clone());

    let directory = Directory::new();
    directory.keep_index();
    directory.apply(changed);
    directory.apply(registered);
    assert!(directory.agent(&agent).is_none(), "it is passed over");
    directory.replace(&id, read);
    let known = directory.agent(&agent).unwrap();
    assert_eq!(known.why, "No heartbeat for 30004 ms.");
    assert!(directory.preference_of(&agent).is_some());
    directory.replace(&id, stale);
    let known = directory.agent(&agent).unwrap();
    assert_eq!(known.why, "No heartbeat for 30004 ms.", "more is known");
}
