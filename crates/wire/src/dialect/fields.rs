//! The fields of a JSON object, each as the text that was written.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::envelope::{from_json, not_an_object, value_from_json};
use crate::extensions::Extensions;
use crate::fault::Fault;

/// The fields of one object, and the JSON pointer to it.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    pointer: String,
    fields: BTreeMap<String, Box<RawValue>>,
}

/// All fields in their order, with those that are there twice.
struct FieldList(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for FieldList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldListVisitor;
        impl<'de> Visitor<'de> for FieldListVisitor {
            type Value = FieldList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FieldList, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(FieldList(fields))
            }
        }
        deserializer.deserialize_map(FieldListVisitor)
    }
}

impl Fields {
    /// Parses an object that stands at `pointer` of the message. No field may be there twice, because two readers could each take
    /// another one.
    pub(super) fn parse(json: &[u8], pointer: &str) -> Result<Self, Fault> {
        if !json.trim_ascii_start().starts_with(b"{")
            && serde_json::from_slice::<&RawValue>(json).is_ok()
        {
            return Err(not_an_object(pointer));
        }
        let FieldList(list) = from_json(json, pointer)?;
        let mut fields = BTreeMap::new();
        for (name, value) in list {
            if fields.contains_key(&name) {
                return Err(Fault::invalid(
                    child_pointer(pointer, &name),
                    "The field is there twice.",
                    "Say it once.",
                ));
            }
            fields.insert(name, value);
        }
        Ok(Self {
            pointer: pointer.to_owned(),
            fields,
        })
    }

    /// Parses an object as most readers do: of two fields with one name the last counts. `None` if it is not an object.
    pub(super) fn parse_leniently(json: &[u8]) -> Option<Self> {
        let FieldList(list) = serde_json::from_slice(json).ok()?;
        Some(Self {
            pointer: String::new(),
            fields: list.into_iter().collect(),
        })
    }

    /// No fields, for an object to be written that stands at `pointer` of the canonical envelope.
    pub(super) fn at(pointer: &str) -> Self {
        Self {
            pointer: pointer.to_owned(),
            fields: BTreeMap::new(),
        }
    }

    /// The JSON pointer to a field.
    pub(super) fn pointer(&self, name: &str) -> String {
        child_pointer(&self.pointer, name)
    }

    /// Whether there is a field of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// The names, in alphabetical order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(String::as_str)
    }

    /// The field as it was written.
    pub(super) fn get(&self, name: &str) -> Option<&RawValue> {
        self.fields.get(name).map(|value| &**value)
    }

    /// Removes a field and returns it as it was written.
    pub(super) fn take_raw(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.fields.remove(name)
    }

    /// Removes a field and parses it; `null` counts as missing.
    pub(super) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Fault> {
        match self.fields.remove(name) {
            Some(value) => value_from_json(value.get().as_bytes(), &self.pointer(name)),
            None => Ok(None),
        }
    }

    /// Removes a field that holds an object; an object without fields if it is missing.
    pub(super) fn take_object(&mut self, name: &str) -> Result<Self, Fault> {
        let pointer = self.pointer(name);
        match self.fields.remove(name) {
            Some(value) if value.get() != "null" => Self::parse(value.get().as_bytes(), &pointer),
            _ => Ok(Self::at(&pointer)),
        }
    }

    /// Adds a field. It is a fault if there is one of that name already.
    pub(super) fn put(&mut self, name: &str, value: &impl Serialize) -> Result<(), Fault> {
        let pointer = self.pointer(name);
        self.put_raw(
            name,
            to_raw_value(value).map_err(|error| unwritable(&pointer, &error))?,
        )
    }

    /// The same, with the text of the value.
    pub(super) fn put_raw(&mut self, name: &str, value: Box<RawValue>) -> Result<(), Fault> {
        self.check_free(name)?;
        self.fields.insert(name.to_owned(), value);
        Ok(())
    }

    /// Checks that there is no field of a name that the dialect uses for something else.
    pub(super) fn check_free(&self, name: &str) -> Result<(), Fault> {
        if !self.fields.contains_key(name) {
            return Ok(());
        }
        Err(Fault::invalid(
            self.pointer(name),
            format!("The dialect has one place for {name:?}, and it is taken."),
            "Give it another name, or let the agent speak the canonical envelope.",
        ))
    }

    /// Adds all of these fields.
    pub(super) fn put_all(&mut self, extensions: &Extensions) -> Result<(), Fault> {
        extensions
            .iter()
            .try_for_each(|(name, value)| self.put_raw(name, value.to_owned()))
    }

    /// Gives a field another name.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<(), Fault> {
        match self.fields.remove(from) {
            Some(value) => self.put_raw(to, value),
            None => Ok(()),
        }
    }

    /// The remaining fields, as unknown fields of an envelope.
    pub(super) fn into_extensions(self) -> Extensions {
        self.fields.into_iter().collect()
    }

    /// The object as JSON text.
    pub(super) fn into_raw(self) -> Result<Box<RawValue>, Fault> {
        to_raw_value(&self.fields).map_err(|error| unwritable(&self.pointer, &error))
    }

    /// The object as the bytes of a message.
    pub(super) fn into_bytes(self) -> Result<Vec<u8>, Fault> {
        serde_json::to_vec(&self.fields).map_err(|error| unwritable(&self.pointer, &error))
    }
}

/// The JSON pointer to a field of the object at `pointer`.
pub(super) fn child_pointer(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The fault of something that cannot be written as JSON.
pub(super) fn unwritable(pointer: &str, error: &serde_json::Error) -> Fault {
    Fault::invalid(
        pointer,
        format!("It cannot be written: {error}."),
        "Send values that JSON has.",
    )
}
