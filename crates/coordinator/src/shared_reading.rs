//! Reading what a case shares, by request and reply: anybody who is in the case, under their own name. Nothing is stored of it.

use concord_domain::aggregates::case::{self, CaseState, Sharing, check_member};
use concord_domain::aggregates::commitment::id_of;
use concord_events::{Aggregate, CaseOpened};
use concord_runtime::Ports;
use concord_runtime::service::api::{self, Call, Verb, answer};
use concord_runtime::service::operator_api::unread;
use concord_runtime::service::reading::no_case;
use concord_runtime::service::under_way::UnderWay;
use concord_wire::envelope::from_json;
use concord_wire::payload::{BoardEntry, Lease};
use concord_wire::{CaseId, Fault};
use serde::Deserialize;
use serde_json::json;

use crate::shared::Shared;

/// `board`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoardAsked {
    case_id: CaseId,
    /// One entry; all of them when it is left out.
    #[serde(default)]
    name: Option<String>,
}

/// `briefing`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BriefingAsked {
    case_id: CaseId,
}

/// `commitments`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommitmentsAsked {
    /// The case; none for a resource outside cases.
    #[serde(default)]
    case_id: Option<CaseId>,
    /// One resource; all of the case when it is left out.
    #[serde(default)]
    resource: Option<String>,
}

/// Answers `board`: `{"case_id": ..., "entries": [...]}`, each with its value, by name. No entry of a name is no fault: whoever
/// writes it first bases it on version 0.
pub(crate) fn board<P: Ports>(shared: &Shared<P>) -> Verb {
    api::verb(
        (shared.clone(), UnderWay::of_pages()),
        |(shared, under_way), call| async move {
            let asked: BoardAsked = from_json(&call.body, "")?;
            let _place = under_way.place(&call)?;
            shared.check_reader(&call, &asked.case_id).await?;
            let board = shared.boards.load(&asked.case_id.token()).await;
            let state = board.map_err(|error| unread(&error))?.state;
            let is_asked = |entry: &&BoardEntry| {
                let name = asked.name.as_ref();
                name.is_none_or(|name| *name == entry.listing.name)
            };
            let entries = state.entries.values().map(AsRef::as_ref);
            let entries: Vec<&BoardEntry> = entries.filter(is_asked).collect();
            answer(&json!({ "case_id": asked.case_id, "entries": entries }))
        },
    )
}

/// Answers `briefing`: what somebody must know who comes to the case late or comes back, as the payload of a `session_briefing`.
pub(crate) fn briefing<P: Ports>(shared: &Shared<P>) -> Verb {
    api::verb(
        (shared.clone(), UnderWay::of_pages()),
        |(shared, under_way), call| async move {
            let BriefingAsked { case_id } = from_json(&call.body, "")?;
            let _place = under_way.place(&call)?;
            shared.check_reader(&call, &case_id).await?;
            let id = case_id.token();
            let case = shared.cases.load(&id).await;
            let case = case.map_err(|error| unread(&error))?.state;
            let board = shared.boards.load(&id).await;
            let board = board.map_err(|error| unread(&error))?.state;
            let commitments = shared.commitments.load(&id).await;
            let commitments = commitments.map_err(|error| unread(&error))?.state;
            match case::briefing(&case, &board, &commitments) {
                Some(briefing) => answer(&briefing),
                None => Err(no_case(&shared.service.ports, &case_id)),
            }
        },
    )
}

/// Answers `commitments`: `{"leases": [...]}`, those that stand, by resource. Who has a resource outside cases everybody may ask.
pub(crate) fn commitments<P: Ports>(shared: &Shared<P>) -> Verb {
    api::verb(
        (shared.clone(), UnderWay::of_pages()),
        |(shared, under_way), call| async move {
            let CommitmentsAsked { case_id, resource } = from_json(&call.body, "")?;
            let _place = under_way.place(&call)?;
            if let Some(case_id) = &case_id {
                shared.check_reader(&call, case_id).await?;
            } else if resource.is_none() {
                return Err(Fault::invalid(
                    "",
                    "Neither a case nor a resource is named.",
                    "Name a case_id, a resource, or both.",
                ));
            }
            let id = id_of(case_id.as_ref(), resource.as_deref().unwrap_or_default());
            let known = shared.commitments.load(&id).await;
            let state = known.map_err(|error| unread(&error))?.state;
            let is_asked = |lease: &&Lease| {
                let resource = resource.as_ref();
                resource.is_none_or(|resource| *resource == lease.resource)
            };
            let standing = state.standing(case_id.as_ref()).values();
            let leases: Vec<&Lease> = standing.filter(is_asked).collect();
            answer(&json!({ "leases": leases }))
        },
    )
}

impl<P: Ports> Shared<P> {
    /// The opening of a case that is in the streams. One that is remembered here may be archived all the same, and what it shares
    /// cannot be read any more.
    pub(crate) fn opening<'a>(
        &self,
        case_id: &CaseId,
        case: &'a CaseState,
    ) -> Result<&'a CaseOpened, Fault> {
        let ports = &self.service.ports;
        let is_archived = ports.is_archived(Aggregate::Case, &case_id.token());
        let opened = case.opened.as_deref().filter(|_| !is_archived);
        opened.ok_or_else(|| no_case(ports, case_id))
    }

    /// Checks that there is such a case, and that whoever asks is in it. Without a name it is the installation's own operator.
    pub(crate) async fn check_reader(&self, call: &Call, case_id: &CaseId) -> Result<(), Fault> {
        let case = self.cases.load(&case_id.token()).await;
        let case = case.map_err(|error| unread(&error))?.state;
        self.opening(case_id, &case)?;
        match &call.caller {
            Some(caller) => check_member(&case, &caller.name, &caller.authority, Sharing::Read),
            None => Ok(()),
        }
    }
}
