//! The command line of perfprop.
fn main() {}
