//! Starts the command line of perfprop.

use std::process::ExitCode;

fn main() -> ExitCode {
    perfprop::cli::main()
}
