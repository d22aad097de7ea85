//! Metadata that may say anything, as specification 2 has it: what does not fit a field of the envelope's metadata is kept beside it.

use serde_json::value::RawValue;

use super::fields::Fields;
use crate::envelope::Metadata;
use crate::fault::Fault;

/// The name, among the extensions of the metadata, of the object with what fits no field of that name.
const AS_STATED: &str = "as_stated";

/// The fields of the envelope's metadata.
const KNOWN: [&str; 4] = [
    "confidence",
    "processing_time_ms",
    "version",
    "memory_snapshot",
];

/// Moves what does not fit a known field under [`AS_STATED`].
pub(super) fn set_aside(metadata: &mut Fields) -> Result<(), Fault> {
    let mut aside = Fields::at(&metadata.pointer(AS_STATED));
    for name in KNOWN {
        let is_other = metadata.get(name).is_some_and(|value| !fits(name, value));
        if is_other && let Some(value) = metadata.take_raw(name) {
            aside.put_raw(name, value)?;
        }
    }
    if aside.names().next().is_none() {
        return Ok(());
    }
    metadata.put_raw(AS_STATED, aside.into_raw()?)
}

/// Moves it back, where reading would set it aside again.
pub(super) fn put_back(metadata: &mut Fields) -> Result<(), Fault> {
    let Some(aside) = metadata.get(AS_STATED).and_then(|value| {
        let aside = Fields::parse(value.get().as_bytes(), "").ok()?;
        let is_ours = aside.names().next().is_some()
            && aside.names().all(|name| {
                KNOWN.contains(&name)
                    && !metadata.has(name)
                    && aside.get(name).is_some_and(|value| !fits(name, value))
            });
        is_ours.then_some(aside)
    }) else {
        return Ok(());
    };
    metadata.take_raw(AS_STATED);
    metadata.put_all(&aside.into_extensions())
}

/// A number that is no confidence fits nevertheless, and is refused: it is meant as one, on another scale.
fn fits(name: &str, value: &RawValue) -> bool {
    let alone = format!("{{\"{name}\":{}}}", value.get());
    serde_json::from_str::<Metadata>(&alone).is_ok_and(|metadata| metadata.check_version().is_ok())
}
