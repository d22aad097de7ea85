//! Fields that an envelope does not know, kept as they were written: a translation between dialects loses nothing.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// Unknown fields by name, each as the JSON text that was sent. Numbers keep all their digits, and nothing is nested
/// deeper for having been kept.
#[derive(Debug, Clone, Default)]
pub struct Extensions(BTreeMap<String, Box<RawValue>>);

impl Extensions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The field of this name.
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.get(name).map(|value| &**value)
    }

    /// Adds a field. Returns the field that had this name before, if there was one.
    pub fn insert(
        &mut self,
        name: impl Into<String>,
        value: Box<RawValue>,
    ) -> Option<Box<RawValue>> {
        self.0.insert(name.into(), value)
    }

    /// Removes a field and returns it.
    pub fn remove(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.0.remove(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), &**value))
    }
}

impl PartialEq for Extensions {
    fn eq(&self, other: &Self) -> bool {
        let text = |entry: (&str, &RawValue)| (entry.0.to_owned(), entry.1.get().to_owned());
        self.iter().map(text).eq(other.iter().map(text))
    }
}

impl FromIterator<(String, Box<RawValue>)> for Extensions {
    fn from_iter<I: IntoIterator<Item = (String, Box<RawValue>)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}

impl Serialize for Extensions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// Implements `Deserialize` for a struct that keeps unknown fields in its field `extensions`, in one pass. The derived
/// implementation would buffer the whole message first, which costs too much for each message.
macro_rules! keeps_unknown {
    ($name:ident { $($field:ident: $presence:ident),+ $(,)? }) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(serde::Deserialize)]
                #[serde(field_identifier)]
                #[allow(non_camel_case_types)]
                enum Key {
                    $($field,)+
                    Unknown(String),
                }
                struct Reader;
                impl<'de> serde::de::Visitor<'de> for Reader {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("struct ", stringify!($name)))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        $(let mut $field = None;)+
                        let mut extensions = $crate::extensions::Extensions::default();
                        while let Some(key) = map.next_key::<Key>()? {
                            match key {
                                $(Key::$field => {
                                    if $field.is_some() {
                                        return Err(serde::de::Error::duplicate_field(stringify!($field)));
                                    }
                                    $field = Some(map.next_value()?);
                                })+
                                // If a field is there twice, the last one counts, as with most readers of JSON.
                                Key::Unknown(name) => {
                                    extensions.insert(name, map.next_value()?);
                                }
                            }
                        }
                        Ok($name {
                            $($field: keeps_unknown!(@$presence $field),)+
                            extensions,
                        })
                    }
                }
                deserializer.deserialize_map(Reader)
            }
        }
    };
    (@required $field:ident) => {
        $field.ok_or_else(|| serde::de::Error::missing_field(stringify!($field)))?
    };
    // What may be absent may be null: many serialisers write all fields.
    (@default $field:ident) => {
        Option::flatten($field).unwrap_or_default()
    };
    (@rounded $field:ident) => {
        Option::flatten($field).map(|$crate::envelope::Rounded(whole)| whole)
    };
}
pub(crate) use keeps_unknown;
