//! Finds the code at sampled addresses, and unwinds through it.

use super::paths::{CodeLocation, LocationId, SeenPaths};
use super::process::Processes;
use super::unwind::{UnwindCache, Unwound};
use crate::stacks::live::mapped::{Module, SeenAddresses};
use crate::stacks::live::rings::UserState;

/// The processes that were seen, and the places in their code.
pub(in crate::stacks::live) struct SampledCode {
    pub(in crate::stacks::live) processes: Processes,
    pub(in crate::stacks::live) paths: SeenPaths,
    /// What lies in no module.
    pub(super) nowhere: LocationId,
    /// What lies in a process whose mappings aren't known.
    pub(super) unseen: LocationId,
    /// What lies in a process outside of this namespace of process ids.
    pub(in crate::stacks::live) outside: LocationId,
    pub(super) cache: UnwindCache,
}

impl SampledCode {
    pub(in crate::stacks::live) fn new() -> Self {
        let (mut processes, mut paths) = (Processes::default(), SeenPaths::default());
        let [nowhere, unseen, outside] = [Module::Nowhere, Module::Unseen, Module::Outside].map(|module| {
            let module = processes.modules.number(module, &SeenAddresses::default());
            paths.location(CodeLocation { module, place: 0 })
        });
        Self { processes, paths, nowhere, unseen, outside, cache: UnwindCache::default() }
    }

    /// Appends the locations of addresses of a process.
    pub(in crate::stacks::live) fn locate(&mut self, pid: i32, addresses: &[u64], out: &mut Vec<LocationId>) {
        if addresses.is_empty() {
            return;
        }
        let (space, _) = self.processes.space(pid);
        for &address in addresses {
            let location = space.known.get(&address).copied().unwrap_or_else(|| {
                let unknown = if space.is_empty() { self.unseen } else { self.nowhere };
                let place = space.place(address);
                let location =
                    place.map_or(unknown, |(module, place)| self.paths.location(CodeLocation { module, place }));
                space.remember(address, location);
                location
            });
            out.push(location);
        }
    }

    /// Appends the addresses of the stack that was copied of a process.
    pub(in crate::stacks::live) fn unwind(&mut self, pid: i32, user: &UserState<'_>, out: &mut Vec<u64>) -> Unwound {
        let (space, modules) = self.processes.space(pid);
        space.unwind(pid, user, modules, &mut self.cache, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_gone_is_told_from_an_address_without_code() {
        let mut code = SampledCode::new();
        let here = a_process_that_is_gone_is_told_from_an_address_without_code as fn() as usize as u64;
        let (pid, gone) = (std::process::id() as i32, i32::MAX - 3);
        let mut found = Vec::new();
        code.locate(pid, &[here, 8], &mut found);
        code.locate(gone, &[here], &mut found);
        assert_eq!(found[1..], [code.nowhere, code.unseen]);
        assert!(![code.nowhere, code.unseen].contains(&found[0]));
    }
}
