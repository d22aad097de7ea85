//! Whether what a person rules or reviews is signed as it must be. The signature itself is verified by the caller, for
//! nothing here can; which key counts is decided here.

use concord_wire::payload::{Signature, fingerprint};
use concord_wire::{AgentId, ErrorCode, Fault};

use super::Authority;

/// Where the signature stands in the message.
const POINTER: &str = "/payload/signature";

/// What came with a ruling or a review.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signed<'a> {
    /// The signature, where there is one.
    pub(crate) signature: Option<&'a Signature>,
    /// Whether it fits what is said and the key that it names.
    pub(crate) fits: bool,
    /// Whether the policy asks for one.
    pub(crate) required: bool,
    /// How to sign, as a command.
    pub(crate) how: &'static str,
}

impl Authority {
    /// Checks the signature of the sender `who` with the key that is registered with them.
    pub(crate) fn check_signature(&self, who: &AgentId, signed: &Signed<'_>) -> Result<(), Fault> {
        let registered = self
            .person
            .as_ref()
            .and_then(|person| person.public_key.as_deref());
        let register = format!(
            "An operator registers the key: concord person register {who} --keep --public-key FILE."
        );
        let Some(signature) = signed.signature else {
            if !signed.required {
                return Ok(());
            }
            let known = registered.map_or(register, |key| {
                format!("The key registered for {who} is {}.", fingerprint(key))
            });
            return refused(
                "The policy of this case asks for a signature.".to_owned(),
                format!("Sign it: {}. {known}", signed.how),
            );
        };
        let used = signature.fingerprint();
        match registered {
            None => refused(
                format!("It is signed with the key {used}, and no key is registered for {who}."),
                register,
            ),
            Some(key) if !key.eq_ignore_ascii_case(&signature.key) => {
                let key = fingerprint(key);
                refused(
                    format!(
                        "It is signed with the key {used}; the key registered for {who} is {key}."
                    ),
                    format!("Sign with the registered key. {register}"),
                )
            }
            Some(_) if !signed.fits => refused(
                format!(
                    "The signature with the key {used} does not fit what is said, who says it, the case and the message."
                ),
                format!("Sign it anew: {}.", signed.how),
            ),
            Some(_) => Ok(()),
        }
    }
}

fn refused(what: String, advice: String) -> Result<(), Fault> {
    Err(Fault::new(ErrorCode::Unauthorized, POINTER, what, advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{agent, authority};
    use concord_wire::payload::Role;

    #[test]
    fn who_signs_uses_the_registered_key_and_who_must_sign_does() {
        let keyed = |key: Option<&str>| {
            let mut known = authority("eve", &[Role::Arbiter]);
            if let Some(person) = &mut known.person {
                person.public_key = key.map(|digit| digit.repeat(64));
            }
            known
        };
        let signature = Signature {
            key: "aB".repeat(32),
            value: "0".repeat(128),
        };
        let with = |known: &Authority, signed: bool, fits: bool, required: bool| {
            let signature = signed.then_some(&signature);
            let how = "concord rule --key FILE";
            let signed = Signed {
                signature,
                fits,
                required,
                how,
            };
            known.check_signature(&agent("eve"), &signed).err()
        };
        let mut registered = keyed(None);
        if let Some(person) = &mut registered.person {
            person.public_key = Some("Ab".repeat(32));
        }
        let nobody = Authority::default();
        for (known, signed, fits, required, said) in [
            (&nobody, false, false, false, None),
            (&registered, false, false, false, None),
            (&registered, true, true, true, None),
            (&registered, true, true, false, None),
            (
                &registered,
                false,
                false,
                true,
                Some("asks for a signature"),
            ),
            (&nobody, false, false, true, Some("asks for a signature")),
            (&registered, true, false, false, Some("does not fit")),
            (
                &nobody,
                true,
                true,
                false,
                Some("no key is registered for eve"),
            ),
            (
                &keyed(Some("c")),
                true,
                true,
                false,
                Some("the key abababababababab; the key registered for eve is cccccccccccccccc"),
            ),
        ] {
            let fault = with(known, signed, fits, required);
            assert_eq!(fault.is_some(), said.is_some(), "{fault:?}");
            if let (Some(fault), Some(said)) = (fault, said) {
                assert!(fault.message.contains(said), "{fault}");
                assert_eq!(
                    (fault.code, fault.pointer.as_str()),
                    (ErrorCode::Unauthorized, POINTER)
                );
            }
        }
    }
}
