//! Shows long texts in a pager, where standard output is a terminal.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use signal_hook::consts::SIGINT;
use signal_hook::{SigId, low_level};

use super::stream::say;

/// Whether long texts are shown in a pager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paging {
    WherePeopleLook,
    Never,
}

/// A pager that takes text until it is dropped; then it is waited for. Ctrl-C, which reaches both, is the pager's
/// alone.
pub(super) struct Pager {
    child: Child,
    interrupts: Option<SigId>,
}

impl Pager {
    /// Starts the pager: that of `PERFPROP_PAGER`, else of `PAGER`, else `less`, which ends by itself where the text
    /// fits the screen. `None` where nobody looks, none is wanted (`cat`, or an empty name) or it can't be started.
    pub(super) fn start(paging: Paging) -> Option<Self> {
        if paging == Paging::Never || !io::stdout().is_terminal() {
            return None;
        }
        let named = ["PERFPROP_PAGER", "PAGER"].into_iter().find_map(|name| env::var(name).ok());
        let is_default = named.is_none();
        let command = named.unwrap_or_else(|| "less".into());
        let program = command.split_whitespace().next()?;
        if program == "cat" {
            return None;
        }
        if crate::measure::check_command(&program.into()).is_err() {
            if !is_default {
                say(&format!("the pager {} isn't there", crate::names::shown(program)));
            }
            return None;
        }
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&command).stdin(Stdio::piped());
        if env::var_os("LESS").is_none() {
            shell.env("LESS", "FRX");
        }
        let child = shell.spawn().ok()?;
        Some(Self { child, interrupts: signal_hook::flag::register(SIGINT, Arc::default()).ok() })
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.child.stdin.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        self.interrupts.take().map(low_level::unregister);
    }
}
