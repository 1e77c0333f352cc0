//! placeholder
/// A relation.
#[derive(Clone, Debug)]
pub struct Relation {
    /// id
    pub id: String,
    text: String,
}
impl Relation {
    /// formula
    pub fn formula(&self) -> &str {
        &self.text
    }
}
