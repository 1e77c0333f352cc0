//! Finds the names of locations: reads symbols and debug information.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use blazesym::symbolize::source::{Kernel, Process, Source};
use blazesym::symbolize::{Input, Symbolizer};
use blazesym::{MaybeDefault, Pid};
use rustc_hash::FxHashSet;

use super::program::frames_of;
use super::programs::{FramesQuestion, Programs};
use crate::stacks::live::jit::{JitMaps, JitProcess};
use crate::stacks::live::mapped::{
    KernelModules, Module, ModuleContents, ModuleId, OUTSIDE, OpenModule, vdso_addresses,
};
use crate::stacks::live::unwinding::CodeLocation;
use crate::stacks::{NamelessReason, StackFrame, UnnamedFile};

/// The name of what no symbol and no file stands behind.
pub(super) const UNKNOWN: &str = "[unknown]";

/// Sources of names: programs, the kernel and perf maps.
pub(super) struct SymbolSources {
    pub(super) modules: Vec<OpenModule>,
    /// Those that were reported as unreadable.
    missing: FxHashSet<ModuleId>,
    pub(super) programs: Programs,
    symbolizer: Symbolizer,
    kernel_modules: KernelModules,
    vdso: Option<u64>,
    pub(super) jit: JitMaps,
}

/// What is known of a location: its frames, or that a process compiled the code there.
pub(super) enum NamedLocation {
    /// Frames of the location, the outermost first.
    Frames(Vec<StackFrame>),
    /// Code that a process made.
    Made(Arc<JitProcess>),
}

impl SymbolSources {
    pub(super) fn new() -> Self {
        Self {
            modules: Vec::new(),
            missing: FxHashSet::default(),
            programs: Programs::new(),
            symbolizer: Symbolizer::new(),
            kernel_modules: KernelModules::read(),
            vdso: vdso_addresses().map(|addresses| addresses.start),
            jit: JitMaps::default(),
        }
    }

    fn module(&self, id: ModuleId) -> &OpenModule {
        &self.modules[id.0 as usize]
    }

    /// What is known of each of the locations.
    pub(super) fn name(&mut self, locations: &[CodeLocation], unnamed: &mut Vec<UnnamedFile>) -> Vec<NamedLocation> {
        locations.iter().for_each(|location| self.report_missing(location.module, unnamed));
        let questions: Vec<_> = locations.iter().filter_map(|location| self.question(location)).collect();
        let mut answers = self.programs.ask(&questions, unnamed).into_iter();
        locations.iter().map(|location| self.named(location, &mut answers)).collect()
    }

    /// Reports once a file with samples that can't be read.
    fn report_missing(&mut self, module: ModuleId, unnamed: &mut Vec<UnnamedFile>) {
        let OpenModule { module: Module::File { path, .. }, contents, .. } = self.module(module) else { return };
        let why = match contents {
            ModuleContents::Refused(why) => why.to_string(),
            ModuleContents::Gone => "it is no longer there".into(),
            ModuleContents::File(_) | ModuleContents::Made(_) | ModuleContents::Dump(_) | ModuleContents::None => {
                return;
            }
        };
        let path = path.clone();
        if self.missing.insert(module) {
            unnamed.push(UnnamedFile { path, why });
        }
    }

    /// What a file has to be asked.
    fn question(&self, &CodeLocation { module, place }: &CodeLocation) -> Option<FramesQuestion> {
        let opened = self.module(module);
        let is_file = matches!(opened.contents, ModuleContents::File(_));
        is_file.then(|| FramesQuestion { module, opened: opened.clone(), place })
    }

    fn named(
        &self,
        location: &CodeLocation,
        answers: &mut impl Iterator<Item = Option<Vec<StackFrame>>>,
    ) -> NamedLocation {
        let place = location.place;
        let OpenModule { module, contents, .. } = self.module(location.module);
        let in_file = |path: &str, reason| vec![in_module(path, place, reason)];
        NamedLocation::Frames(match (module, contents) {
            (_, ModuleContents::Made(maker)) => return NamedLocation::Made(Arc::clone(maker)),
            (Module::File { path, .. }, ModuleContents::File(_)) => {
                let is_late = self.programs.has_given_up(location.module);
                let reason = if is_late { NamelessReason::Late } else { NamelessReason::Stripped };
                answers.next().flatten().unwrap_or_else(|| in_file(path, reason))
            }
            (Module::File { path, .. }, ModuleContents::Gone) => in_file(path, NamelessReason::ProgramGone),
            (Module::File { path, .. }, _) => in_file(path, NamelessReason::ProgramRefused),
            (Module::Kernel, _) => self.kernel(place),
            (Module::Vdso, _) => self.vdso(place),
            (Module::Unseen, _) => vec![unknown(NamelessReason::ProcessGone)],
            (Module::Outside, _) => {
                vec![StackFrame { name: OUTSIDE.into(), ..unknown(NamelessReason::ProcessOutside) }]
            }
            (Module::Memory { .. } | Module::Nowhere, _) => vec![unknown(NamelessReason::Unmapped)],
        })
    }

    fn kernel(&self, address: u64) -> Vec<StackFrame> {
        let module = self.kernel_modules.name(address);
        // Debug information of the kernel takes seconds to read, and kallsyms knows where it lies.
        let kernel = Kernel { vmlinux: MaybeDefault::None, ..Kernel::default() };
        let answer = self.symbolizer.symbolize_single(&Source::Kernel(kernel), Input::AbsAddr(address));
        match answer.ok().and_then(|symbolized| symbolized.into_sym()) {
            Some(symbol) => frames_of(&symbol, module, true),
            // Without the right to read kallsyms all addresses are one: none of them says anything.
            None => {
                vec![StackFrame { module: module.into(), kernel: true, ..unknown(NamelessReason::KernelHidden) }]
            }
        }
    }

    /// Names code of the vDSO, which this process has mapped too.
    fn vdso(&self, place: u64) -> Vec<StackFrame> {
        // Only that which the kernel put there is to be read, and no perf map that somebody wrote for this process.
        let source = Source::Process(Process { perf_map: false, ..Process::new(Pid::Slf) });
        let symbol = self.vdso.and_then(|start| {
            self.symbolizer.symbolize_single(&source, Input::AbsAddr(start + place)).ok()?.into_sym()
        });
        match symbol {
            Some(symbol) => frames_of(&symbol, "[vdso]", false),
            None => vec![in_module("[vdso]", place, NamelessReason::Stripped)],
        }
    }
}

/// A place of which nothing is known.
pub(super) fn unknown(reason: NamelessReason) -> StackFrame {
    StackFrame { name: UNKNOWN.into(), nameless: Some(reason), ..StackFrame::default() }
}

/// A place that no symbol covers.
fn in_module(path: &str, offset: u64, reason: NamelessReason) -> StackFrame {
    let file = path.strip_suffix(" (deleted)").unwrap_or(path);
    let short = Path::new(file).file_name().map_or_else(|| PathBuf::from(file), PathBuf::from);
    let name = format!("{}+{offset:#x}", short.display());
    StackFrame {
        name,
        module: path.to_owned(),
        offset: Some(offset).filter(|_| path.starts_with('/')),
        nameless: Some(reason),
        ..StackFrame::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::live::mapped::{Modules, SeenAddresses};

    #[test]
    fn a_place_without_a_symbol_has_the_file_and_the_offset() {
        let frame = in_module("/usr/bin/prog (deleted)", 0x1234, NamelessReason::Stripped);
        assert_eq!((frame.name.as_str(), frame.module.as_str()), ("prog+0x1234", "/usr/bin/prog (deleted)"));
    }

    #[test]
    fn a_file_that_is_gone_is_reported_once_and_only_if_it_was_sampled() {
        let mut modules = Modules::default();
        let file = |path: &str| Module::File { path: path.into(), identity: Default::default() };
        let [gone, _] = ["/nonexistent/a.so", "/nonexistent/b.so"]
            .map(|path| modules.number(file(path), &SeenAddresses::default()));
        let mut symbols = SymbolSources { modules: modules.since(0).cloned().collect(), ..SymbolSources::new() };
        let mut unnamed = Vec::new();
        let places = [0x10, 0x20].map(|place| CodeLocation { module: gone, place });
        let named = symbols.name(&places, &mut unnamed);
        let NamedLocation::Frames(frames) = &named[0] else { panic!("made") };
        assert_eq!(frames[0].name, "a.so+0x10");
        let reported: Vec<_> = unnamed.iter().map(ToString::to_string).collect();
        assert_eq!(reported, ["no names from /nonexistent/a.so: it is no longer there"]);
    }
}
