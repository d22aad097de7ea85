//! What the dialects have in common: the fields that follow from the subject, and those that a dialect has no field for.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::fields::{Fields, child_pointer};
use crate::envelope::{self, Metadata, Rounded, check_confidence};
use crate::extensions::Extensions;
use crate::fault::Fault;
use crate::id::{AgentId, CaseId, MessageId, Recipient};
use crate::subject::{Lane, Subject, SubjectSpace};
use crate::{Envelope, MessageType, Priority, Timestamp};

/// The name, inside the most general field of a dialect, of the object with all that the dialect has no field for.
pub const OVERFLOW_FIELD: &str = "concord";

/// What the subject of a message says about it.
pub(super) struct Addressing<'a> {
    pub(super) from: &'a AgentId,
    pub(super) to: &'a Recipient,
    pub(super) kind: MessageType,
    case: Option<&'a CaseId>,
    lane: Lane,
}

impl<'a> Addressing<'a> {
    /// Takes it from the subject; a fault if the subject is not that of a message.
    pub(super) fn by(subject: &'a Subject) -> Result<Self, Fault> {
        let Subject::Message {
            lane,
            case,
            from,
            to,
            kind,
        } = subject
        else {
            return Err(Fault::invalid(
                "",
                "The subject is not that of a message.",
                "Publish on the msg subjects.",
            ));
        };
        Ok(Self {
            from,
            to,
            kind: MessageType::from(kind.clone()),
            case: case.as_ref(),
            lane: *lane,
        })
    }

    /// An envelope with nothing but what the subject says.
    pub(super) fn envelope(&self, subject: &Subject, bytes: &[u8]) -> Envelope {
        Envelope {
            message_id: MessageId::of_bytes(&SubjectSpace::default().build(subject), bytes),
            timestamp: Timestamp::default(),
            from_agent: self.from.clone(),
            to_agent: self.to.clone(),
            message_type: self.kind.clone(),
            case_id: self.case.cloned(),
            correlation_id: None,
            reply_to: None,
            round: None,
            priority: if self.lane == Lane::Urgent {
                Priority::Critical
            } else {
                Priority::Normal
            },
            requires_response: false,
            deadline: None,
            payload: Box::<RawValue>::default(),
            metadata: Metadata::default(),
            extensions: Extensions::default(),
        }
    }

    /// Takes the field with the sender, which must be that of the subject.
    pub(super) fn take_sender(&self, fields: &mut Fields, name: &str) -> Result<(), Fault> {
        match fields.take::<String>(name)? {
            Some(value) if value != self.from.as_str() => {
                Err(envelope::impostor(&fields.pointer(name), &value, self.from))
            }
            _ => Ok(()),
        }
    }

    /// Checks a recipient, which must be that of the subject; everyone may be written as `all`.
    pub(super) fn check_recipient(&self, pointer: &str, value: &str) -> Result<(), Fault> {
        if self.is_recipient(value) {
            return Ok(());
        }
        Err(envelope::differs(pointer, value, self.to.as_str()))
    }

    /// Whether this is a name of the recipient.
    pub(super) fn is_recipient(&self, value: &str) -> bool {
        value == self.to.as_str() || (*self.to == Recipient::All && value == "all")
    }

    /// Whether the message is for a group and not for one agent.
    pub(super) fn is_broadcast(&self) -> bool {
        !matches!(self.to, Recipient::Agent(_))
    }

    fn check_type(&self, pointer: &str, value: &MessageType) -> Result<(), Fault> {
        if *value == self.kind {
            return Ok(());
        }
        Err(envelope::differs(
            pointer,
            value.as_str(),
            self.kind.as_str(),
        ))
    }

    fn check_case(&self, pointer: &str, value: &CaseId) -> Result<(), Fault> {
        if self.case == Some(value) {
            return Ok(());
        }
        Err(envelope::differs(
            pointer,
            value.as_str(),
            self.case.map_or("_", CaseId::as_str),
        ))
    }

    /// Takes the field with the case, which must be that of the subject.
    pub(super) fn take_case(&self, fields: &mut Fields, name: &str) -> Result<(), Fault> {
        let value = fields.take::<CaseId>(name)?;
        value.map_or(Ok(()), |value| {
            self.check_case(&fields.pointer(name), &value)
        })
    }
}

/// The fields of the envelope that a dialect has no field for.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct OverflowFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message_id: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timestamp: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message_type: Option<MessageType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) case_id: Option<CaseId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reply_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) round: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) priority: Option<Priority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) requires_response: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deadline: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Metadata>,
}

impl OverflowFields {
    /// All fields of an envelope that could overflow; a dialect sets those to `None` that it has fields for.
    pub(super) fn of(envelope: &Envelope) -> Self {
        Self {
            message_id: Some(envelope.message_id.clone()),
            timestamp: known_time(envelope.timestamp),
            message_type: None,
            case_id: envelope.case_id.clone(),
            correlation_id: envelope.correlation_id.clone(),
            reply_to: envelope.reply_to.clone(),
            round: envelope.round,
            priority: (envelope.priority != Priority::Normal).then_some(envelope.priority),
            requires_response: envelope.requires_response.then_some(true),
            deadline: envelope.deadline,
            metadata: (envelope.metadata != Metadata::default()).then(|| envelope.metadata.clone()),
        }
    }

    /// Takes what stands under [`OVERFLOW_FIELD`] of `fields`.
    pub(super) fn take(fields: &mut Fields) -> Result<Self, Fault> {
        Ok(fields.take(OVERFLOW_FIELD)?.unwrap_or_default())
    }

    /// Takes the fields with canonical names beside those of the dialect: an agent may add them.
    pub(super) fn take_canonical(fields: &mut Fields) -> Result<Self, Fault> {
        Ok(Self {
            metadata: fields.take("metadata")?,
            ..Self::take_canonical_without_metadata(fields)?
        })
    }

    /// The same without the metadata.
    pub(super) fn take_canonical_without_metadata(fields: &mut Fields) -> Result<Self, Fault> {
        Ok(Self {
            message_id: fields.take("message_id")?,
            timestamp: fields.take("timestamp")?,
            message_type: fields.take("message_type")?,
            case_id: fields.take("case_id")?,
            correlation_id: fields.take("correlation_id")?,
            reply_to: fields.take("reply_to")?,
            round: fields.take("round")?,
            priority: fields.take("priority")?,
            requires_response: fields.take("requires_response")?,
            deadline: fields.take("deadline")?,
            metadata: None,
        })
    }

    /// Puts them under [`OVERFLOW_FIELD`] of `fields`, if there are any.
    pub(super) fn put(self, fields: &mut Fields) -> Result<(), Fault> {
        // Also if there are none: a field of the sender with this name would be read as overflow.
        fields.check_free(OVERFLOW_FIELD)?;
        if self == Self::default() {
            Ok(())
        } else {
            fields.put(OVERFLOW_FIELD, &self)
        }
    }

    /// Sets the fields of an envelope; `pointer` is where they stood.
    pub(super) fn apply(
        self,
        addressing: &Addressing<'_>,
        pointer: &str,
        envelope: &mut Envelope,
    ) -> Result<(), Fault> {
        let at = |name: &str| child_pointer(pointer, name);
        if let Some(kind) = self.message_type {
            addressing.check_type(&at("message_type"), &kind)?;
        }
        if let Some(case) = self.case_id {
            addressing.check_case(&at("case_id"), &case)?;
        }
        if let Some(metadata) = self.metadata {
            if let Some(confidence) = metadata.confidence {
                check_confidence(&at("metadata/confidence"), confidence)?;
            }
            let confidence = metadata.confidence.or(envelope.metadata.confidence);
            envelope.metadata = Metadata {
                confidence,
                ..metadata
            };
        }
        set(&mut envelope.message_id, self.message_id);
        set(&mut envelope.timestamp, self.timestamp);
        set(&mut envelope.priority, self.priority);
        set(&mut envelope.requires_response, self.requires_response);
        set_option(&mut envelope.correlation_id, self.correlation_id);
        set_option(&mut envelope.reply_to, self.reply_to);
        set_option(&mut envelope.round, self.round);
        set_option(&mut envelope.deadline, self.deadline);
        Ok(())
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn set_option<T>(field: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *field = value;
    }
}

/// A time that is not missing; the epoch stands for a missing one.
pub(super) fn known_time(time: Timestamp) -> Option<Timestamp> {
    (time != Timestamp::default()).then_some(time)
}

/// A time as text, without milliseconds if they are zero.
pub(super) fn time_text(time: Timestamp) -> String {
    time.to_string().replace(".000Z", "Z")
}

/// Takes the metadata: the overflow fields, the fields of the envelope's metadata, and the rest.
pub(super) fn take_metadata(
    mut metadata: Fields,
    addressing: &Addressing<'_>,
    envelope: &mut Envelope,
) -> Result<(), Fault> {
    let overflow = OverflowFields::take(&mut metadata)?;
    overflow.apply(addressing, &metadata.pointer(OVERFLOW_FIELD), envelope)?;
    let confidence = metadata.take("confidence")?;
    if let Some(confidence) = confidence {
        check_confidence(&metadata.pointer("confidence"), confidence)?;
    }
    envelope.metadata = Metadata {
        confidence,
        processing_time_ms: metadata
            .take("processing_time_ms")?
            .map(|Rounded(whole)| whole),
        version: metadata.take("version")?,
        memory_snapshot: metadata.take("memory_snapshot")?,
        extensions: metadata.into_extensions(),
    };
    Ok(())
}

/// The metadata with the overflow fields.
pub(super) fn metadata(envelope: &Envelope, overflow: OverflowFields) -> Result<Fields, Fault> {
    let mut fields = Fields::at("/metadata");
    let Metadata {
        confidence,
        processing_time_ms,
        version,
        memory_snapshot,
        extensions,
    } = &envelope.metadata;
    if let Some(confidence) = confidence {
        fields.put("confidence", confidence)?;
    }
    if let Some(millis) = processing_time_ms {
        fields.put("processing_time_ms", millis)?;
    }
    if let Some(version) = version {
        fields.put("version", version)?;
    }
    if let Some(snapshot) = memory_snapshot {
        fields.put("memory_snapshot", snapshot)?;
    }
    fields.put_all(extensions)?;
    OverflowFields {
        metadata: None,
        ..overflow
    }
    .put(&mut fields)?;
    Ok(fields)
}

/// Takes what is left of a message after the fields of its dialect: canonical fields are set, all others are kept.
pub(super) fn finish(
    mut fields: Fields,
    addressing: &Addressing<'_>,
    mut envelope: Envelope,
) -> Result<Envelope, Fault> {
    OverflowFields::take_canonical(&mut fields)?.apply(addressing, "", &mut envelope)?;
    addressing.take_sender(&mut fields, "from_agent")?;
    if let Some(to) = fields.take::<String>("to_agent")? {
        addressing.check_recipient("/to_agent", &to)?;
    }
    if fields.has("payload") {
        return Err(Fault::invalid(
            "/payload",
            "The message has a content and a payload.",
            "Send one of the two.",
        ));
    }
    envelope.extensions = fields.into_extensions();
    envelope.check_values()?;
    Ok(envelope)
}
