//! Implements `perfprop replay A B`: shows a second recording beside the first, and what differs.

use std::path::Path;

use super::Error;
use super::args::Replay;
use super::replay::{Opened, Setup, at, end, no_recording, open, seen, setup};
use super::stream::{Stream, say};
use crate::monitor::{Measure, Monitor};
use crate::recording::Recording;
use crate::text;
use crate::tui::{Beside, Screen};
use crate::words::shown;

/// The second recording, with the names of the two.
pub(super) struct Second {
    names: [String; 2],
    recording: Recording,
    setup: Setup,
}

impl Second {
    /// Reads it; numbers of one are to mean the same as those of the other.
    pub(super) fn open(args: &Replay, path: &Path, first: (&Recording, &Setup)) -> Result<Self, Error> {
        if path.as_os_str() == "-" && args.files[0].as_os_str() == "-" {
            return Err(Error::Usage("standard input can be one of two recordings only".into()));
        }
        let Opened::Recording(recording) = open(path, args)? else { return Err(no_recording(path)) };
        let recording = *recording;
        let setup = setup(args, &recording)?;
        let names = [&args.files[0], path].map(|path| path.to_string_lossy().into_owned());
        let (a, b) = (&first.0.header, &recording.header);
        if a.modelled.is_some() != b.modelled.is_some() {
            let modelled = shown(if a.modelled.is_some() { &names[0] } else { &names[1] }).into_owned();
            let words = "a rate of a model is per 10^9 instructions, and one of a machine per second";
            return Err(Error::Usage(format!("only {modelled} was counted by a model: {words}; nothing to compare")));
        }
        if first.1.header.interval_ns != setup.header.interval_ns {
            say("the recordings have different intervals; -I gives both the same");
        }
        Ok(Self { names, recording, setup })
    }

    /// Converts it to what the screens take.
    pub(super) fn beside(self) -> Beside {
        let Self { names, recording, setup } = self;
        let end = end(&recording);
        Beside::new(names, recording.rounds, end, move || setup.monitor())
    }

    /// Prints the comparison as text.
    pub(super) fn print(&self, args: &Replay, first: &Recording, monitor: Monitor) -> Result<u8, Error> {
        let a = seen(first, monitor, at(args));
        let b = seen(&self.recording, self.setup.monitor(), at(args));
        let [a_name, b_name] = &self.names;
        Stream::stdout().print(&text::compare((a_name, &a), (b_name, &b), Measure::default()))?;
        Ok(0)
    }
}

/// Two recordings are compared first, unless the options name another screen.
pub(super) fn first_screen(args: &Replay, screen: Screen, second: Option<&Second>) -> Screen {
    if second.is_some() && args.look.screen.is_none() { Screen::Compare } else { screen }
}

/// The error where the second recording is missing.
pub(super) fn alone(file: &Path) -> Error {
    let file = shown(&file.to_string_lossy()).into_owned();
    Error::Usage(format!("the screen compare needs two recordings; try: perfprop replay {file} OTHER"))
}

/// More than two have no one difference.
pub(super) fn too_many(files: usize) -> Error {
    Error::Usage(format!("replay shows one recording, or compares two; {files} were given"))
}
