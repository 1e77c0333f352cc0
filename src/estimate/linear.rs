//! placeholder
/// x
#[derive(Debug)]
pub struct Linear;
