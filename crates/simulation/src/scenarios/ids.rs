//! Ids under which services publish twice.

use concord_runtime::Publisher;
use concord_wire::subject::Service;
use concord_wire::{AgentId, Envelope, MessageId, MessageType, Recipient};
use serde_json::json;

use super::Stage;
use crate::executor::Incarnation;
use crate::network::Connection;
use crate::ports::SimPorts;
use crate::world::instant;

/// What is published again, as after a crash, is stored once; something else under its id is stored beside it, as by the services' own
/// publisher.
#[test]
fn something_else_under_the_id_of_a_message_is_stored_as_well() {
    let mut stage = Stage::of(&[]);
    let incarnation = Incarnation {
        replica: 0,
        number: 1,
    };
    let connection = Connection {
        world: stage.world.clone(),
        incarnation,
    };
    let ports = SimPorts::new(Service::Coordinator, connection);
    for (at, event) in [(0, "one"), (1, "one"), (2, "two")] {
        let payload = json!({ "event": event, "data": {} });
        let message = Envelope::new(
            MessageId::new("m-1").unwrap(),
            instant(at),
            Service::Coordinator.agent_id(),
            Recipient::Agent(AgentId::fixed("ada")),
            MessageType::Notification,
            serde_json::value::to_raw_value(&payload).unwrap(),
        );
        let ports = ports.clone();
        let publishes = async move { ports.publish(&[message], None).await.unwrap() };
        stage.executor.spawn(incarnation, publishes);
        stage.run();
    }
    let told = stage.told("ada", "notification");
    let told: Vec<_> = told.iter().map(|one| &one["payload"]["event"]).collect();
    assert_eq!(told, ["one", "two"]);
}
