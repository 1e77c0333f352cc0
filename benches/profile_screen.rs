//! Measures the milliseconds that the Profile screen takes at 200x60 with 100,000 nodes: `cargo bench --bench
//! profile_screen`.
//!
//! Keys go through the real loop onto a terminal in memory, which takes a key when it has drawn what the one before
//! changed: so a key is the change that it asks for and one whole frame. A round is what the screen does when an
//! interval has ended: it looks at the tree anew, and draws. All numbers are medians.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench tells what it measured")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Instant;

use crossbeam_channel::{Receiver, bounded, never};
use perfprop::estimate::Linear;
use perfprop::monitor::Monitor;
use perfprop::profile::{Amount, Frame, FrameId, ProfileEvent, SampleMeasure, Tree};
use perfprop::random::SplitMix64;
use perfprop::run::End;
use perfprop::sampling::SamplerMessage;
use perfprop::session::OutputLine;
use perfprop::sources::Round;
use perfprop::stacks::StackQuality;
use perfprop::steps::median;
use perfprop::tui::{self, Feed, Screen, ScreenOptions, Terminal, TerminalScript};
use perfprop::units::WallNs;

#[path = "../tests/support/builders.rs"]
mod builders;

use builders::{SECOND, header};

const NODES: usize = 100_000;
const TIMES: u32 = 200;

struct Profiled {
    tree: Tree,
    grows: Arc<AtomicBool>,
    samples: Receiver<SamplerMessage>,
    output: Receiver<OutputLine>,
}

impl Feed for Profiled {
    fn samples(&self) -> &Receiver<SamplerMessage> {
        &self.samples
    }

    fn output(&self) -> &Receiver<OutputLine> {
        &self.output
    }

    fn profile(&mut self, _until: WallNs, see: &mut dyn FnMut(&Tree, &StackQuality)) {
        if self.grows.load(Relaxed) {
            let place = self.tree.sampled();
            let new = self.tree.len() as u64;
            let path = ["main", "grown", &format!("f{new}")].map(|name| self.tree.frame(&Frame::function(name)));
            let event = self.tree.event_ids().next().unwrap();
            self.tree.stack(place, path, event, Amount { samples: 1, weight: 1000 });
            self.tree.end(place);
        }
        see(&self.tree, &StackQuality::default());
    }

    fn end(&mut self, _last: &Round, _lost: u64) -> End {
        End::default()
    }
}

fn main() {
    let tree = tree();
    println!("{} nodes at 200x60", tree.len());
    let (terminal, script) = Terminal::scripted(200, 60).unwrap();
    let (rounds, samples) = bounded(0);
    let (signals_in, signals) = bounded(0);
    let grows = Arc::new(AtomicBool::new(false));
    let mut feed = Profiled { tree, grows: Arc::clone(&grows), samples, output: never() };
    let user = thread::spawn(move || {
        for second in 1..3 {
            rounds.send(round(second)).unwrap();
        }
        script.keys("4");
        let _ = script.screen();
        time_keys(&script, "flat: down", "j");
        script.keys("tt");
        time_keys(&script, "folded to what has 5 %: down", "j");
        script.keys("gjj");
        time_keys(&script, "zoom in and out", "<Enter><Esc>");
        script.keys("E");
        time_keys(&script, "all unfolded: down", "j");
        time_keys(&script, "all unfolded: to the last and back", "Gg");
        script.keys("/f1.*7<Enter>");
        time_keys(&script, "next of many matches", "n");
        script.keys("<Esc>tt");
        assert!(script.screen().contains("[4 Profile]"), "{}", script.screen());
        let mut seconds = 3..;
        let _ = script.screen();
        for what in ["the tree looked at anew", "a tree that has grown"] {
            let times = (0..TIMES).map(|_| timed(|| rounds.send(round(seconds.next().unwrap())).unwrap()));
            println!("{:>7.2} ms  an interval: {what}, and a frame", median(times.collect()).unwrap());
            grows.store(true, Relaxed);
            let _ = script.screen();
        }
        signals_in.send(15.into()).unwrap();
    });
    let monitor = Monitor::new(header([]), Vec::new(), Box::new(Linear::new(&[], &[])));
    let options = ScreenOptions { screen: Screen::Events, ..ScreenOptions::default() };
    tui::run_on(terminal, monitor, &mut feed, &signals, &options).unwrap();
    user.join().unwrap();
}

/// The median over many presses, each with its frame: a press is taken once the one before is on the screen.
fn time_keys(script: &TerminalScript, what: &str, keys: &str) {
    let _ = script.screen();
    let count = keys.split('>').map(|part| part.find('<').unwrap_or(part.len()) + usize::from(part.contains('<')));
    let presses = count.sum::<usize>() as f64;
    let times = (0..TIMES).map(|_| timed(|| assert!(script.keys(keys))) / presses).collect();
    println!("{:>7.2} ms  {what}", median(times).unwrap());
}

/// Milliseconds.
fn timed(what: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    what();
    begun.elapsed().as_secs_f64() * 1e3
}

fn round(second: u64) -> SamplerMessage {
    SamplerMessage::Round {
        round: Round { at: WallNs(second * SECOND), readings: Vec::new(), ..Round::default() },
        lost: 0,
    }
}

/// Stacks of 10 to 60 of 3,000 functions in 40 modules: some often, most seldom.
fn tree() -> Tree {
    let mut tree = Tree::default();
    let modules: Vec<_> = (0..40).map(|module| format!("/usr/lib/lib{module}.so")).collect();
    let name = |number: usize| format!("ns{}::function_of_some_length_f{number}(int, char const*)", number % 7);
    let frames: Vec<FrameId> = (0..3000)
        .map(|number| tree.frame(&Frame { module: &modules[number % 40], ..Frame::function(&name(number)) }))
        .collect();
    let event = tree.event(&ProfileEvent::new("cycles", SampleMeasure::Weighted("count".into())));
    let place = tree.sampled();
    let mut random = SplitMix64::new(1);
    let mut random = move |below: usize| random.draw() as usize % below;
    while tree.len() < NODES {
        let depth = 10 + random(50);
        let path: Vec<_> = (0..depth)
            .map(|level| {
                let choices = [1, 2, 4, 40][random(4)];
                frames[(level * 50 + random(choices)) % frames.len()]
            })
            .collect();
        tree.stack(place, path, event, Amount { samples: 1, weight: 1000 });
    }
    tree
}
