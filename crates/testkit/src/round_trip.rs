//! Waiting until the broker has handled what a client has sent.

use std::time::Duration;

use futures::StreamExt;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);
/// What was sent to a broker that has gone meanwhile comes back never, so it is sent again.
const AGAIN: Duration = Duration::from_secs(2);

/// Waits until the broker has read all that this client sent, such as its subscriptions: what another client sends after
/// that is heard. `flush` alone says only that it was written to the socket.
///
/// # Panics
/// When there is no connection, or when the client may not publish to an inbox of its own.
pub async fn round_trip(client: &async_nats::Client) {
    let inbox = client.new_inbox();
    let mut heard = client
        .subscribe(inbox.clone())
        .await
        .expect("a subscription");
    let back = async {
        loop {
            let sent = client.publish(inbox.clone(), "".into()).await;
            sent.expect("it is sent");
            if let Ok(back) = timeout(AGAIN, heard.next()).await {
                break back.expect("it is there");
            }
        }
    };
    timeout(PATIENCE, back).await.expect("the broker answers");
}
