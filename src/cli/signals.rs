//! Catches the signals that end a program, and passes them on through a channel.

use std::fs;
use std::io;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, bounded};
use nix::libc::{SI_KERNEL, SIGPWR, SIGRTMAX, SIGRTMIN, SIGSTKFLT};
use signal_hook::consts::{
    SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;
use signal_hook::low_level::emulate_default_handler;

use super::error::code_of;
use crate::session::{CaughtSignal, SignalSender};
use crate::sources::perf::CancelToken;

/// The signals that end a program (signal(7)), but those by which it ends itself and the real-time ones.
const ENDS: [i32; 13] = [
    SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ, SIGIO, SIGPWR, SIGSTKFLT,
];

/// So many signals that nobody took make the next one that ends a program end it at once.
const PATIENCE: usize = 3;

/// Catches the signals that end a program, and USR1, which saves; they come from the channel. One that ends
/// stops the opening of counters too.
pub(super) fn listen(stop: &CancelToken) -> io::Result<Receiver<CaughtSignal>> {
    forward(&[], stop)
}

/// Catches the signals that end a program, and those that stop and continue it.
pub(super) fn listen_for_screens(stop: &CancelToken) -> io::Result<Receiver<CaughtSignal>> {
    forward(&[SIGTSTP, SIGCONT], stop)
}

fn forward(more: &[i32], stop: &CancelToken) -> io::Result<Receiver<CaughtSignal>> {
    let ignored = ignored();
    // What perfprop was started to ignore, as nohup has it ignore HUP, ends neither it nor the command. Shells have all
    // that runs in their background ignore INT, and scripts end that by INT all the same.
    let is_caught = |&number: &i32| [SIGINT, SIGTERM].contains(&number) || ignored & bit(number) == 0;
    let ends = ENDS.into_iter().chain(SIGRTMIN()..=SIGRTMAX()).filter(is_caught);
    let all = ends.chain([SIGUSR1]).chain(more.iter().copied());
    let mut signals = SignalsInfo::<WithRawSiginfo>::new(all)?;
    let (sender, receiver) = bounded(16);
    let stop = stop.clone();
    let forward = move || {
        for info in signals.forever() {
            let number = info.si_signo;
            if ![SIGUSR1, SIGTSTP, SIGCONT].contains(&number) {
                stop.ask(number);
                WAS_INTERRUPTED.fetch_or(number == SIGINT, Ordering::Relaxed);
                // Who should take them is stuck, as in a write to a terminal that stands still.
                if sender.len() >= PATIENCE {
                    process::exit(128 + number);
                }
            }
            // Whoever doesn't take sixteen signals won't miss the seventeenth.
            let sender_of = if info.si_code == SI_KERNEL { SignalSender::Kernel } else { SignalSender::Process };
            let _ = sender.try_send(CaughtSignal { number, sender: sender_of });
        }
    };
    thread::Builder::new().name("perfprop-signals".into()).spawn(forward)?;
    Ok(receiver)
}

/// Whether perfprop was interrupted.
static WAS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Ends perfprop by INT, if it was interrupted and its exit code says so: a shell leaves its loop for a command that
/// ended by that signal, and not for one that ended with 130. All else has been done.
pub(super) fn end_interrupted(code: u8) {
    if WAS_INTERRUPTED.load(Ordering::Relaxed) && code == code_of(SIGINT) {
        // If that can't be, the code says so.
        let _ = emulate_default_handler(SIGINT);
    }
}

/// The signals that this process ignores, a bit for each (proc(5)); perfprop itself ignores none of those that it
/// catches.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The bit of a signal in such a mask.
fn bit(number: i32) -> u64 {
    1u64.checked_shl(number.cast_unsigned().wrapping_sub(1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_signals() {
        assert_eq!([bit(1), bit(15), bit(64), bit(0), bit(65)], [1, 1 << 14, 1 << 63, 0, 0]);
        assert_eq!(ignored() & bit(SIGUSR2), 0);
    }
}
