//! A collector behind TLS: the services check its certificate.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::http::StatusCode;
use concord_testkit::{TestInstallation, wait_for};
use concord_wire::subject::Service;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::tracing::PATIENCE;
use crate::tracing::collector::{Collector, end};

/// Puts TLS in front of a collector: the address, and the certificate (PEM).
async fn tls_before(collector: &Collector) -> (SocketAddr, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = builder
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key);
    let acceptor = TlsAcceptor::from(Arc::new(config.expect("the certificate can be used")));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let behind = collector.address.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, behind) = (acceptor.clone(), behind.clone());
            tokio::spawn(async move {
                // A client that does not trust the certificate ends the connection.
                let Ok(mut outside) = acceptor.accept(stream).await else {
                    return;
                };
                let mut inside = TcpStream::connect(behind)
                    .await
                    .expect("the collector listens");
                // When one side ends the connection, so does the other.
                let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
            });
        }
    });
    (address, made.cert.pem())
}

/// Starts services that send their spans to this address by TLS, and opens a case so that the coordinator has spans.
async fn start_with_case(address: SocketAddr, authority: Option<String>) -> TestInstallation {
    let installation = TestInstallation::start_with(move |mut plan| {
        plan = plan
            .with_replicas(Service::AgentAdapter, 0)
            .with_setting(format!("telemetry.otlp_endpoint=https://{address}"));
        if let Some(authority) = authority {
            let path: PathBuf = plan.directory.join("authority.pem");
            std::fs::write(&path, authority).expect("the certificate is written");
            plan = plan.with_setting(format!("telemetry.otlp_ca={}", path.display()));
        }
        plan
    });
    let installation = installation.await;
    installation
        .open_case(&json!({ "participants": ["nobody"], "task": { "type": "test" } }))
        .await;
    installation
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_go_to_a_collector_under_tls_whose_certificate_is_believed() {
    let collector = Collector::start(StatusCode::OK).await;
    let (address, certificate) = tls_before(&collector).await;
    let installation = start_with_case(address, Some(certificate)).await;
    // The span is recorded after the case has been opened: a service that is ended at once leaves that to the next.
    wait_for("the span of the case", PATIENCE, async || {
        match collector.spans().iter().any(|span| span.name == "case") {
            true => Ok(()),
            false => Err(installation.log_tails()),
        }
    })
    .await;
    end(&installation).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_span_goes_to_one_whose_certificate_is_not() {
    let collector = Collector::start(StatusCode::OK).await;
    let (address, _) = tls_before(&collector).await;
    let installation = start_with_case(address, None).await;
    let log = installation.log(Service::Coordinator, 0).expect("a log");
    wait_for("the coordinator to say why", PATIENCE, async || {
        let log = std::fs::read_to_string(log).expect("its log");
        if log.contains("Spans cannot be sent") && log.contains("speak TLS") {
            Ok(())
        } else {
            Err(log)
        }
    })
    .await;
    end(&installation).await;
    assert!(collector.spans().is_empty());
}
