//! Catches the signals that end a program, and passes them on through a channel.

use std::io;
use std::process;
use std::thread;

use crossbeam_channel::{Receiver, bounded};
use nix::libc::{SI_KERNEL, SIGPWR, SIGRTMAX, SIGRTMIN, SIGSTKFLT};
use signal_hook::consts::{
    SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;

use crate::session::{CaughtSignal, SignalSender};
use crate::sources::perf::Stop;

/// The signals that end a program (signal(7)), but those by which it ends itself and the real-time ones.
const ENDS: [i32; 13] = [
    SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ, SIGIO, SIGPWR, SIGSTKFLT,
];

/// So many signals that nobody took make the next one that ends a program end it at once.
const PATIENCE: usize = 3;

/// Catches the signals that end a program, and USR1, which saves; they come from the channel. One that ends
/// stops the opening of counters too.
pub(super) fn listen(stop: &Stop) -> io::Result<Receiver<CaughtSignal>> {
    forward(&[], stop)
}

/// Catches the signals that end a program, and those that stop and continue it.
pub(super) fn listen_for_screens(stop: &Stop) -> io::Result<Receiver<CaughtSignal>> {
    forward(&[SIGTSTP, SIGCONT], stop)
}

fn forward(more: &[i32], stop: &Stop) -> io::Result<Receiver<CaughtSignal>> {
    let all = ENDS.into_iter().chain(SIGRTMIN()..=SIGRTMAX()).chain([SIGUSR1]).chain(more.iter().copied());
    let mut signals = SignalsInfo::<WithRawSiginfo>::new(all)?;
    let (sender, receiver) = bounded(16);
    let stop = stop.clone();
    let forward = move || {
        for info in signals.forever() {
            let number = info.si_signo;
            if ![SIGUSR1, SIGTSTP, SIGCONT].contains(&number) {
                stop.ask(number);
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
