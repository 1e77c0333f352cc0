//! Reads names of places in programs and libraries, on a thread of its own.
//!
//! A file may hold anything, and reading what it says may never end: whoever asks waits for an answer until a
//! deadline, and then leaves the thread to itself.

use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use rustc_hash::{FxHashMap, FxHashSet};

use super::debug_files::DebugFiles;
use super::program::ElfProgram;
use crate::stacks::live::mapped::{Module, ModuleId, OpenModule, part_of_descriptors};
use crate::stacks::{StackFrame, UnnamedFile};

/// How long one answer may take: the debug information of the largest programs takes some 10 s to read.
const ANSWER: Duration = Duration::from_secs(20);

/// Threads that may be left to themselves before no names of files are read any more.
const MOST_LEFT: usize = 3;

/// A place in a file, and who asks for its name.
#[derive(Clone, Debug)]
pub(super) struct FramesQuestion {
    pub(super) module: ModuleId,
    pub(super) opened: OpenModule,
    /// Offset in the file.
    pub(super) place: u64,
}

/// The frames at a place, the outermost first; `None` where the file doesn't say it.
type FramesAnswer = Option<Vec<StackFrame>>;

/// An answer, and what is to be told of how it was found.
type ToldAnswer = (FramesAnswer, Vec<String>);
type Answering = fn(&Receiver<FramesQuestion>, &Sender<ToldAnswer>);

/// Asks for names.
pub(super) struct Programs {
    asked: Option<(Sender<FramesQuestion>, Receiver<ToldAnswer>)>,
    /// What was told of how names were found since it was taken last.
    pub(super) notes: Vec<String>,
    answering: Answering,
    deadline: Duration,
    given_up: FxHashSet<ModuleId>,
}

impl Programs {
    pub(super) fn new() -> Self {
        Self { asked: None, notes: Vec::new(), answering: answer, deadline: ANSWER, given_up: FxHashSet::default() }
    }

    /// Whether the names of a file took too long.
    pub(super) fn has_given_up(&self, module: ModuleId) -> bool {
        self.given_up.contains(&module)
    }

    /// The answers in the order of the questions; files that gave none in time are reported once.
    pub(super) fn ask(&mut self, questions: &[FramesQuestion], unnamed: &mut Vec<UnnamedFile>) -> Vec<FramesAnswer> {
        let mut answers = Vec::with_capacity(questions.len());
        while answers.len() < questions.len() {
            let rest = &questions[answers.len()..];
            let late = self.ask_one_thread(rest, &mut answers);
            let Some(late) = late.map(|late| &rest[late]) else { continue };
            answers.push(None);
            self.asked = None;
            self.given_up.insert(late.module);
            let why = format!("naming its functions took longer than {} s and was given up", self.deadline.as_secs());
            let Module::File { path, .. } = &late.opened.module else { continue };
            unnamed.push(UnnamedFile { path: path.clone(), why });
        }
        answers
    }

    /// Takes answers until one doesn't come: gives the number of its question.
    fn ask_one_thread(&mut self, questions: &[FramesQuestion], answers: &mut Vec<FramesAnswer>) -> Option<usize> {
        let has_ended = self.given_up.len() > MOST_LEFT;
        let is_given_up = |question: &FramesQuestion| has_ended || self.given_up.contains(&question.module);
        if self.asked.is_none() && !questions.iter().all(is_given_up) {
            self.asked = start(self.answering);
        }
        let Some((to, from)) = self.asked.clone() else {
            answers.extend(questions.iter().map(|_| None));
            return None;
        };
        // A thread that has ended answers nothing, which is seen below.
        questions.iter().filter(|question| !is_given_up(question)).for_each(|question| drop(to.send(question.clone())));
        for (number, question) in questions.iter().enumerate() {
            if is_given_up(question) {
                answers.push(None);
                continue;
            }
            match from.recv_timeout(self.deadline) {
                Ok((answer, notes)) => {
                    answers.push(answer);
                    self.notes.extend(notes);
                }
                Err(_) => return Some(number),
            }
        }
        None
    }
}

fn start(answering: Answering) -> Option<(Sender<FramesQuestion>, Receiver<ToldAnswer>)> {
    let (to, questions) = unbounded();
    let (answers, from) = unbounded();
    thread::Builder::new().name("perfprop-names".into()).spawn(move || answering(&questions, &answers)).ok()?;
    Some((to, from))
}

/// Programs that are kept open: each has its symbols and debug information in memory. A build has thousands of
/// programs.
const MOST_OPEN: usize = 64;

/// Answers until nobody asks any more.
fn answer(questions: &Receiver<FramesQuestion>, answers: &Sender<ToldAnswer>) {
    let mut debug_files = DebugFiles::default();
    // Each may have some descriptors: of the program, of its debug information and of who reads that.
    let mut programs = Latest::new(part_of_descriptors(16, MOST_OPEN));
    for FramesQuestion { module, opened, place } in questions {
        let program = programs.get(module, || ElfProgram::open(opened.program()?, &mut debug_files));
        let answer = program.as_mut().and_then(|program| program.frames(place));
        if answers.send((answer, std::mem::take(&mut debug_files.notes))).is_err() {
            return;
        }
    }
}

/// What was made for modules: the ones asked for last.
struct Latest<T> {
    made: FxHashMap<ModuleId, Made<T>>,
    most: usize,
    asked: u64,
}

struct Made<T> {
    thing: T,
    /// When it was asked for last.
    asked: u64,
}

impl<T> Latest<T> {
    /// Nothing yet, and no more than so many things at a time.
    fn new(most: usize) -> Self {
        Self { made: FxHashMap::default(), most, asked: 0 }
    }

    /// What was made for a module; it is made now if it isn't there.
    fn get(&mut self, module: ModuleId, make: impl FnOnce() -> T) -> &mut T {
        self.asked += 1;
        if self.made.len() >= self.most && !self.made.contains_key(&module) {
            let oldest = self.made.iter().min_by_key(|(_, made)| made.asked).map(|(&module, _)| module);
            oldest.map(|module| self.made.remove(&module));
        }
        let made = self.made.entry(module).or_insert_with(|| Made { thing: make(), asked: 0 });
        made.asked = self.asked;
        &mut made.thing
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::files::Identity;
    use crate::stacks::live::mapped::ModuleContents;

    /// Answers with the place as a name, and never about place 666.
    fn odd(questions: &Receiver<FramesQuestion>, answers: &Sender<ToldAnswer>) {
        for question in questions {
            if question.place == 666 {
                thread::park();
            }
            let frame = StackFrame { name: question.place.to_string(), ..StackFrame::default() };
            let _ = answers.send((Some(vec![frame]), Vec::new()));
        }
    }

    #[test]
    fn what_was_asked_for_longest_ago_is_made_anew() {
        let (mut latest, mut made) = (Latest::new(2), Vec::new());
        for module in [1, 2, 1, 3, 1, 2] {
            latest.get(ModuleId(module), || made.push(module));
        }
        assert_eq!(made, [1, 2, 3, 2]);
        assert_eq!(latest.made.len(), 2);
    }

    #[test]
    fn a_file_that_gives_no_answer_in_time_is_told_and_others_are_named() {
        let question = |module, place| {
            let file = Module::File { path: format!("/{module}"), identity: Identity::default() };
            let opened = OpenModule { module: file, contents: ModuleContents::None, root: None };
            FramesQuestion { module: ModuleId(module), opened, place }
        };
        let mut programs = Programs { answering: odd, deadline: Duration::from_millis(50), ..Programs::new() };
        let mut unnamed = Vec::new();
        let questions = [question(0, 1), question(1, 2), question(1, 666), question(1, 3), question(0, 4)];
        let names = |answers: Vec<FramesAnswer>| -> Vec<_> {
            answers.into_iter().map(|answer| answer.map(|frames| frames[0].name.clone())).collect()
        };
        let named = |name: &str| Some(name.to_owned());
        let answers = names(programs.ask(&questions, &mut unnamed));
        assert_eq!(answers, [named("1"), named("2"), None, None, named("4")]);
        assert_eq!(unnamed.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["/1"]);
        assert_eq!(names(programs.ask(&[question(1, 3), question(0, 5)], &mut unnamed)), [None, named("5")]);
        assert_eq!(unnamed.len(), 1);
        // Threads aren't left behind without end.
        for module in 2..10 {
            programs.ask(&[question(module, 666)], &mut unnamed);
        }
        assert_eq!(unnamed.len(), 1 + MOST_LEFT);
        assert_eq!(names(programs.ask(&[question(0, 5)], &mut unnamed)), [None]);
    }
}
