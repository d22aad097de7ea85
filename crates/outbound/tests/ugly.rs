//! Servers that fail in all the ways in which servers fail.

// Clippy knows helpers of tests only inside `#[test]`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::time::{Duration, Instant};

use concord_outbound::{
    Allowed, Caller, Error, HeaderMap, Limits, Method, Origin, Request, Response,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a server does with a connection on which a request has come.
#[derive(Clone, Copy)]
enum Does {
    /// Writes this and closes.
    Writes(&'static str),
    /// Writes this and says no more.
    ThenHangs(&'static str),
    /// Writes this, and then this without end.
    WithoutEnd(&'static str, &'static str),
    /// Closes with a reset.
    Resets,
}

/// A server on a port of its own that does one thing: its address.
async fn server(does: Does) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, does));
        }
    });
    format!("http://{address}/path?query")
}

async fn serve(mut stream: TcpStream, does: Does) {
    let mut request = vec![0; 65_536];
    let read = stream.read(&mut request).await.unwrap_or(0);
    assert!(read > 0);
    // The caller may close at any time.
    match does {
        Does::Writes(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
        }
        Does::ThenHangs(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.read(&mut request).await;
        }
        Does::WithoutEnd(head, part) => {
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(part.as_bytes()).await.is_ok() {}
        }
        Does::Resets => drop(stream.set_zero_linger()),
    }
}

async fn call(url: &str, within_ms: u64) -> Result<Response, Error> {
    let origin = Origin::read(url.split('?').next().unwrap().trim_end_matches("/path")).unwrap();
    let caller = Caller::new(Allowed::new(vec![origin], true, ("hosts", "private")), None).unwrap();
    let limits = Limits {
        timeout: Duration::from_millis(within_ms),
        body_bytes_max: Some(100_000),
    };
    let (method, headers, body) = (Method::POST, HeaderMap::new(), "{}".into());
    caller
        .call(Request {
            method,
            url: url.to_owned(),
            headers,
            body,
            limits,
        })
        .await
}

#[tokio::test]
async fn good_answers_are_read_whole() {
    for (answer, status, body) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", 200, "hi"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n",
            200,
            "hi",
        ),
        ("HTTP/1.1 200 OK\r\n\r\nhi", 200, "hi"),
        (
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n",
            429,
            "",
        ),
        (
            "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n",
            302,
            "",
        ),
    ] {
        let response = call(&server(Does::Writes(answer)).await, 5_000)
            .await
            .unwrap();
        assert_eq!(
            (response.status.as_u16(), &*response.body),
            (status, body.as_bytes()),
            "{answer}"
        );
    }
}

/// Only what hangs ends by its time; the rest ends by itself, however slow the machine is.
fn within_ms(does: &Does) -> u64 {
    match does {
        Does::ThenHangs(_) => 1_000,
        _ => 60_000,
    }
}

#[tokio::test]
async fn whatever_a_server_does_the_call_ends_with_what_it_is() {
    const OK: &str = "HTTP/1.1 200 OK\r\n";
    let broken = |error: &Error| matches!(error, Error::Broken(_));
    let too_long = |error: &Error| matches!(error, Error::TooLong(100_000));
    let late = |error: &Error| {
        matches!(
            error,
            Error::Timeout {
                may_have_arrived: true,
                ..
            }
        )
    };
    type Is<'a> = &'a dyn Fn(&Error) -> bool;
    let cases: [(&str, Does, Is<'_>); 10] = [
        ("closes at once", Does::Writes(""), &broken),
        ("resets", Does::Resets, &broken),
        (
            "garbage",
            Does::Writes("\u{1}\u{2}\u{3} hello\r\n\r\n"),
            &broken,
        ),
        (
            "cut off in the head",
            Does::Writes("HTTP/1.1 200 OK\r\ncontent-le"),
            &broken,
        ),
        (
            "cut off in the body",
            Does::Writes("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"a\":"),
            &broken,
        ),
        ("says nothing", Does::ThenHangs(""), &late),
        (
            "hangs in the body",
            Does::ThenHangs("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"a\":"),
            &late,
        ),
        (
            "endless body",
            Does::WithoutEnd(
                "HTTP/1.1 200 OK\r\n\r\n",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            ),
            &too_long,
        ),
        (
            "endless head",
            Does::WithoutEnd(OK, "x-a: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"),
            &broken,
        ),
        (
            "endless line",
            Does::WithoutEnd(OK, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
            &broken,
        ),
    ];
    for (what, does, is) in cases {
        let within_ms = within_ms(&does);
        let begun = Instant::now();
        let error = call(&server(does).await, within_ms).await.unwrap_err();
        assert!(is(&error), "{what}: {error:?}");
        assert!(
            error.may_have_arrived() && !error.is_lasting(),
            "{what}: {error:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(15), "{what}");
        assert!(!error.to_string().contains("query"), "{what}: {error}");
    }
}

#[tokio::test]
async fn who_is_not_there_has_received_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = call(&format!("http://{address}/path?query"), 60_000)
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Unreachable(_)) && !error.may_have_arrived(),
        "{error:?}"
    );
    // A server that speaks no TLS.
    let plain = server(Does::Writes("HTTP/1.1 400 Bad Request\r\n\r\n")).await;
    let error = call(&plain.replace("http://", "https://"), 60_000)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
}
