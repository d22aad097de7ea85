//! Plain HTTP/1.1 without a client library, one connection for each request.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The whole answer (status line, headers and body) to a GET of this path.
///
/// # Errors
/// When nobody listens at `address`, or the answer is not text.
pub async fn http_get(address: &str, path: &str) -> io::Result<String> {
    exchange(
        address,
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"),
    )
    .await
}

/// The status of the answer to a POST of this body.
///
/// # Errors
/// When nobody listens at the host of `url`, or the answer is not HTTP.
pub async fn http_post(url: &str, body: &str) -> io::Result<u16> {
    let rest = url
        .strip_prefix("http://")
        .ok_or_else(|| io::Error::other(format!("{url} is not an address of plain HTTP")))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let length = body.len();
    let request = format!(
        "POST /{path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    let answer = exchange(host, request).await?;
    let status = answer.split(' ').nth(1);
    status
        .and_then(|status| status.parse().ok())
        .ok_or_else(|| io::Error::other(format!("the answer is not HTTP: {answer:?}")))
}

async fn exchange(address: &str, request: String) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
