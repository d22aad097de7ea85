//! People who sign what they rule and review: most with their own key, some with another's, and some something else than what
//! they send.

use concord_domain::digest;
use concord_runtime::signing::SigningKey;
use concord_wire::payload::{ConflictOutcome, Review, Ruling};
use concord_wire::{AgentId, CaseId, MessageId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Agents, Draft};

/// The key of somebody of this name, the same in every world.
fn key_of(name: &str) -> Option<SigningKey> {
    let text = format!("ed25519-secret:{}", digest(name.as_bytes()));
    SigningKey::parse(&text, name).ok()
}

/// The public key that is registered with somebody.
pub(super) fn public_key(name: &str) -> Option<String> {
    key_of(name).map(|key| key.sign_text("").key)
}

impl Agents {
    /// The draft as some people send it: signed.
    pub(super) fn signed(&mut self, draft: Draft) -> Draft {
        if !self.random.chance(0.5) {
            return draft;
        }
        let signer = if self.random.chance(0.1) {
            format!("not {}", draft.from)
        } else {
            draft.from.clone()
        };
        let is_altered = self.random.chance(0.1);
        match signature(&draft, &signer) {
            Some(signature) => {
                let mut payload = draft.payload.clone();
                if let Some(fields) = payload.as_object_mut() {
                    fields.insert("signature".into(), signature);
                    if is_altered {
                        fields.insert("rationale".into(), json!("Something else."));
                    }
                }
                Draft { payload, ..draft }
            }
            None => draft,
        }
    }
}

/// The signature of `signer` under what a draft says; `None` where that is nothing to sign.
fn signature(draft: &Draft, signer: &str) -> Option<Value> {
    let by = AgentId::new(&draft.from).ok()?;
    let case = CaseId::new(draft.case.as_deref()?).ok()?;
    let message = MessageId::new(&draft.id).ok()?;
    let text = if draft.kind == "ruling" {
        let ruling = Ruling::deserialize(&draft.payload).ok()?;
        ruling.signed_text(&by, &case, &message)
    } else {
        let review = Review::deserialize(&draft.payload).ok()?;
        review.signed_text(&by, &case, &message)
    };
    serde_json::to_value(key_of(signer)?.sign_text(&text)).ok()
}

/// The digest of a provisional outcome that somebody was told of.
pub(super) fn digest_of_outcome(outcome: &Value) -> Option<String> {
    let outcome = ConflictOutcome::deserialize(outcome).ok()?;
    Some(digest(&serde_json::to_vec(&outcome).ok()?))
}
