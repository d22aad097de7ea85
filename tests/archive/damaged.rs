//! One case of a segment is damaged, and the others are not.

use std::path::Path;

use concord_archive::{Archive, Location, SegmentPlace, pack};
use concord_events::SegmentSealed;
use concord_testkit::{TestInstallation, event_data, unique, wait_for};
use serde_json::{Value, json};

use crate::archive::PATIENCE;
use crate::archive::stage::{
    concord, decide, installation, logged, removed, rounds_in_vain, said, views,
};

/// The last segment, as its event says.
async fn last_sealed(installation: &TestInstallation) -> Result<SegmentSealed, String> {
    let sealed = event_data(installation.client(), "archive.log.sealed").await?;
    let last = sealed.into_iter().last().ok_or("none")?;
    serde_json::from_value(last).map_err(|error| error.to_string())
}

/// Decides cases whose segment is one: they wait until the place of the archive is there again.
async fn archived_together(installation: &TestInstallation, place: &Path, cases: &[String]) {
    let first = unique("first");
    decide(installation, &first).await;
    removed(installation, &first).await;
    let away = place.with_file_name("away");
    std::fs::rename(place, &away).expect("it is moved");
    for case in cases {
        decide(installation, case).await;
    }
    rounds_in_vain(installation, "00000001-").await;
    std::fs::rename(&away, place).expect("it is moved back");
    for case in cases {
        removed(installation, case).await;
    }
}

/// Changes one byte of what was said in a case, in the file of a segment.
async fn damage(place: &Path, sealed: &SegmentSealed, case: &str) {
    let archive = Archive::new(Location::Folder(place.to_owned()));
    let mut cases = archive.segment(sealed).await.expect("it is whole");
    let of_case = cases.iter_mut().find(|one| one.case_id.as_str() == case);
    let message = &mut of_case.expect("the case").messages[0];
    let mut payload = message.payload.to_vec();
    payload[0] ^= 1;
    message.payload = payload.into();
    let packed = pack(
        SegmentPlace {
            installation: "concord".to_owned(),
            number: sealed.number,
            previous: sealed.previous.clone(),
            at: sealed.at,
            unique: "damaged".to_owned(),
        },
        &cases,
    );
    let file = place.join("segments").join(format!("{}.zst", sealed.name));
    std::fs::write(file, packed.expect("it is packed").segment).expect("it is written");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_damaged_case_is_named_and_the_others_are_read() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().join("archive");
    let archive = place.to_str().expect("a text");
    let installation = installation(archive).await;
    let cases = ["one", "two", "three"].map(unique);
    archived_together(&installation, &place, &cases).await;
    let sealed = wait_for("the segment", PATIENCE, async || {
        last_sealed(&installation).await
    })
    .await;
    assert_eq!(sealed.cases.len(), 3, "{sealed:?}");
    let [hurt, whole @ ..] = [0, 1, 2].map(|at| sealed.cases[at].case_id.to_string());
    let there = ["--archive", archive];
    let before = views(&installation, &whole[0], there).await;
    damage(&place, &sealed, &hurt).await;

    let verify = ["archive", "verify", "--archive", archive, "--json"];
    let (code, out, complaint) = said(&installation, &verify).await;
    let verified: Value = serde_json::from_str(&out).expect(&complaint);
    let faults = verified["faults"].as_array().expect("a list");
    let named: Vec<&Value> = faults.iter().map(|fault| &fault["case_id"]).collect();
    assert_eq!((code, named), (1, vec![&json!(hurt)]), "{verified:#}");
    assert_eq!(
        (&verified["cases"], &verified["cases_sealed"]),
        (&json!(3), &json!(4))
    );
    assert_eq!(views(&installation, &whole[0], there).await, before);
    let to = folder.path().join("restored");
    let to = to.to_str().expect("a text");
    let restore = ["archive", "restore", &whole[1], "--to", to];
    concord(&installation, &[&restore[..], &there].concat()).await;

    let file = format!("segments/{}.zst", sealed.name);
    for arguments in [&["case", "show", &hurt][..], &["check"]] {
        let arguments = [arguments, &there].concat();
        let (code, out, complaint) = said(&installation, &arguments).await;
        let told = format!("{out}{complaint}");
        let is_named = told.contains(&hurt) && told.contains(&file);
        assert!(
            code == 1 && is_named && told.contains("archive verify"),
            "{told}"
        );
    }
    std::fs::remove_file(place.join(&file)).expect("it is removed");
    let (_, out, _) = said(&installation, &["archive", "verify", "--archive", archive]).await;
    assert!(cases.iter().all(|case| out.contains(case)), "{out}");
}

/// As where a block of the disk is damaged: the description of each file is there, and the data of none.
#[tokio::test(flavor = "multi_thread")]
async fn data_that_an_object_store_has_lost_is_named_and_nobody_waits_for_it() {
    let installation = installation("object-store").await;
    let [first, second] = ["first", "second"].map(unique);
    decide(&installation, &first).await;
    removed(&installation, &first).await;
    let context = async_nats::jetstream::new(installation.client().clone());
    let store = context.get_stream("OBJ_CONCORD_ARCHIVE").await;
    let store = store.expect("the object store");
    let data = store.purge().filter("$O.CONCORD_ARCHIVE.C.*");
    let purged = data.await.expect("it is purged").purged;
    assert!(purged > 1, "{purged}");

    let lost = "its data is lost: 0 of 1 parts are stored";
    let verify = ["archive", "verify", "--archive", "object-store"];
    let (code, out, complaint) = said(&installation, &verify).await;
    let is_named = out.contains("manifests/00000001-") && out.contains(lost);
    assert!(
        code == 1 && is_named && out.contains(&first),
        "{out} {complaint}"
    );
    decide(&installation, &second).await;
    wait_for("the timers to say it", PATIENCE, async || {
        let log = logged(&installation);
        log.contains(lost).then_some(()).ok_or(log)
    })
    .await;
}
