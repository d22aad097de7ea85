//! What is written comes back, in a store that fails now and then.

use concord_archive::{
    Archive, ArchivedMessage, CaseContents, Error, Location, Packed, S3, SegmentPlace, pack,
};
use concord_events::topology::StreamKind;
use concord_wire::{CaseId, Timestamp};
use serde_json::json;

use crate::archive::s3_server::{S3Server, WRITER, write_credentials};

/// A segment with one case of one message.
pub(super) fn segment(number: u64, text: &str) -> Packed {
    let case_id = CaseId::new(format!("case-{number}")).unwrap();
    let message = ArchivedMessage {
        stream: StreamKind::Messages,
        sequence: number,
        at: Timestamp::from_unix_millis(1),
        subject: format!("concord.v1.msg.{case_id}.ann.ben.finding"),
        headers: Vec::new(),
        payload: text.to_owned().into(),
    };
    let case = CaseContents {
        case_id,
        aggregates: Vec::new(),
        messages: vec![message],
    };
    let place = SegmentPlace {
        installation: "concord".to_owned(),
        number,
        previous: None,
        at: Timestamp::from_unix_millis(1),
        unique: "u".to_owned(),
    };
    pack(place, &[case]).unwrap()
}

#[tokio::test]
async fn what_is_kept_comes_back_and_nothing_is_overwritten() {
    let token = "tok/en+=";
    let mut server = S3Server::start("http", &["--token", token]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("credentials");
    write_credentials(&file, WRITER, Some(token));
    let store = S3::new("s3://cases/eu/west/", &server.settings(&file)).unwrap();
    let archive = Archive::new(Location::S3(store));
    assert_eq!(archive.location().to_string(), "s3://cases/eu/west");

    // The store gives lists in parts of two.
    let segments: Vec<Packed> = (1..=5).map(|number| segment(number, "Seen.")).collect();
    for packed in &segments {
        archive.keep(packed).await.unwrap();
    }
    let names = segments.iter().map(|packed| packed.manifest.name.clone());
    assert_eq!(archive.names().await.unwrap(), names.collect::<Vec<_>>());
    for packed in &segments {
        let cases = archive.segment(&packed.sealed()).await.unwrap();
        assert_eq!(cases[0].case_id, packed.manifest.cases[0].case_id);
        assert_eq!(cases[0].messages[0].payload, "Seen.");
    }
    let keys = server.keys().await;
    assert_eq!(keys[0], "eu/west/manifests/00000001-u.json", "{keys:?}");

    // What an earlier try has written is written; something else is in the way.
    archive.keep(&segments[0]).await.unwrap();
    let error = archive.keep(&segment(1, "Other.")).await.unwrap_err();
    let told = std::error::Error::source(&error).unwrap().to_string();
    assert!(told.contains("nothing is overwritten"), "{told}");

    server.tell(json!({ "fail": 503, "times": 3 })).await;
    archive.keep(&segment(6, "Seen.")).await.unwrap();
    let left = server.tell(json!({ "failures": "" })).await;
    assert_eq!(left["failures"], 0);

    for _ in 0..2 {
        archive.discard(&segments[0]).await.unwrap();
    }
    let gone = archive.segment(&segments[0].sealed()).await.unwrap_err();
    assert!(matches!(gone, Error::Missing { .. }), "{gone}");
    let tampered = json!({ "tamper": "segments/00000003" });
    server.tell(tampered).await;
    let error = archive.segment(&segments[2].sealed()).await.unwrap_err();
    let told = error.to_string();
    assert!(
        matches!(error, Error::Tampered { .. }) && told.contains("00000003-u.zst"),
        "{told}"
    );
}
