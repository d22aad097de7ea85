//! What a store refuses is said with what to do.

use std::path::Path;

use concord_archive::{Archive, Location, LocationError, S3, S3Settings};
use serde_json::json;

use super::protocol::segment;
use crate::archive::s3_server::{READER, S3Server, WRITER, write_credentials};

fn archive(address: &str, settings: &S3Settings) -> Archive {
    Archive::new(Location::S3(S3::new(address, settings).unwrap()))
}

/// Why a segment is not kept, as people read it, and whether that may pass.
async fn refusal(archive: &Archive) -> (String, bool) {
    let error = archive.keep(&segment(1, "Seen.")).await.unwrap_err();
    let concord_archive::Error::Location {
        source: LocationError::S3(why),
        ..
    } = error
    else {
        panic!("{error}");
    };
    let told = why.to_string();
    for secret in [WRITER[1], READER[1], "X-Amz-"] {
        assert!(!told.contains(secret), "{told}");
    }
    (told, why.is_passing())
}

#[tokio::test]
async fn each_refusal_says_what_to_do() {
    let mut server = S3Server::start("http", &[]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("credentials");
    let settings = server.settings(&file);
    let ours = archive("s3://cases", &settings);

    // The same archive finds new credentials where old ones were.
    let [key, _] = WRITER;
    for (user, token, advice) in [
        ([key, "wrong"], None, "secret is not that of the key id"),
        (["AKNOBODY", "wrong"], None, "key id is not known"),
        (WRITER, Some("old"), "session token counts no more"),
        (READER, None, "may not do that in the bucket cases"),
    ] {
        write_credentials(&file, user, token);
        let (told, passes) = refusal(&ours).await;
        assert!(told.contains(advice) && !passes, "{told}");
    }
    write_credentials(&file, WRITER, None);
    // Half a minute more: it is seen by a clock that goes on meanwhile.
    for (seconds, advice) in [(7_230, "120 minutes behind"), (-7_230, "minutes ahead of")] {
        server.tell(json!({ "clock": seconds })).await;
        let (told, _) = refusal(&ours).await;
        assert!(told.contains(advice), "{told}");
    }
    server.tell(json!({ "clock": 0 })).await;
    ours.keep(&segment(2, "Seen.")).await.unwrap();
    std::fs::remove_file(&file).unwrap();
    let (told, _) = refusal(&ours).await;
    assert!(told.contains("storage.s3.credentials_file"), "{told}");

    write_credentials(&file, WRITER, None);
    let (told, _) = refusal(&archive("s3://nobodys", &settings)).await;
    assert!(told.contains("create the bucket nobodys"), "{told}");
    let elsewhere = S3Settings {
        region: "us-east-1".to_owned(),
        ..settings.clone()
    };
    let (told, _) = refusal(&archive("s3://cases", &elsewhere)).await;
    assert!(told.contains("the bucket is in eu-test-1"), "{told}");

    // A store that goes on failing, and one that speaks no TLS.
    server.tell(json!({ "fail": 503, "times": 1_000 })).await;
    let plain = S3Settings {
        endpoint: server.endpoint.replace("http:", "https:"),
        ..settings
    };
    let no_tls = archive("s3://cases", &plain);
    let ((busy, passes), (deaf, _)) = tokio::join!(refusal(&ours), refusal(&no_tls));
    assert!(
        busy.contains("503") && busy.contains("tried five times") && passes,
        "{busy}"
    );
    assert!(
        deaf.contains("does not answer") && deaf.contains("storage.s3.ca"),
        "{deaf}"
    );
    assert!(Path::new(&file).is_file());
}
