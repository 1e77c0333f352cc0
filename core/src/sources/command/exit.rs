//! Says how a command ended.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// The command returned this code.
    Code(i32),
    /// This signal killed the command.
    Signal(i32),
}

impl Exit {
    /// The code that a shell would give for it: the command's own, or 128 plus the signal.
    pub fn shell_code(self) -> u8 {
        let code = match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        };
        u8::try_from(code & 0xff).unwrap_or(u8::MAX)
    }

    /// How the command ended, in words: `ended with code 7`, `was ended by SIGSEGV`.
    pub fn told(self) -> String {
        match self {
            Self::Code(code) => format!("ended with code {code}"),
            Self::Signal(_) => format!("was ended by {self}"),
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Code(status.into_raw()),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exit {code}"),
            Self::Signal(number) => match Signal::try_from(number) {
                Ok(signal) => write!(f, "{signal}"),
                Err(_) => write!(f, "signal {number}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_map_to_shell_codes() {
        assert_eq!(Exit::Code(7).shell_code(), 7);
        assert_eq!(Exit::Signal(15).shell_code(), 143);
        assert_eq!(Exit::from(ExitStatus::from_raw(9)), Exit::Signal(9));
        assert_eq!(Exit::from(ExitStatus::from_raw(7 << 8)).to_string(), "exit 7");
        assert_eq!(Exit::Signal(15).to_string(), "SIGTERM");
    }
}
