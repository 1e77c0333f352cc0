//! Catches the signals that end a program, and passes their numbers on through a channel.

use std::io;
use std::process;
use std::thread;

use crossbeam_channel::{Receiver, bounded};
use nix::libc::{SIGPWR, SIGRTMAX, SIGRTMIN, SIGSTKFLT};
use signal_hook::consts::{
    SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
};
use signal_hook::iterator::Signals;

use crate::sources::perf::Stop;

/// The signals that end a program (signal(7)), but those by which it ends itself and the real-time ones.
const ENDS: [i32; 13] = [
    SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ, SIGIO, SIGPWR, SIGSTKFLT,
];

/// So many signals that nobody took make the next one that ends a program end it at once.
const PATIENCE: usize = 3;

/// Catches the signals that end a program, and USR1, which saves; their numbers come from the channel. One that ends
/// stops the opening of counters too.
pub(super) fn listen(stop: &Stop) -> io::Result<Receiver<i32>> {
    forward(&[], stop)
}

/// Catches the signals that end a program, and those that stop and continue it.
pub(super) fn listen_for_screens(stop: &Stop) -> io::Result<Receiver<i32>> {
    forward(&[SIGTSTP, SIGCONT], stop)
}

fn forward(more: &[i32], stop: &Stop) -> io::Result<Receiver<i32>> {
    let all = ENDS.into_iter().chain(SIGRTMIN()..=SIGRTMAX()).chain([SIGUSR1]).chain(more.iter().copied());
    let mut signals = Signals::new(all)?;
    let (sender, receiver) = bounded(16);
    let stop = stop.clone();
    let forward = move || {
        for signal in signals.forever() {
            if ![SIGUSR1, SIGTSTP, SIGCONT].contains(&signal) {
                stop.ask(signal);
                // Who should take them is stuck, as in a write to a terminal that stands still.
                if sender.len() >= PATIENCE {
                    process::exit(128 + signal);
                }
            }
            // Whoever doesn't take sixteen signals won't miss the seventeenth.
            let _ = sender.try_send(signal);
        }
    };
    thread::Builder::new().name("perfprop-signals".into()).spawn(forward)?;
    Ok(receiver)
}
