//! A bundle, checked without the broker.

use concord_testkit::{command, concord_program, finish};
use serde_json::Value;

use crate::audit::stage::Stage;

/// Checks a bundle: the exit code and what is said.
async fn verify(arguments: &[&str]) -> (i32, Value) {
    let mut run = command(concord_program());
    run.args([
        "--server",
        "nats://127.0.0.1:1",
        "audit",
        "verify",
        "--json",
    ]);
    let output = finish(run.args(arguments)).await;
    let said = serde_json::from_str(&output.out);
    (
        output.code,
        said.unwrap_or_else(|error| panic!("{error}: {output:?}")),
    )
}

/// Replaces a text in a file of the bundle.
fn change(bundle: &str, file: &str, from: &str, to: &str) {
    let path = std::path::Path::new(bundle).join(file);
    let text = std::fs::read_to_string(&path).expect("the file");
    assert!(text.contains(from), "{file} has no {from}");
    std::fs::write(path, text.replacen(from, to, 1)).expect("it is written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_is_checked_without_the_broker() {
    let stage = Stage::played().await;
    let (bundle, head) = (stage.kept("bundle"), stage.kept("head.json"));
    let key = stage.kept("head.key.pub");
    let (code, said) = verify(&[&bundle, "--against", &head, "--key", &key]).await;
    assert_eq!(code, 0, "{said:#}");
    assert_eq!(said["against"]["differences"], serde_json::json!([]));
    assert!(said["events"].as_u64() > Some(10), "{said:#}");

    // Somebody else's key.
    let stranger = stage.kept("stranger.key");
    let mut make = command(concord_program());
    make.args(["keys", "generate", &stranger]);
    finish(&mut make).await.good();
    let (code, said) = verify(&[&bundle, "--key", &format!("{stranger}.pub")]).await;
    assert_eq!(
        (code, &said["against"]["differences"][0]["kind"]),
        (1, &"signature".into())
    );

    // A signature that is not the key's.
    let signature = signature_of(&head);
    let other = if signature.starts_with('a') { "b" } else { "a" };
    let forged = format!("{other}{}", &signature[1..]);
    change(&bundle, "manifest.json", &signature, &forged);
    let (code, said) = verify(&[&bundle]).await;
    assert_eq!(code, 1, "{said:#}");
    change(&bundle, "manifest.json", &forged, &signature);

    // One word of one message.
    change(&bundle, "messages.jsonl", "Seen.", "Sene.");
    let (code, said) = verify(&[&bundle]).await;
    let difference = &said["against"]["differences"][0];
    assert_eq!(
        (code, &difference["kind"]),
        (1, &"changed".into()),
        "{said:#}"
    );
    assert_eq!(difference["stream"], "messages");
}

/// The signature in a head file.
fn signature_of(head: &str) -> String {
    let text = std::fs::read_to_string(head).expect("the file");
    let head: Value = serde_json::from_str(&text).expect("JSON");
    let signature = &head["head"]["signature"]["value"];
    signature.as_str().expect("a signature").to_owned()
}
