//! A deserialiser that takes no list where an object is meant. What is derived for a struct reads a list as its fields, in the order in
//! which they are written in the code: past whoever looks at them by name, and so that a new field gives an old list another meaning.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};

/// Passes everything on to what it holds, on all levels, but refuses lists where `is_object` is set.
pub(super) struct NoLists<T> {
    inner: T,
    is_object: bool,
}

impl<T> NoLists<T> {
    /// Of anything but the visitor of a struct.
    pub(super) fn new(inner: T) -> Self {
        let is_object = false;
        Self { inner, is_object }
    }

    fn object(inner: T) -> Self {
        let is_object = true;
        Self { inner, is_object }
    }
}

macro_rules! deserialize {
    ($($name:ident($($argument:ident: $kind:ty),*) by $wrap:ident;)+) => {
        $(fn $name<V: Visitor<'de>>(self, $($argument: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$name($($argument,)* NoLists::$wrap(visitor))
        })+
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for NoLists<D> {
    type Error = D::Error;

    deserialize! {
        deserialize_any() by new;
        deserialize_bool() by new;
        deserialize_i8() by new;
        deserialize_i16() by new;
        deserialize_i32() by new;
        deserialize_i64() by new;
        deserialize_i128() by new;
        deserialize_u8() by new;
        deserialize_u16() by new;
        deserialize_u32() by new;
        deserialize_u64() by new;
        deserialize_u128() by new;
        deserialize_f32() by new;
        deserialize_f64() by new;
        deserialize_char() by new;
        deserialize_str() by new;
        deserialize_string() by new;
        deserialize_bytes() by new;
        deserialize_byte_buf() by new;
        deserialize_option() by new;
        deserialize_unit() by new;
        deserialize_unit_struct(name: &'static str) by new;
        deserialize_newtype_struct(name: &'static str) by new;
        deserialize_seq() by new;
        deserialize_tuple(len: usize) by new;
        deserialize_tuple_struct(name: &'static str, len: usize) by new;
        deserialize_map() by new;
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) by object;
        deserialize_enum(name: &'static str, variants: &'static [&'static str]) by new;
        deserialize_identifier() by new;
        deserialize_ignored_any() by new;
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! visit {
    ($($name:ident($value:ty);)+) => {
        $(fn $name<E: Error>(self, value: $value) -> Result<V::Value, E> {
            self.inner.$name(value)
        })+
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for NoLists<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool(bool);
        visit_i8(i8);
        visit_i16(i16);
        visit_i32(i32);
        visit_i64(i64);
        visit_i128(i128);
        visit_u8(u8);
        visit_u16(u16);
        visit_u32(u32);
        visit_u64(u64);
        visit_u128(u128);
        visit_f32(f32);
        visit_f64(f64);
        visit_char(char);
        visit_str(&str);
        visit_borrowed_str(&'de str);
        visit_string(String);
        visit_bytes(&[u8]);
        visit_borrowed_bytes(&'de [u8]);
        visit_byte_buf(Vec<u8>);
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(NoLists::new(value))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(NoLists::new(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        if self.is_object {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        self.inner.visit_seq(NoLists::new(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(NoLists::new(map))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, one: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(NoLists::new(one))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for NoLists<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(NoLists::new(value))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for NoLists<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.inner.next_element_seed(NoLists::new(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for NoLists<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.inner.next_key_seed(NoLists::new(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(NoLists::new(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for NoLists<A> {
    type Error = A::Error;
    type Variant = NoLists<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, variant) = self.inner.variant_seed(NoLists::new(seed))?;
        Ok((value, NoLists::new(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for NoLists<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.newtype_variant_seed(NoLists::new(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.inner.tuple_variant(len, NoLists::new(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.inner.struct_variant(fields, NoLists::object(visitor))
    }
}
