//! The processes of the services: those that say that they are there, and those that only the broker knows of.

use std::collections::BTreeSet;
use std::time::Duration;

use concord_installation::{Instance, SERVICES, binary_name, instances};
use concord_runtime::Broker;
use concord_wire::subject::Service;
use futures::StreamExt;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

/// The time that processes have to announce themselves, and the broker to name its connections.
const PATIENCE: Duration = Duration::from_millis(800);
/// The time that one has which is connected and has not: it may only be slow.
const SLOW_MAX: Duration = Duration::from_secs(3);
/// Where whoever knows of connections is asked about those of one account.
const CONNECTIONS: &str = "$SYS.REQ.ACCOUNT.PING.CONNZ";
/// What each process of a service hears on the connection for what is not stored.
const INFO: &str = "$SRV.INFO";
/// The verb that it hears there besides, under the prefix of its installation, where it has the right.
const STATUS: &str = "status";

/// The processes of the services.
pub(super) struct Running {
    /// Those that answer.
    pub(super) answer: Vec<Instance>,
    /// Those that are connected and do not answer.
    pub(super) silent: Vec<Silent>,
}

/// A process that is connected to the broker and does not answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Silent {
    pub(super) service: Service,
    /// Its id and its machine, in words.
    pub(super) process: String,
}

/// Looks for all of them.
pub(super) async fn look(broker: &Broker) -> Result<Running, async_nats::Error> {
    let (answer, connected) = tokio::join!(
        instances(&broker.client, PATIENCE, |_| false),
        connected(broker)
    );
    // A broker that names no connections has its reasons, and what answers is found without it.
    let (answer, connected) = (answer?, connected.unwrap_or_default());
    let silent = silent(&connected, &answer);
    if silent.is_empty() {
        return Ok(of_installation(broker, answer, silent));
    }
    let all_answer = |found: &[Instance]| self::silent(&connected, found).is_empty();
    let answer = instances(&broker.client, SLOW_MAX, all_answer).await?;
    let silent = self::silent(&connected, &answer);
    Ok(of_installation(broker, answer, silent))
}

/// Without the processes of other installations in the same account, which answer, too.
fn of_installation(broker: &Broker, mut answer: Vec<Instance>, silent: Vec<Silent>) -> Running {
    answer.retain(|one| one.may_be_of(broker.subjects().prefix()));
    Running { answer, silent }
}

/// Those of the connected processes that are not among those that answer.
fn silent(connected: &BTreeSet<Silent>, answer: &[Instance]) -> Vec<Silent> {
    let answers = |one: &&Silent| {
        let name = binary_name(one.service);
        answer
            .iter()
            .any(|found| found.name == name && found.process() == one.process)
    };
    let silent = connected.iter().filter(|one| !answers(one));
    silent.cloned().collect()
}

/// What a broker says of its connections.
#[derive(Deserialize)]
struct Answer {
    data: Option<Connections>,
}

#[derive(Deserialize)]
struct Connections {
    #[serde(default)]
    connections: Vec<Connection>,
}

#[derive(Deserialize)]
struct Connection {
    #[serde(default)]
    name: String,
    #[serde(default)]
    subscriptions_list: Vec<String>,
}

impl Connection {
    /// Whether it is that of a process of another installation: its name does not say so, and what it hears does.
    fn is_of_another(&self, prefix: &str, own: &[String]) -> bool {
        let verbs = own.iter().filter_map(|heard| heard.strip_prefix(prefix));
        let mut verbs = verbs.filter(|verb| !verb.is_empty());
        verbs.any(|verb| {
            let mut heard = self.subscriptions_list.iter();
            heard.any(|one| one.ends_with(verb) && !own.contains(one))
        })
    }
}

/// The processes of this installation's services that are connected, as all brokers say. Those of earlier versions do not say which process
/// they are.
async fn connected(broker: &Broker) -> Result<BTreeSet<Silent>, async_nats::Error> {
    let client = &broker.client;
    let (inbox, prefix) = (client.new_inbox(), broker.subjects().prefix());
    let own = SERVICES.map(|service| format!("{}.{STATUS}", broker.api_root(service)));
    let mut answers = client.subscribe(inbox.clone()).await?;
    let body = json!({ "filter_subject": INFO, "subscriptions": true }).to_string();
    client
        .publish_with_reply(CONNECTIONS, inbox, body.into())
        .await?;
    let mut connected = BTreeSet::new();
    let collect = async {
        while let Some(answer) = answers.next().await {
            let Ok(answer) = serde_json::from_slice::<Answer>(&answer.payload) else {
                continue;
            };
            let all = answer.data.into_iter().flat_map(|data| data.connections);
            let of_installation = all.filter(|one| !one.is_of_another(prefix, &own));
            connected.extend(of_installation.filter_map(|one| process_of(&one.name)));
        }
    };
    // Nobody says how many brokers there are, so the end of patience is an ordinary end.
    let _ = timeout(PATIENCE, collect).await;
    Ok(connected)
}

/// The process that has a connection of this name, where that is the one of a service for what is not stored.
fn process_of(name: &str) -> Option<Silent> {
    SERVICES.into_iter().find_map(|service| {
        let process = name.strip_prefix(binary_name(service).as_str())?;
        let process = process.strip_prefix("-heard ")?.to_owned();
        Some(Silent { service, process })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_connected_and_does_not_answer_is_silent() {
        let names = [
            "concord-coordinator-heard pid 7 on a",
            "concord-coordinator-heard pid 8 on a",
            "concord-coordinator-heard pid 7 on b",
            "concord-coordinator pid 9 on a",
            "concord-coordinator-heard",
            "an agent",
        ];
        let connected: BTreeSet<Silent> = names.into_iter().filter_map(process_of).collect();
        let answer = |service: &str, pid: &str, host: &str| Instance {
            name: format!("concord-{service}"),
            id: String::new(),
            version: String::new(),
            metadata: [("pid", pid), ("host", host)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        };
        let found = silent(
            &connected,
            &[
                answer("coordinator", "7", "a"),
                answer("conflict-detector", "8", "a"),
            ],
        );
        let processes: Vec<&str> = found.iter().map(|one| one.process.as_str()).collect();
        assert_eq!(processes, ["pid 7 on b", "pid 8 on a"]);
    }
}
