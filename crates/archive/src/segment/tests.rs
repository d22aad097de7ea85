use concord_events::Aggregate;
use concord_wire::Token;
use proptest::prelude::*;

use super::*;
use crate::{Archive, Error, Location};

fn place(number: u64, previous: Option<String>) -> SegmentPlace {
    SegmentPlace {
        installation: "concord".into(),
        number,
        previous,
        at: Timestamp::from_unix_millis(1_000),
        unique: "one".into(),
    }
}

fn message() -> impl Strategy<Value = ArchivedMessage> {
    let streams = prop::sample::select(StreamKind::EVIDENCE.to_vec());
    let headers = prop::collection::vec(("[A-Za-z-]{1,12}", ".{0,20}"), 0..4);
    let payload = prop::collection::vec(any::<u8>(), 0..200);
    (
        streams,
        any::<u64>(),
        any::<i32>(),
        "[a-z.*>]{0,30}",
        headers,
        payload,
    )
        .prop_map(
            |(stream, sequence, at, subject, headers, payload)| ArchivedMessage {
                stream,
                sequence,
                at: Timestamp::from_unix_millis(at.into()),
                subject,
                headers,
                payload: payload.into(),
            },
        )
}

fn contents() -> impl Strategy<Value = Vec<CaseContents>> {
    let case = ("[a-z]{1,8}", prop::collection::vec(message(), 0..8));
    prop::collection::vec(case, 1..5).prop_map(|cases| {
        let case = |(number, (id, messages)): (usize, (String, Vec<ArchivedMessage>))| {
            let id = format!("{id}-{number}");
            CaseContents {
                case_id: CaseId::new(&id).unwrap(),
                aggregates: vec![SealedAggregate {
                    aggregate: Aggregate::Case,
                    id: Token::new(&id).unwrap(),
                    last_sequence: 7,
                }],
                messages,
            }
        };
        cases.into_iter().enumerate().map(case).collect()
    })
}

proptest! {
    #[test]
    fn what_was_packed_comes_back(cases in contents()) {
        let packed = pack(place(1, None), &cases).unwrap();
        let manifest = Manifest::read(&packed.manifest_bytes, &packed.sealed()).unwrap();
        prop_assert_eq!(&manifest, &packed.manifest);
        prop_assert_eq!(manifest.unpack(&packed.segment).unwrap(), cases);
    }

    #[test]
    fn no_changed_byte_passes(cases in contents(), place_of in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let packed = pack(place(1, None), &cases).unwrap();
        let mut segment = packed.segment.to_vec();
        segment[place_of.index(packed.segment.len())] ^= flip;
        prop_assert!(packed.manifest.unpack(&segment).is_err());
        let mut manifest = packed.manifest_bytes.to_vec();
        manifest[place_of.index(packed.manifest_bytes.len())] ^= flip;
        prop_assert!(Manifest::read(&manifest, &packed.sealed()).is_err());
    }

    #[test]
    fn no_cut_or_longer_file_passes(cases in contents(), place_of in any::<prop::sample::Index>()) {
        let packed = pack(place(1, None), &cases).unwrap();
        let cut = &packed.segment[..place_of.index(packed.segment.len())];
        prop_assert!(packed.manifest.unpack(cut).is_err());
        let longer = [&packed.segment[..], b"x"].concat();
        prop_assert!(packed.manifest.unpack(&longer).is_err());
    }
}

fn said(case: &str, payload: &str) -> CaseContents {
    CaseContents {
        case_id: CaseId::new(case).unwrap(),
        aggregates: Vec::new(),
        messages: vec![ArchivedMessage {
            stream: StreamKind::Messages,
            sequence: 4,
            at: Timestamp::from_unix_millis(5),
            subject: format!("concord.v1.msg.{case}.a.b.finding"),
            headers: Vec::new(),
            payload: payload.to_owned().into(),
        }],
    }
}

#[test]
fn a_segment_that_was_packed_anew_is_named_by_the_case_that_differs() {
    let true_one = pack(place(1, None), &[said("c-1", "80"), said("c-2", "10")]).unwrap();
    let false_one = pack(place(1, None), &[said("c-1", "80"), said("c-2", "99")]).unwrap();
    let difference = true_one.manifest.unpack(&false_one.segment).unwrap_err();
    assert_eq!(difference.case, Some(CaseId::new("c-2").unwrap()));
}

#[test]
fn a_damaged_case_leaves_the_others_readable_and_each_that_is_damaged_is_named() {
    let names = ["c-1", "c-2", "c-3", "c-4", "c-5"];
    let cases = names.map(|case| said(case, &format!("it is {case}")));
    let packed = pack(place(1, None), &cases).unwrap();
    let damaged = |of: &[&str]| {
        let false_ones = names.map(|case| match of.contains(&case) {
            true => said(case, &format!("is it {case}")),
            false => said(case, &format!("it is {case}")),
        });
        pack(place(1, None), &false_ones).unwrap().segment
    };
    for of in [&["c-1"][..], &["c-3"], &["c-1", "c-4"], &names] {
        let found = packed.manifest.examine(&damaged(of));
        assert!(found.file.is_some());
        for ((id, found), case) in found.cases.iter().zip(&cases) {
            assert_eq!(*id, case.case_id);
            match found {
                Ok(found) => assert!(found == case && !of.contains(&id.as_str()), "{id}"),
                Err(error) => {
                    assert!(of.contains(&id.as_str()), "{error}");
                    assert_eq!(error.case.as_ref(), Some(id));
                }
            }
        }
    }
    // What a cut leaves whole is whole, and what it takes is named.
    let cut = &packed.segment[..packed.segment.len() / 2];
    let found = packed.manifest.examine(cut);
    assert_eq!(found.cases.len(), names.len());
    let (_, last) = found.cases.last().unwrap();
    assert!(
        last.as_ref()
            .is_err_and(|why| why.to_string().contains("c-5"))
    );
    assert!(packed.manifest.unpack(cut).is_err());
}

#[tokio::test]
async fn a_folder_keeps_segments_and_says_which_file_is_missing_or_changed() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::new(Location::Folder(folder.path().join("archive")));
    assert_eq!(archive.names().await.unwrap(), Vec::<String>::new());
    let cases = [said("c-1", "80"), said("c-2", "10")];
    let packed = pack(place(1, None), &cases).unwrap();
    let sealed = packed.sealed();
    archive.keep(&packed).await.unwrap();
    archive.keep(&packed).await.unwrap();
    assert_eq!(
        archive.names().await.unwrap(),
        std::slice::from_ref(&sealed.name)
    );
    assert_eq!(archive.segment(&sealed).await.unwrap(), cases);
    // Whoever keeps one case does not keep the segment.
    let alone = archive.case(&sealed, &cases[0].case_id).await.unwrap();
    assert_eq!(alone.as_ref(), Some(&cases[0]));
    let messages = alone.unwrap().messages.into_iter();
    assert!(messages.map(|it| it.payload).all(|it| it.is_unique()));
    let file = folder
        .path()
        .join("archive/segments")
        .join(format!("{}.zst", sealed.name));
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let error = archive.segment(&sealed).await.unwrap_err();
    assert!(matches!(error, Error::Tampered { .. }) && error.to_string().contains(&sealed.name));
    std::fs::remove_file(&file).unwrap();
    let error = archive.segment(&sealed).await.unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    archive.keep(&packed).await.unwrap();
    archive.discard(&packed).await.unwrap();
    archive.discard(&packed).await.unwrap();
    assert_eq!(archive.names().await.unwrap(), Vec::<String>::new());
}
