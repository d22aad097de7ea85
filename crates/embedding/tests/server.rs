//! An embedding server, good and in the ways in which servers fail.

// Helpers of tests fail by panicking, which the workspace allows in the tests themselves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use concord_embedding::{Server, ServerError, ServerSettings};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server says to its next calls; the last again and again.
#[derive(Clone, Copy, Debug)]
enum Says {
    /// Vectors of so many dimensions, in the opposite order.
    Good(usize),
    Never,
    /// Vectors for so many texts at once at most.
    AtMost(usize),
    Status(&'static str),
    Body(&'static str),
}

struct Fake {
    url: String,
    says: Arc<Mutex<Says>>,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Fake {
    async fn start(says: Says) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let fake = Self {
            url,
            says: Arc::new(Mutex::new(says)),
            asked: Arc::default(),
        };
        let (says, asked) = (Arc::clone(&fake.says), Arc::clone(&fake.asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&says), Arc::clone(&asked)));
            }
        });
        fake
    }

    fn server(&self, timeout: Duration) -> Server {
        let mut server = Server::new(&ServerSettings {
            base_url: self.url.clone(),
            model: "m".into(),
            key: Some("sk-hidden".into()),
            timeout,
            cache: NonZeroUsize::new(1_000).unwrap(),
        })
        .unwrap();
        server.set_pause(Duration::ZERO..=Duration::ZERO);
        server
    }

    fn say(&self, says: Says) {
        *self.says.lock().unwrap() = says;
    }

    fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

async fn answer(
    mut stream: TcpStream,
    says: Arc<Mutex<Says>>,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 65_536]);
    let (head, body) = loop {
        let read = stream.read(&mut buffer).await.unwrap_or(0);
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str::<Value>(body)
        {
            break (head.to_owned(), body);
        }
        if read == 0 {
            return;
        }
    };
    asked.lock().unwrap().push((head, body.clone()));
    let now = *says.lock().unwrap();
    let count = body["input"].as_array().unwrap().len();
    let (status, text) = match now {
        Says::AtMost(most) if count > most => ("413 Content Too Large", "too many".into()),
        Says::Good(dimensions) | Says::AtMost(dimensions) => {
            let texts = body["input"].as_array().unwrap();
            let vector = |text: &Value| {
                let mut vector = vec![0.0; dimensions];
                vector[text.as_str().unwrap().len() % dimensions] = 3.0;
                vector
            };
            let item = |(place, text)| json!({ "index": place, "embedding": vector(text) });
            let mut data: Vec<Value> = texts.iter().enumerate().map(item).collect();
            data.reverse();
            ("200 OK", json!({ "data": data }).to_string())
        }
        Says::Never => return std::future::pending().await,
        Says::Status(status) => (status, "sk-hidden was wrong".into()),
        Says::Body(body) => ("200 OK", body.to_owned()),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    // One that has been given up has nobody to answer.
    let _ = stream.write_all(answer.as_bytes()).await;
}

const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn texts_go_in_batches_and_come_back_in_order_of_length_one_and_once() {
    let fake = Fake::start(Says::Good(7)).await;
    let server = fake.server(LONG);
    let texts: Vec<String> = (0..130).map(|length| "x".repeat(length)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = server.embed_all(&texts).await.unwrap();
    assert_eq!((vectors.len(), fake.calls()), (130, 3));
    for (text, vector) in texts.iter().zip(&vectors) {
        assert_eq!((vector.len(), vector[text.len() % 7]), (7, 1.0));
    }
    let again = server.embed_all(&texts[..5]).await.unwrap();
    assert!(Arc::ptr_eq(&again[4], &vectors[4]));
    assert_eq!(fake.calls(), 3, "what is known is not asked for again");
    let (head, body) = fake.asked.lock().unwrap()[0].clone();
    assert!(head.starts_with("POST /v1/embeddings HTTP/1.1"), "{head}");
    assert!(
        head.to_lowercase()
            .contains("authorization: bearer sk-hidden"),
        "{head}"
    );
    assert_eq!(
        (&body["model"], body["input"].as_array().unwrap().len()),
        (&json!("m"), 64)
    );
}

#[tokio::test]
async fn whatever_the_server_does_wrong_is_an_error_and_it_recovers() {
    let fake = Fake::start(Says::Good(3)).await;
    let server = fake.server(LONG);
    server.embed_all(&["first"]).await.unwrap();
    for (number, says) in [
        Says::Status("500 Internal Server Error"),
        Says::Status("302 Found"),
        Says::Body("hello"),
        Says::Body("{}"),
        Says::Body(r#"{"data":[]}"#),
        Says::Body(r#"{"data":[{"index":1,"embedding":[1,0,0]}]}"#),
        Says::Body(r#"{"data":[{"index":0,"embedding":[1,0,0]},{"index":1,"embedding":[1,0,0]}]}"#),
        Says::Body(r#"{"data":[{"index":0,"embedding":[NaN,0,0]}]}"#),
        Says::Body(r#"{"data":[{"index":0,"embedding":[null,0,0]}]}"#),
        Says::Body(r#"{"data":[{"index":0,"embedding":[1e39,0,0]}]}"#),
        Says::Body(r#"{"data":[{"index":0,"embedding":[0,0,0]}]}"#),
        Says::Body(r#"{"data":[{"index":0,"embedding":[]}]}"#),
        Says::Body(r#"{"data":[{"index":0,"embedding":[1,0]}]}"#),
    ]
    .into_iter()
    .enumerate()
    {
        fake.say(says);
        let text = format!("text {number}");
        let error = server.embed_all(&[&text]).await.unwrap_err();
        assert!(
            !error.to_string().contains("sk-hidden"),
            "{says:?}: {error}"
        );
        fake.say(Says::Good(3));
        assert_eq!(
            server.embed_all(&[&text]).await.unwrap()[0].len(),
            3,
            "after {says:?}"
        );
    }
}

#[tokio::test]
async fn a_slow_server_is_waited_for_once_and_then_left_alone() {
    let fake = Fake::start(Says::Never).await;
    let mut server = fake.server(Duration::from_millis(50));
    server.set_pause(LONG..=LONG);
    let error = server.embed_all(&["a"]).await.unwrap_err();
    assert!(
        matches!(
            error,
            ServerError::Call(concord_outbound::Error::Timeout { .. })
        ),
        "{error}"
    );
    assert_eq!(server.embed_all(&["a"]).await, Err(ServerError::Paused));
    assert!(fake.calls() <= 1);
}

#[tokio::test]
async fn texts_that_the_server_does_not_want_are_no_reason_to_leave_it_alone() {
    let fake = Fake::start(Says::Status("413 Content Too Large")).await;
    let mut server = fake.server(LONG);
    server.set_pause(LONG..=LONG);
    assert_eq!(
        server.embed_all(&["long"]).await,
        Err(ServerError::Status(413))
    );
    fake.say(Says::Good(3));
    assert!(server.embed_all(&["short"]).await.is_ok());
}

#[tokio::test]
async fn more_texts_than_the_server_takes_at_once_are_halved_until_it_does() {
    let fake = Fake::start(Says::AtMost(10)).await;
    let server = fake.server(LONG);
    let texts: Vec<String> = (0..33).map(|number| "x".repeat(number + 1)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = server.embed_all(&texts).await.unwrap();
    // Each is the one of its text: of dimension length modulo ten.
    for (text, vector) in texts.iter().zip(&vectors) {
        assert_eq!(vector[text.len() % 10], 1.0, "{text}");
    }
    assert_eq!(vectors.len(), 33);
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_asked() {
    let settings = |base_url: &str, model: &str, key: Option<&str>, millis| ServerSettings {
        base_url: base_url.into(),
        model: model.into(),
        key: key.map(str::to_owned),
        timeout: Duration::from_millis(millis),
        cache: NonZeroUsize::MIN,
    };
    for (wrong, says) in [
        (settings("nowhere", "m", None, 1), "base_url"),
        (settings("ftp://x/v1", "m", None, 1), "base_url"),
        (settings("http://me:secret@x/v1", "m", None, 1), "base_url"),
        (settings("http://x/v1", " ", None, 1), "model"),
        (settings("http://x/v1", "m", Some("a\nb"), 1), "key"),
        (settings("http://x/v1", "m", None, 0), "timeout_ms"),
    ] {
        let error = Server::new(&wrong).err().unwrap().to_string();
        assert!(error.contains(says) && !error.contains("secret"), "{error}");
    }
}
