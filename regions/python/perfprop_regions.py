"""Named regions of a program: how often each is entered, and what it takes.

    from perfprop_regions import region, measured

    with region("load"):
        ...

    @measured
    def step(): ...

Run the program under `perfprop stat -- python3 program.py`, or with PERFPROP_REGION_CSV=file (- is standard output).
PERFPROP_REGION_EVENTS=instructions,page-faults counts events in each region.
The library libperfprop_regions.so is looked for where PERFPROP_REGIONS_LIBRARY says, beside this file, and by the
loader. Where it can't be loaded the program runs as it does without regions, and nothing is recorded. That is said on
standard error if one of these variables is set, or if perfprop started the program.
"""

import atexit
import functools
import inspect
import json
import multiprocessing.util
import os
import pathlib
import sys
import threading
import types

_NAME = "libperfprop_regions.so"
# What asks for regions, and where the library is.
_VARIABLES = ("PERFPROP_REGION_CSV", "PERFPROP_REGION_JSON", "PERFPROP_REGION_EVENTS", "PERFPROP_REGIONS_LIBRARY")


def _load():
    # Some builds of Python have none.
    import ctypes

    named = os.environ.get("PERFPROP_REGIONS_LIBRARY")
    beside = pathlib.Path(__file__).parent / _NAME
    library = ctypes.CDLL(named or (str(beside) if beside.exists() else _NAME))
    for begin in (library.perfprop_begin, library.perfprop_begin_recursive):
        begin.argtypes = [ctypes.c_char_p]
        begin.restype = ctypes.c_uint64
    library.perfprop_end.argtypes = [ctypes.c_uint64]
    library.perfprop_phase.argtypes = [ctypes.c_char_p]
    library.perfprop_record.argtypes = [ctypes.c_int]
    library.callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
    library.perfprop_on_report.argtypes = [library.callback, ctypes.c_void_p]
    library.perfprop_report.argtypes = []
    library.perfprop_end_child.argtypes = []
    return library


class _NoLibrary:
    """Stands for a library that can't be loaded: records nothing."""

    def callback(self, *_):
        return None

    def perfprop_begin(self, _):
        return 0

    perfprop_begin_recursive = perfprop_begin

    def perfprop_end(self, _):
        pass

    perfprop_phase = perfprop_record = perfprop_end

    def perfprop_on_report(self, *_):
        pass

    def perfprop_report(self):
        pass

    perfprop_end_child = perfprop_report


def _is_watched():
    """Whether perfprop started this process or one above it: it makes a folder that is named after that one."""
    process = os.getpid()
    while process > 0:
        if os.path.isdir(f"/dev/shm/perfprop-regions-{process}"):
            return True
        with open(f"/proc/{process}/stat", "rb") as stat:
            # Behind the name, which may have any bytes: the state, and the process above.
            process = int(stat.read().rpartition(b")")[2].split()[1])
    return False


def _tell(error):
    """Says why nothing is recorded, to those who asked for regions."""
    try:
        is_asked = any(os.environ.get(name) for name in (*_VARIABLES, "PERFPROP_REGIONS")) or _is_watched()
        if is_asked and sys.stderr is not None:
            how = "PERFPROP_REGIONS_LIBRARY=/path/to/" + _NAME
            print(f"perfprop: the regions of this program aren't recorded: {error}; set {how}", file=sys.stderr)
    except (OSError, ValueError, IndexError):
        # There is nobody to tell it.
        pass


def _load_or_tell():
    try:
        return _load()
    # It isn't there or is no library, it lacks a function, or there is no ctypes.
    except (OSError, AttributeError, ImportError) as error:
        _tell(error)
        return _NoLibrary()


_library = _load_or_tell()


def _in_child(library):
    # Processes of multiprocessing end without what the library does at exit.
    multiprocessing.util.Finalize(None, library.perfprop_end_child, exitpriority=-100)


multiprocessing.util.register_after_fork(_library, _in_child)


class region:
    """A region that ends with its `with` block, also by an exception."""

    __slots__ = ("_name", "_handles")

    def __init__(self, name):
        self._name = name.encode()
        # By thread: one value may be entered on several at once.
        self._handles = {}

    def __enter__(self):
        self._handles.setdefault(threading.get_ident(), []).append(_library.perfprop_begin(self._name))
        return self

    def __exit__(self, *_):
        # Where another thread ends it, the library says so, and nothing changes.
        thread = threading.get_ident()
        owner = thread if thread in self._handles else next(iter(self._handles), None)
        if owner is None:
            return False
        handles = self._handles[owner]
        _library.perfprop_end(handles.pop())
        if not handles:
            del self._handles[owner]
        return False


def measured(function):
    """Makes each call of a function a region of its name. Calls within calls count, and their time is the outermost one's.

    Of a generator or an `async` function each step is a call: what runs until the next `yield`, or until it waits."""
    name = function.__qualname__.encode()
    if inspect.isasyncgenfunction(function):
        return _measured_async_generator(name, function)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args, **keywords):
            return await _steps(name, function(*args, **keywords))

        return coroutine
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generator(*args, **keywords):
            return (yield from _steps(name, function(*args, **keywords)))

        return generator

    @functools.wraps(function)
    def call(*args, **keywords):
        handle = _library.perfprop_begin_recursive(name)
        try:
            return function(*args, **keywords)
        finally:
            _library.perfprop_end(handle)

    return call


@types.coroutine
def _steps(name, inner):
    """What a generator or a coroutine gives, with a region open while it runs."""
    step, value = inner.send, None
    while True:
        handle = _library.perfprop_begin_recursive(name)
        try:
            given = step(value)
        except StopIteration as stop:
            return stop.value
        finally:
            _library.perfprop_end(handle)
        try:
            step, value = inner.send, (yield given)
        except GeneratorExit:
            inner.close()
            raise
        except BaseException as error:
            step, value = inner.throw, error


def _measured_async_generator(name, function):
    @functools.wraps(function)
    async def generator(*args, **keywords):
        inner = function(*args, **keywords)
        step = inner.asend(None)
        while True:
            try:
                given = await _steps(name, step)
            except StopAsyncIteration:
                return
            try:
                step = inner.asend((yield given))
            except GeneratorExit:
                await inner.aclose()
                raise
            except BaseException as error:
                step = inner.athrow(error)

    return generator


def phase(name):
    """Begins a phase of the program, such as "warmup"; "" ends it."""
    _library.perfprop_phase(name.encode())


def record(on=True):
    """Begins or ends to record regions for the program itself."""
    _library.perfprop_record(1 if on else 0)


_reported = []


def on_report(function):
    """Has a function called with what was counted, as the dictionary that PERFPROP_REGION_JSON writes, at each report()
    and when the interpreter exits. From now on regions are recorded."""
    if not _reported:
        # The library exits after the interpreter, which nothing may call then.
        atexit.register(_at_exit)
        _library.perfprop_on_report(_call, None)
    _reported.append(function)


@_library.callback
def _call(text, _):
    for function in _reported:
        function(json.loads(text))


def report():
    """Calls the functions that on_report() was given."""
    _library.perfprop_report()


def _at_exit():
    report()
    _library.perfprop_on_report(_library.callback(), None)
