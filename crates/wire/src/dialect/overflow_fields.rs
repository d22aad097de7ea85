//! What is common to the dialects: what the subject says of a message, and what a dialect carries for want of a field.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::fields::{Fields, below};
use crate::envelope::{self, Metadata, check_confidence};
use crate::extensions::Extensions;
use crate::fault::Fault;
use crate::id::{AgentId, CaseId, MessageId, Recipient};
use crate::subject::{Lane, Subject, SubjectSpace};
use crate::{Envelope, MessageType, Priority, Timestamp};

/// The name under which a dialect's most general field carries what the dialect has no field for.
pub const ROOM: &str = "concord";

/// What is known of a message before it is read.
pub(super) struct Told<'a> {
    pub(super) from: &'a AgentId,
    pub(super) to: &'a Recipient,
    pub(super) kind: MessageType,
    case: Option<&'a CaseId>,
    lane: Lane,
}

impl<'a> Told<'a> {
    /// By the subject.
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

    /// The envelope that says nothing but what the subject does.
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

    /// Takes the sender's name, which must be that of the subject.
    pub(super) fn take_sender(&self, fields: &mut Fields, name: &str) -> Result<(), Fault> {
        match fields.take::<String>(name)? {
            Some(said) if said != self.from.as_str() => {
                Err(envelope::impostor(&fields.pointer(name), &said, self.from))
            }
            _ => Ok(()),
        }
    }

    /// Checks a recipient's name, which must be that of the subject; everyone may be called `all`.
    pub(super) fn check_recipient(&self, pointer: &str, said: &str) -> Result<(), Fault> {
        if self.is_called(said) {
            return Ok(());
        }
        Err(envelope::differs(pointer, said, self.to.as_str()))
    }

    /// Whether the recipient is called so.
    pub(super) fn is_called(&self, said: &str) -> bool {
        said == self.to.as_str() || (*self.to == Recipient::All && said == "all")
    }

    /// Whether the message is for more than one agent, known by name.
    pub(super) fn is_broadcast(&self) -> bool {
        !matches!(self.to, Recipient::Agent(_))
    }

    fn check_type(&self, pointer: &str, said: &MessageType) -> Result<(), Fault> {
        if *said == self.kind {
            return Ok(());
        }
        Err(envelope::differs(
            pointer,
            said.as_str(),
            self.kind.as_str(),
        ))
    }

    fn check_case(&self, pointer: &str, said: &CaseId) -> Result<(), Fault> {
        if self.case == Some(said) {
            return Ok(());
        }
        Err(envelope::differs(
            pointer,
            said.as_str(),
            self.case.map_or("_", CaseId::as_str),
        ))
    }

    /// Takes the case under the name the dialect has for it.
    pub(super) fn take_case(&self, fields: &mut Fields, name: &str) -> Result<(), Fault> {
        let said = fields.take::<CaseId>(name)?;
        said.map_or(Ok(()), |said| self.check_case(&fields.pointer(name), &said))
    }
}

/// What a dialect has no field for.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Carried {
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

impl Carried {
    /// All of an envelope that could have to be carried; a dialect takes out what it has fields for.
    pub(super) fn of(envelope: &Envelope) -> Self {
        Self {
            message_id: Some(envelope.message_id.clone()),
            timestamp: stated(envelope.timestamp),
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

    /// Takes what a message carries under [`ROOM`] of `fields`.
    pub(super) fn take(fields: &mut Fields) -> Result<Self, Fault> {
        Ok(fields.take(ROOM)?.unwrap_or_default())
    }

    /// Takes what stands beside a dialect's own fields under its canonical name: an agent may know more than its dialect.
    pub(super) fn take_beside(fields: &mut Fields) -> Result<Self, Fault> {
        Ok(Self {
            metadata: fields.take("metadata")?,
            ..Self::take_beside_metadata(fields)?
        })
    }

    /// The same without the metadata.
    pub(super) fn take_beside_metadata(fields: &mut Fields) -> Result<Self, Fault> {
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

    /// Puts it under [`ROOM`] of `fields`, if there is anything.
    pub(super) fn put(self, fields: &mut Fields) -> Result<(), Fault> {
        // Even if there is nothing: what stands there of somebody else's would be read as this.
        fields.keep_free(ROOM)?;
        if self == Self::default() {
            Ok(())
        } else {
            fields.put(ROOM, &self)
        }
    }

    /// Adds it to an envelope; `pointer` is where it stood.
    pub(super) fn unload(
        self,
        told: &Told<'_>,
        pointer: &str,
        envelope: &mut Envelope,
    ) -> Result<(), Fault> {
        let at = |name: &str| below(pointer, name);
        if let Some(kind) = self.message_type {
            told.check_type(&at("message_type"), &kind)?;
        }
        if let Some(case) = self.case_id {
            told.check_case(&at("case_id"), &case)?;
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
        or_set(&mut envelope.correlation_id, self.correlation_id);
        or_set(&mut envelope.reply_to, self.reply_to);
        or_set(&mut envelope.round, self.round);
        or_set(&mut envelope.deadline, self.deadline);
        Ok(())
    }
}

fn set<T>(field: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *field = said;
    }
}

fn or_set<T>(field: &mut Option<T>, said: Option<T>) {
    if said.is_some() {
        *field = said;
    }
}

/// A time that was said.
pub(super) fn stated(time: Timestamp) -> Option<Timestamp> {
    (time != Timestamp::default()).then_some(time)
}

/// A time without its milliseconds where they are zero, as people write it.
pub(super) fn written(time: Timestamp) -> String {
    time.to_string().replace(".000Z", "Z")
}

/// Takes a metadata object: what it carries, what the envelope knows, and the rest.
pub(super) fn take_metadata(
    fields: &mut Fields,
    told: &Told<'_>,
    envelope: &mut Envelope,
) -> Result<(), Fault> {
    let mut metadata = fields.take_object("metadata")?;
    let carried = Carried::take(&mut metadata)?;
    carried.unload(told, &metadata.pointer(ROOM), envelope)?;
    let confidence = metadata.take("confidence")?;
    if let Some(confidence) = confidence {
        check_confidence(&metadata.pointer("confidence"), confidence)?;
    }
    envelope.metadata = Metadata {
        confidence,
        processing_time_ms: metadata.take("processing_time_ms")?,
        version: metadata.take("version")?,
        extensions: metadata.into_extensions(),
    };
    Ok(())
}

/// Writes a metadata object with what is carried.
pub(super) fn metadata(envelope: &Envelope, carried: Carried) -> Result<Box<RawValue>, Fault> {
    let mut fields = Fields::at("/metadata");
    let Metadata {
        confidence,
        processing_time_ms,
        version,
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
    fields.put_all(extensions)?;
    Carried {
        metadata: None,
        ..carried
    }
    .put(&mut fields)?;
    fields.into_raw()
}

/// What is left of a message once its dialect's fields are taken: canonical fields count, the others are kept.
pub(super) fn finish(
    mut fields: Fields,
    told: &Told<'_>,
    mut envelope: Envelope,
) -> Result<Envelope, Fault> {
    Carried::take_beside(&mut fields)?.unload(told, "", &mut envelope)?;
    told.take_sender(&mut fields, "from_agent")?;
    if let Some(to) = fields.take::<String>("to_agent")? {
        told.check_recipient("/to_agent", &to)?;
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
