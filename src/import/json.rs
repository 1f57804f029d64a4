//! JSON objects field by field: duplicates refused, and what is not understood kept as it was written.
//!
//! A field stays the JSON text of its file until it is asked for, so numbers of any size and nested
//! values reach the payload unchanged.

use super::error::{ImportError, Place};
use super::report::shortened;
use super::timestamp::{TimestampError, parse_reverie_us};
use crate::store::open_regular;
use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::fmt;
use std::io::Read;
use std::marker::PhantomData;
use std::path::Path;

/// A JSON object as pairs in the order of the file. A key that occurs twice is an error.
#[derive(Debug)]
pub(super) struct Pairs<V>(pub(super) Vec<(String, V)>);

/// The fields of one object, not yet read.
pub(super) type Fields = Pairs<Box<RawValue>>;

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Reader<V> {
            type Value = Pairs<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut seen = HashSet::new();
                let mut pairs = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    if !seen.insert(key.clone()) {
                        let twice = format!("{key:?} occurs twice in one object");
                        return Err(A::Error::custom(twice));
                    }
                    let value = map
                        .next_value()
                        .map_err(|e| A::Error::custom(format!("{key:?}: {e}")))?;
                    pairs.push((key, value));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Reader(PhantomData))
    }
}

/// The bytes of a file that is held in memory whole.
pub(super) fn read_whole(path: &Path) -> Result<Vec<u8>, ImportError> {
    let mut bytes = Vec::new();
    open_regular(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|source| ImportError::Io {
            path: path.to_owned(),
            remedy: "",
            source,
        })?;
    Ok(bytes)
}

/// What the JSON file `path`, which holds `bytes`, says.
pub(super) fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, ImportError> {
    serde_json::from_slice(bytes).map_err(|source| ImportError::Json {
        path: path.to_owned(),
        source,
    })
}

/// One object that says where it stands when a field is wrong. Fields that are taken are gone;
/// what is left at the end is what nobody knew.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) place: Place,
    fields: Fields,
}

impl Record {
    pub(super) fn new(path: &Path, item: String, fields: Fields) -> Record {
        let path = path.to_owned();
        Record {
            place: Place { path, item },
            fields,
        }
    }

    /// The field as written, if it is there.
    pub(super) fn take(&mut self, name: &str) -> Option<Box<RawValue>> {
        let at = self.fields.0.iter().position(|(key, _)| key == name)?;
        Some(self.fields.0.remove(at).1)
    }

    /// The field as written, to be looked at.
    pub(super) fn get(&self, name: &str) -> Option<&RawValue> {
        let mut fields = self.fields.0.iter();
        fields.find(|(key, _)| key == name).map(|(_, raw)| &**raw)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether every field was taken.
    pub(super) fn is_empty(&self) -> bool {
        self.fields.0.is_empty()
    }

    /// The field as written, if it is there and not null.
    pub(super) fn take_some(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.take(name).filter(|raw| raw.get() != "null")
    }

    /// An error about `field`, which holds `found`.
    pub(super) fn wrong(
        &self,
        field: &'static str,
        found: Option<&RawValue>,
        expected: &'static str,
    ) -> ImportError {
        ImportError::Field {
            place: self.place.clone(),
            field,
            found: found.map_or_else(|| "absent".to_owned(), |raw| shortened(raw.get())),
            expected,
        }
    }

    fn read<T: DeserializeOwned>(
        &self,
        field: &'static str,
        raw: &RawValue,
        expected: &'static str,
    ) -> Result<T, ImportError> {
        serde_json::from_str(raw.get()).map_err(|_| self.wrong(field, Some(raw), expected))
    }

    /// A field that must be there.
    pub(super) fn required<T: DeserializeOwned>(
        &mut self,
        field: &'static str,
        expected: &'static str,
    ) -> Result<T, ImportError> {
        match self.take(field) {
            Some(raw) => self.read(field, &raw, expected),
            None => Err(self.wrong(field, None, expected)),
        }
    }

    /// A field that may be absent or null.
    pub(super) fn optional<T: DeserializeOwned>(
        &mut self,
        field: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, ImportError> {
        self.take_some(field)
            .map(|raw| self.read(field, &raw, expected))
            .transpose()
    }

    /// A number as f32, and whether it is exactly that. Absent and null are `None`.
    pub(super) fn number(
        &mut self,
        field: &'static str,
    ) -> Result<Option<(f32, bool)>, ImportError> {
        const EXPECTED: &str = "a finite number within f32";
        let Some(raw) = self.take_some(field) else {
            return Ok(None);
        };
        let wide: f64 = self.read(field, &raw, EXPECTED)?;
        let narrow = wide as f32;
        if !narrow.is_finite() {
            return Err(self.wrong(field, Some(&raw), EXPECTED));
        }
        Ok(Some((narrow, f64::from(narrow) == wide)))
    }

    /// A time as the Reverie archives write it, absent and null being `None`.
    pub(super) fn reverie_time(&mut self, field: &'static str) -> Result<Option<i64>, ImportError> {
        self.optional::<String>(field, "text of the form \"YYYY-MM-DD HH:MM:SS\"")?
            .map(|text| parse_reverie_us(&text).map_err(|e| self.time(field, e)))
            .transpose()
    }

    pub(super) fn time(&self, field: &'static str, source: TimestampError) -> ImportError {
        ImportError::Time {
            place: self.place.clone(),
            field,
            source,
        }
    }

    /// What is left, by name.
    pub(super) fn rest(self) -> Vec<(String, Box<RawValue>)> {
        let mut rest = self.fields.0;
        rest.sort_by(|a, b| a.0.cmp(&b.0));
        rest
    }
}

/// A payload: one JSON object with its fields in the order given, or no bytes for no fields.
pub(super) fn payload(fields: &[(String, Box<RawValue>)]) -> Vec<u8> {
    struct Object<'a>(&'a [(String, Box<RawValue>)]);
    impl Serialize for Object<'_> {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
        }
    }
    if fields.is_empty() {
        return Vec::new();
    }
    serde_json::to_vec(&Object(fields)).expect("text keys and JSON values are JSON")
}
