//! Starts commands, says how they ended, and leaves work to a child of this process.

mod afterwards;
mod exit;
mod prepared;

pub use afterwards::{LastWrite, LastWrites, leave_closing_to_a_child};
pub use exit::Exit;
pub use prepared::{PreparedCommand, wait_for_children};
