//! A map that keeps the order in which a file has its names.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Names and their values, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderedMap<V>(pub Vec<(String, V)>);

impl<V> Default for OrderedMap<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> OrderedMap<V> {
    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The value of a name, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        self.0.iter_mut().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Gives a name a value, in its place if it has one.
    pub fn set(&mut self, name: &str, value: V) {
        match self.get_mut(name) {
            Some(place) => *place = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }
}

impl<V: Serialize> Serialize for OrderedMap<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for OrderedMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OrderedVisitor(PhantomData))
    }
}

struct OrderedVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for OrderedVisitor<V> {
    type Value = OrderedMap<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedMap<V>, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = map.next_entry()? {
            all.push(entry);
        }
        Ok(OrderedMap(all))
    }
}
