//! A JSON object by its fields, each as the text that was written: to take some, and to know what is left.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::envelope::{from_json, not_an_object};
use crate::extensions::Extensions;
use crate::fault::Fault;

/// The fields of one object, and where it stands.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    pointer: String,
    fields: BTreeMap<String, Box<RawValue>>,
}

/// All fields in their order, also those that are there twice.
struct Listed(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lister;
        impl<'de> Visitor<'de> for Lister {
            type Value = Listed;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Listed, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Listed(fields))
            }
        }
        deserializer.deserialize_map(Lister)
    }
}

impl Fields {
    /// The fields of an object in JSON, which stands at `pointer` of the message. None may be there twice, for two
    /// readers could each believe another one.
    pub(super) fn parse(json: &[u8], pointer: &str) -> Result<Self, Fault> {
        if !json.trim_ascii_start().starts_with(b"{")
            && serde_json::from_slice::<&RawValue>(json).is_ok()
        {
            return Err(not_an_object(pointer));
        }
        let Listed(listed) = from_json(json, pointer)?;
        let mut fields = BTreeMap::new();
        for (name, value) in listed {
            if fields.contains_key(&name) {
                return Err(Fault::invalid(
                    below(pointer, &name),
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

    /// The fields as most readers see them, who let the last of two count; none where it is not an object.
    pub(super) fn glance(json: &[u8]) -> Option<Self> {
        let Listed(listed) = serde_json::from_slice(json).ok()?;
        Some(Self {
            pointer: String::new(),
            fields: listed.into_iter().collect(),
        })
    }

    /// No fields, for an object to be written that stands at `pointer` of the canonical envelope.
    pub(super) fn at(pointer: &str) -> Self {
        Self {
            pointer: pointer.to_owned(),
            fields: BTreeMap::new(),
        }
    }

    /// Where a field stands.
    pub(super) fn pointer(&self, name: &str) -> String {
        below(&self.pointer, name)
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

    /// Takes a field out as it was written.
    pub(super) fn take_raw(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.fields.remove(name)
    }

    /// Takes a field out; `null` is as good as nothing.
    pub(super) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Fault> {
        match self.fields.remove(name) {
            Some(value) => from_json(value.get().as_bytes(), &self.pointer(name)),
            None => Ok(None),
        }
    }

    /// Takes out an object; no fields where there is none.
    pub(super) fn take_object(&mut self, name: &str) -> Result<Self, Fault> {
        let pointer = self.pointer(name);
        match self.fields.remove(name) {
            Some(value) if value.get() != "null" => Self::parse(value.get().as_bytes(), &pointer),
            _ => Ok(Self::at(&pointer)),
        }
    }

    /// Puts a field in. One that is there already is a fault: both cannot be said.
    pub(super) fn put(&mut self, name: &str, value: &impl Serialize) -> Result<(), Fault> {
        let pointer = self.pointer(name);
        self.put_raw(
            name,
            to_raw_value(value).map_err(|error| unwritable(&pointer, &error))?,
        )
    }

    /// The same, with the text of the value.
    pub(super) fn put_raw(&mut self, name: &str, value: Box<RawValue>) -> Result<(), Fault> {
        self.keep_free(name)?;
        self.fields.insert(name.to_owned(), value);
        Ok(())
    }

    /// Makes sure that there is no field of a name that the dialect uses for something else.
    pub(super) fn keep_free(&self, name: &str) -> Result<(), Fault> {
        if !self.fields.contains_key(name) {
            return Ok(());
        }
        Err(Fault::invalid(
            self.pointer(name),
            format!("The dialect has one place for {name:?}, and it is taken."),
            "Give it another name, or let the agent speak the canonical envelope.",
        ))
    }

    /// Puts all of these in.
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

    /// What is left, as fields that nobody knows.
    pub(super) fn into_extensions(self) -> Extensions {
        self.fields.into_iter().collect()
    }

    /// As the value of a field.
    pub(super) fn into_raw(self) -> Result<Box<RawValue>, Fault> {
        to_raw_value(&self.fields).map_err(|error| unwritable(&self.pointer, &error))
    }

    /// As a message.
    pub(super) fn into_bytes(self) -> Result<Vec<u8>, Fault> {
        serde_json::to_vec(&self.fields).map_err(|error| unwritable(&self.pointer, &error))
    }
}

/// The pointer to a field of what stands at `pointer`.
pub(super) fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// What cannot be written as JSON.
pub(super) fn unwritable(pointer: &str, error: &serde_json::Error) -> Fault {
    Fault::invalid(
        pointer,
        format!("It cannot be written: {error}."),
        "Send values that JSON has.",
    )
}
