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
