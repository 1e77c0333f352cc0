//! Numbers the texts of a profile.

use std::collections::HashMap;

/// The table of strings; its first is empty.
pub(super) struct Texts {
    pub(super) table: Vec<Vec<u8>>,
    ids: HashMap<Vec<u8>, i64>,
}

impl Texts {
    pub(super) fn new() -> Self {
        Self { table: vec![Vec::new()], ids: HashMap::from([(Vec::new(), 0)]) }
    }

    pub(super) fn id(&mut self, text: &str) -> i64 {
        if let Some(&id) = self.ids.get(text.as_bytes()) {
            return id;
        }
        let id = self.table.len() as i64;
        self.table.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }
}
