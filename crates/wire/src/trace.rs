//! W3C trace context of a case: derived from the case id, so that all messages and events of one case belong to
//! one trace, even if an agent drops the header.

use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::id::CaseId;

/// A sampled `traceparent` (version 00) that every process derives alike from the case id.
pub fn traceparent_of_case(case: &CaseId) -> String {
    let digest = Sha256::digest(case.as_str().as_bytes());
    let hex = hex(&digest);
    let hex = hex.get(..48).unwrap_or_default();
    let (trace, span) = hex.split_at(32);
    format!("00-{trace}-{span}-01")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_form_of_the_standard_and_differs_by_case() {
        let one = traceparent_of_case(&CaseId::new("c-1").unwrap());
        assert_eq!(one.len(), 55);
        assert_eq!(
            one.split('-').map(str::len).collect::<Vec<_>>(),
            [2, 32, 16, 2]
        );
        assert_ne!(one, traceparent_of_case(&CaseId::new("c-2").unwrap()));
    }
}
