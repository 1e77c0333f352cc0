//! Finds where functions begin and end by a program's unwind information, for those that no symbol names.

use std::ops::Range;

use gimli::{BaseAddresses, CieOrFde, DebugFrame, EhFrame, NativeEndian, UnwindOffset, UnwindSection};
use object::read::{Object, ObjectSection};

use crate::stacks::live::mapped::ParsedSymbols;
use crate::stacks::live::unwinding::signal_trampolines;

/// The functions that unwind information knows, by their first addresses.
#[derive(Debug, Default)]
pub(super) struct FunctionRanges {
    functions: Vec<Range<u64>>,
    /// Where handlers of signals return to.
    trampolines: Vec<Range<u64>>,
}

impl FunctionRanges {
    /// Those of `.eh_frame` and of `.debug_frame`: parts of a program may have the one, and parts the other.
    pub(super) fn read(elf: &ParsedSymbols<'_>) -> Self {
        let section = |name| elf.section_by_name(name);
        let address = |name| section(name).map_or(0, |section| section.address());
        let bases = BaseAddresses::default().set_eh_frame(address(".eh_frame"));
        let bases = bases.set_text(address(".text")).set_got(address(".got"));
        let (mut functions, mut trampolines) = (Vec::new(), Vec::new());
        if let Some(section) = section(".eh_frame") {
            let frames = EhFrame::new(section.data().unwrap_or_default(), NativeEndian);
            functions = ranges(&frames, &bases);
            trampolines = signal_trampolines(&frames, &bases);
        }
        if let Some(data) = section(".debug_frame").and_then(|section| section.uncompressed_data().ok()) {
            let mut frames = DebugFrame::new(&data, NativeEndian);
            frames.set_address_size(if elf.is_64() { 8 } else { 4 });
            functions.extend(ranges(&frames, &bases));
        }
        functions.sort_unstable_by_key(|function| (function.start, function.end));
        Self { functions, trampolines }
    }

    /// The function at an address.
    pub(super) fn find(&self, address: u64) -> Option<&Range<u64>> {
        let behind = self.functions.partition_point(|function| function.start <= address);
        self.functions.get(behind.checked_sub(1)?).filter(|function| function.contains(&address))
    }

    /// Whether a handler of a signal returns to this address.
    pub(super) fn is_trampoline(&self, address: u64) -> bool {
        self.trampolines.iter().any(|code| code.contains(&address))
    }
}

fn ranges<R: gimli::Reader<Offset = usize>, S: UnwindSection<R>>(frames: &S, bases: &BaseAddresses) -> Vec<Range<u64>>
where
    S::Offset: UnwindOffset<usize>,
{
    let mut entries = frames.entries(bases);
    let mut functions = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(function) = entry else { continue };
        let Ok(function) = function.parse(S::cie_from_offset) else { continue };
        let start = function.initial_address();
        // The linker leaves entries of functions that it threw away, at address 0.
        if start > 0 {
            functions.push(start..start.saturating_add(function.len()));
        }
    }
    functions
}
