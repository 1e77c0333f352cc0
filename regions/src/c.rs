//! Gives C and what calls C the same regions; `include/perfprop.h` says how.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

use crate::callback::{forget, on_report, report};
use crate::output::json;
use crate::region::{Counter, counter, enter_or_complain, enter_recursive, phase, record};
use crate::snapshot::Snapshot;
use crate::thread::{self, Call, Entered, Entry};

/// Text of C; what isn't UTF-8 is replaced. Empty for a null pointer.
#[expect(unsafe_code, reason = "C has no other texts")]
fn text<'a>(pointer: *const c_char) -> Cow<'a, str> {
    if pointer.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: the header asks for text that ends with a zero, which is there for as long as the call.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy()
}

fn begin(name: *const c_char, call: Call<'_>) -> u64 {
    // Before the name is looked at: where nobody asks, it is of no use.
    if !thread::records() {
        return 0;
    }
    enter_or_complain(&text(name), call, Entry::C).map_or(0, Entered::handle)
}

#[expect(unsafe_code, reason = "C finds it by this name")]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn perfprop_begin(name: *const c_char) -> u64 {
    begin(name, Call::Plain)
}

#[expect(unsafe_code, reason = "C finds it by this name")]
#[unsafe(no_mangle)]
extern "C" fn perfprop_begin_recorded(name: *const c_char) -> u64 {
    begin(name, Call::Recorded)
}

#[expect(unsafe_code, reason = "C finds it by this name")]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn perfprop_begin_recursive(name: *const c_char) -> u64 {
    if !thread::records() {
        return 0;
    }
    enter_recursive(&text(name), Entry::C).map_or(0, Entered::handle)
}

#[expect(unsafe_code, reason = "C finds it by this name")]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn perfprop_end(region: u64) {
    if let Some(entered) = Entered::of_handle(region) {
        thread::leave(entered);
    }
}

#[expect(unsafe_code, reason = "C finds it by this name")]
#[unsafe(no_mangle)]
extern "C" fn perfprop_begin_reverse() -> u64 {
    thread::begin_reverse().unwrap_or(0)
}

#[expect(unsafe_code, reason = "C finds it by this name")]
#[unsafe(no_mangle)]
extern "C" fn perfprop_end_reverse(name: *const c_char, start: u64) {
    if start != 0 {
        thread::end_reverse(|table| thread::apart(|| table.name(&text(name))).unwrap_or(0), start);
    }
}

#[expect(unsafe_code, reason = "C finds it by this name")]
#[unsafe(no_mangle)]
extern "C" fn perfprop_counter(name: *const c_char) -> c_int {
    counter(&text(name)).0.map_or(-1, |place| place as c_int)
}

#[expect(unsafe_code, reason = "C finds it by this name")]
#[unsafe(no_mangle)]
extern "C" fn perfprop_count(region: u64, counter: c_int, by: u64) {
    let counter = Counter(usize::try_from(counter).ok().filter(|&place| place < crate::layout::COUNTERS));
    if let (Some(entered), Counter(Some(place))) = (Entered::of_handle(region), counter) {
        thread::add(entered, place, by);
    }
}

#[expect(unsafe_code, reason = "C finds it by this name")]
#[unsafe(no_mangle)]
extern "C" fn perfprop_phase(name: *const c_char) {
    phase(&text(name));
}

#[expect(unsafe_code, reason = "C finds it by this name")]
#[unsafe(no_mangle)]
extern "C" fn perfprop_record(on: c_int) {
    record(on != 0);
}

/// What C wants to be called, and with what beside the rows.
struct Report {
    call: extern "C" fn(*const c_char, *mut c_void),
    data: *mut c_void,
}

#[expect(unsafe_code, reason = "C knows what its pointer is")]
// SAFETY: the header says that any thread may call it.
unsafe impl Send for Report {}

impl Report {
    fn report(&self, snapshot: &Snapshot) {
        // Zeros in names are escaped in JSON.
        if let Ok(text) = CString::new(json(snapshot)) {
            (self.call)(text.as_ptr(), self.data);
        }
    }
}

#[expect(unsafe_code, reason = "C finds it by this name")]
#[unsafe(no_mangle)]
extern "C" fn perfprop_on_report(call: Option<extern "C" fn(*const c_char, *mut c_void)>, data: *mut c_void) {
    let Some(call) = call else { return forget() };
    let report = Report { call, data };
    on_report(move |snapshot| report.report(snapshot));
}

#[expect(unsafe_code, reason = "C finds it by this name")]
#[unsafe(no_mangle)]
extern "C" fn perfprop_end_child() {
    crate::table::end(true);
}

#[expect(unsafe_code, reason = "C finds it by this name")]
#[unsafe(no_mangle)]
extern "C" fn perfprop_report() {
    report();
}
