//! Signals of the operating system in, numbers in a channel out.

use std::io;
use std::thread;

use crossbeam_channel::{Receiver, bounded};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// From now on INT, TERM and HUP don't end the process, but come out here.
pub(super) fn listen() -> io::Result<Receiver<i32>> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let (sender, receiver) = bounded(16);
    let forward = move || {
        for signal in signals.forever() {
            // Whoever doesn't take sixteen signals won't miss the seventeenth.
            let _ = sender.try_send(signal);
        }
    };
    thread::Builder::new().name("signals".into()).spawn(forward)?;
    Ok(receiver)
}
