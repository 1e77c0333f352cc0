//! Leaves out of stacks the functions with which an interpreter calls the functions of its language.
//!
//! ```text
//! main ─ Py_BytesMain ─ … ─ work ─ _PyEval_EvalFrameDefault ─ PyObject_Vectorcall ─ leaf ─ _PyEval_EvalFrameDefault
//! main ─ work ─ leaf
//! ```
//!
//! What was sampled in them counts for the function of the language that they run. Functions of the runtime that do
//! something else, such as `list_sort`, stay. A stack without functions of a language stays as it is.

use super::StackFrame;

/// The module of functions that are read from the memory of Python's interpreter.
pub const PYTHON: &str = "[python]";

/// Functions that do nothing but call and run others. From CPython 3.11 to 3.14 (`Python/ceval.c`, `Objects/call.c`,
/// `Python/pythonrun.c`, `Modules/main.c`), V8 11 to 13 (`src/execution`, `src/builtins`), OpenJDK 17 to 21
/// (`javaCalls.cpp`).
const NAMES: &[&str] = &[
    "_PyEval_EvalFrameDefault",
    "_PyEval_EvalFrame",
    "_PyEval_Vector",
    "_PyFunction_Vectorcall",
    "_PyObject_Vectorcall",
    "_PyObject_VectorcallTstate",
    "_PyObject_VectorcallDictTstate",
    "_PyObject_VectorcallPrepend",
    "_PyVectorcall_Call",
    "_PyObject_Call",
    "_PyObject_Call_Prepend",
    "_PyObject_FastCallDictTstate",
    "_PyObject_MakeTpCall",
    "PyObject_Vectorcall",
    "PyObject_VectorcallMethod",
    "PyObject_Call",
    "PyObject_CallOneArg",
    "PyObject_CallNoArgs",
    "PyObject_CallFunctionObjArgs",
    "PyObject_CallMethodObjArgs",
    "PyVectorcall_Call",
    "PyCFunction_Call",
    "object_vacall",
    "method_vectorcall",
    "vectorcall_method",
    "vectorcall_unbound",
    "vectorcall_maybe",
    "cfunction_call",
    "cfunction_vectorcall_O",
    "cfunction_vectorcall_NOARGS",
    "cfunction_vectorcall_FASTCALL",
    "cfunction_vectorcall_FASTCALL_KEYWORDS",
    "cfunction_vectorcall_FASTCALL_KEYWORDS_METHOD",
    "method_vectorcall_O",
    "method_vectorcall_NOARGS",
    "method_vectorcall_FASTCALL",
    "method_vectorcall_FASTCALL_KEYWORDS",
    "method_vectorcall_VARARGS",
    "method_vectorcall_VARARGS_KEYWORDS",
    "slot_tp_call",
    "slot_tp_init",
    "do_call_core",
    "do_call",
    "py_trampoline_evaluator",
    "gen_send_ex",
    "gen_send_ex2",
    "gen_iternext",
    "PyEval_EvalCode",
    "run_eval_code_obj",
    "run_mod",
    "pyrun_file",
    "_PyRun_SimpleFileObject",
    "_PyRun_SimpleFile",
    "_PyRun_AnyFileObject",
    "PyRun_StringFlags",
    "PyRun_SimpleStringFlags",
    "_PyRun_SimpleStringFlagsWithName",
    "pymain_run_file_obj",
    "pymain_run_file",
    "pymain_run_module",
    "pymain_run_command",
    "pymain_run_python",
    "pymain_main",
    "Py_RunMain",
    "Py_BytesMain",
    "builtin_exec",
    "builtin_exec_impl",
    "builtin___build_class__",
    "thread_run",
    "Builtins_JSEntry",
    "Builtins_JSEntryTrampoline",
    "Builtins_JSConstructEntry",
    "Builtins_InterpreterEntryTrampoline",
    "Builtins_InterpreterPushArgsThenCall",
    "Builtins_BaselineOutOfLinePrologue",
    "v8::internal::Execution::Call",
    "v8::internal::(anonymous namespace)::Invoke",
    "v8::Function::Call",
    "Interpreter",
    "call_stub",
    "JavaCalls::call",
    "JavaCalls::call_helper",
    "JavaCalls::call_virtual",
    "jni_invoke_static",
    "jni_CallStaticVoidMethod",
    "JavaThread::run",
    "JavaThread::thread_main_inner",
    "Thread::call_run",
    "thread_entry",
];

const PREFIXES: &[&str] =
    &["BytecodeHandler:", "Builtin:InterpreterEntryTrampoline", "Builtins_Call_", "Builtins_CallFunction_"];

/// Files of runtimes begin so.
const RUNTIMES: &[&str] = &["python", "libpython", "libjvm.so", "libnode"];

/// Names that begin so are those of a runtime in any file.
const TELLING: &[&str] = &["_Py", "Py", "pymain_", "Builtins_", "v8::", "JavaCalls::"];

/// Whether interpreters' own frames stand in stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterpreterFrames {
    /// They do.
    #[default]
    Shown,
    /// They don't where functions of their language do.
    Folded,
}

/// What a frame is beside the functions of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameRole {
    /// A function of a language that has a runtime.
    Language,
    /// A function of the runtime that calls and runs those.
    Interpreter,
    /// A function of the runtime that has no name.
    Nameless,
    /// Anything else.
    Other,
}

/// Whether a module is a file in which runtimes tell what they compiled, by its name: `perf-7.map`, `jit-7.dump`.
pub fn is_of_runtime(module: &str) -> bool {
    [("perf-", ".map"), ("jit-", ".dump")].iter().any(|(begin, end)| module.starts_with(begin) && module.ends_with(end))
}

impl FrameRole {
    pub(super) fn of(frame: &StackFrame) -> Self {
        let module = frame.module.rsplit('/').next().unwrap_or_default();
        // What the compiler puts behind the name of a part, and the linker behind a version.
        let plain = frame.name.split(['.', '@', '(']).next().unwrap_or_default();
        let is_handler = frame.name.starts_with("Builtins_") && frame.name.ends_with("Handler");
        let is_known = NAMES.contains(&frame.name.as_str()) || NAMES.contains(&plain);
        let is_made = module == PYTHON || is_of_runtime(module);
        let is_own = is_known || is_handler || PREFIXES.iter().any(|prefix| frame.name.starts_with(prefix));
        let is_runtime = RUNTIMES.iter().any(|name| module.starts_with(name)) || module == "node" || module == "nodejs";
        // A program may hold a runtime, and may have a function of a common name, as extensions may.
        let is_told = is_runtime || is_made || TELLING.iter().any(|prefix| frame.name.starts_with(prefix));
        match frame.nameless {
            // A function of a program may have such a name, too.
            _ if is_made && (frame.file.is_some() || !is_own) => Self::Language,
            _ if frame.kernel => Self::Other,
            None if is_own && is_told => Self::Interpreter,
            Some(_) if is_runtime => Self::Nameless,
            _ => Self::Other,
        }
    }
}

/// Which frames of a stack stay, the innermost first.
pub(super) fn fold(roles: &[FrameRole], stays: &mut Vec<bool>) {
    stays.clear();
    let is_language = |role: &FrameRole| *role == FrameRole::Language;
    let Some(innermost) = roles.iter().position(is_language) else {
        stays.resize(roles.len(), true);
        return;
    };
    let outermost = roles.iter().rposition(is_language).unwrap_or(innermost);
    stays.extend(roles.iter().enumerate().map(|(index, role)| match role {
        FrameRole::Language | FrameRole::Other => true,
        // It tells whether the stack begins there.
        FrameRole::Interpreter => index + 1 == roles.len(),
        FrameRole::Nameless => !(innermost..=outermost).contains(&index),
    }));
}

#[cfg(test)]
mod tests {
    use super::super::NamelessReason;
    use super::FrameRole::{Interpreter, Language, Nameless, Other};
    use super::*;

    fn frame(name: &str, module: &str) -> StackFrame {
        StackFrame { name: name.into(), module: module.into(), ..StackFrame::default() }
    }

    #[test]
    fn roles_by_names_and_modules() {
        let role = |name, module| FrameRole::of(&frame(name, module));
        assert_eq!(role("fib", "perf-7.map"), Language);
        assert_eq!((role("fib", "jit-7.dump"), role("fib", "jit-7.map")), (Language, Other));
        assert_eq!(role("fib", PYTHON), Language);
        assert_eq!(role("do_call", "perf-7.map"), Interpreter);
        assert_eq!(
            FrameRole::of(&StackFrame { file: Some("/a.py".into()), ..frame("do_call", "perf-7.map") }),
            Language
        );
        assert_eq!(role("BytecodeHandler:Star0", "perf-7.map"), Interpreter);
        assert_eq!(role("_PyEval_EvalFrameDefault", "/usr/lib/libpython3.12.so.1.0"), Interpreter);
        assert_eq!(role("_PyEval_EvalFrameDefault.cold", "/usr/bin/python3.12"), Interpreter);
        assert_eq!(role("Builtins_LdaSmiHandler", "/usr/bin/node"), Interpreter);
        // A program that holds a runtime, and one that has a function of such a name.
        assert_eq!([role("PyObject_Call", "/opt/blender"), role("do_call", "/opt/x.so")], [Interpreter, Other]);
        assert_eq!(role("do_call", "/usr/lib/libpython3.11.so.1.0"), Interpreter);
        assert_eq!([role("list_sort", "/usr/bin/python3.12"), role("main", "/bin/p")], [Other, Other]);
        let nameless = |module| StackFrame { nameless: Some(NamelessReason::Stripped), ..frame("x+0x10", module) };
        assert_eq!(FrameRole::of(&nameless("/usr/bin/python3.11")), Nameless);
        assert_eq!(FrameRole::of(&nameless("/bin/p")), Other);
    }

    #[test]
    fn what_only_calls_is_left_out_where_a_language_is() {
        let mut stays = Vec::new();
        let mut kept = |roles: &[FrameRole]| {
            fold(roles, &mut stays);
            stays.clone()
        };
        // The innermost first: a nameless function that works, below two functions of the language, below main.
        let stack = [Nameless, Interpreter, Language, Nameless, Interpreter, Language, Nameless, Interpreter, Other];
        assert_eq!(kept(&stack), [true, false, true, false, false, true, true, false, true]);
        assert_eq!(kept(&[Interpreter, Nameless, Other]), [true; 3]);
        assert_eq!(kept(&[Language, Interpreter]), [true, true]);
        assert_eq!(kept(&[]), [true; 0]);
    }
}
