//! Finding the processes of the services, which announce themselves as NATS micro services, and asking them over HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The time in which a process must answer over HTTP.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// One process of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// The micro service's name, for example `concord-coordinator`.
    pub name: String,
    /// The id of the instance.
    pub id: String,
    /// The version of the service.
    pub version: String,
    /// What the service states about the process: `pid`, `http`, `host`, and the `prefix` of its installation.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

impl Instance {
    /// Its process id, where it states one.
    pub fn pid(&self) -> Option<u32> {
        self.metadata.get("pid")?.parse().ok()
    }

    /// The process in words: its id, and the machine where it states one.
    pub fn process(&self) -> String {
        let pid = self.metadata.get("pid").map_or("?", String::as_str);
        match self.metadata.get("host").filter(|host| !host.is_empty()) {
            Some(host) => format!("pid {pid} on {host}"),
            None => format!("pid {pid}"),
        }
    }

    /// Whether it may belong to the installation with this prefix. Processes of earlier versions do not say to which they do.
    pub fn may_be_of(&self, prefix: &str) -> bool {
        let own = self.metadata.get("prefix");
        own.is_none_or(|own| own == prefix)
    }

    /// The address at which it answers HTTP; none for a service without HTTP.
    pub fn http(&self) -> Option<&str> {
        self.metadata
            .get("http")
            .map(String::as_str)
            .filter(|address| !address.is_empty())
    }

    /// An error with the reasons, where the process is not ready. A process without HTTP counts as ready.
    pub async fn readiness(&self) -> Result<(), String> {
        let Some(address) = self.http() else {
            return Ok(());
        };
        let answer = tokio::time::timeout(ANSWER_MAX, get(address, "/readyz")).await;
        match answer {
            Ok(Ok((200, _))) => Ok(()),
            Ok(Ok((_, body))) => Err(body.trim().to_owned()),
            Ok(Err(error)) => Err(format!("{address} does not answer: {error}")),
            Err(_) => Err(format!("{address} does not answer in time")),
        }
    }

    /// A counter of this process, added up over its labels; for example `concord_effects_total`. 0 where it has not
    /// counted yet.
    pub async fn counter(&self, name: &str) -> Result<u64, String> {
        let address = self.http().ok_or("it has no metrics")?;
        let answer = tokio::time::timeout(ANSWER_MAX, get(address, "/metrics")).await;
        match answer {
            Ok(Ok((200, text))) => Ok(sum_of(name, &text)),
            Ok(Ok((status, _))) => Err(format!("{address} answers {status}")),
            Ok(Err(error)) => Err(format!("{address} does not answer: {error}")),
            Err(_) => Err(format!("{address} does not answer in time")),
        }
    }
}

/// The processes of Concord's services that answer within `patience`, or until `enough` holds.
pub async fn instances(
    client: &async_nats::Client,
    patience: Duration,
    enough: impl Fn(&[Instance]) -> bool,
) -> Result<Vec<Instance>, async_nats::Error> {
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await?;
    client
        .publish_with_reply("$SRV.INFO", inbox, "".into())
        .await?;
    let mut found: Vec<Instance> = Vec::new();
    let collect = async {
        while let Some(message) = answers.next().await {
            if let Ok(instance) = serde_json::from_slice::<Instance>(&message.payload)
                && instance.name.starts_with("concord-")
            {
                found.push(instance);
                if enough(&found) {
                    break;
                }
            }
        }
    };
    // Nobody says how many there are, so the end of patience is an ordinary end.
    let _ = tokio::time::timeout(patience, collect).await;
    found.sort_by(|a, b| {
        a.name
            .cmp(&b.name)
            .then_with(|| a.pid().cmp(&b.pid()))
            .then_with(|| a.id.cmp(&b.id))
    });
    Ok(found)
}

/// One HTTP request to a process on this machine: the status and the body.
pub(crate) async fn get(address: &str, path: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    // The older version: nobody answers it in chunks.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    let text = String::from_utf8_lossy(&bytes);
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let malformed =
        || std::io::Error::new(std::io::ErrorKind::InvalidData, "the answer is not HTTP");
    Ok((status.ok_or_else(malformed)?, body.to_owned()))
}

/// The sum of a counter over its labels, in the Prometheus text format; with labels, as they are printed, that of one series.
fn sum_of(name: &str, text: &str) -> u64 {
    let samples = text.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let is_same = series == name || series.split('{').next() == Some(name);
        is_same.then(|| value.parse::<u64>().ok())?
    });
    samples.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_belongs_to_the_installation_that_it_names_or_to_any() {
        let of = |prefix: Option<&str>| Instance {
            name: "concord-coordinator".to_owned(),
            id: String::new(),
            version: String::new(),
            metadata: prefix
                .map(|prefix| ("prefix".to_owned(), prefix.to_owned()))
                .into_iter()
                .collect(),
        };
        assert!(of(Some("a")).may_be_of("a"));
        assert!(!of(Some("b")).may_be_of("a"));
        assert!(of(None).may_be_of("a"));
    }

    #[test]
    fn a_counter_is_added_up_over_its_labels() {
        let text = "# TYPE concord_rate_limited counter\n\
            concord_rate_limited_total{consumer=\"a\"} 5\n\
            concord_rate_limited_total{consumer=\"b c\"} 2\n\
            concord_held_back_total 4\n";
        assert_eq!(sum_of("concord_rate_limited_total", text), 7);
        assert_eq!(sum_of("concord_held_back_total", text), 4);
        assert_eq!(
            sum_of("concord_rate_limited_total{consumer=\"b c\"}", text),
            2
        );
        assert_eq!(sum_of("concord_dead_total", text), 0);
    }
}
