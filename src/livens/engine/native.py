"""Text to machine code, kept on disk by content so that a model compiles once."""

from __future__ import annotations

import collections
import functools
import hashlib
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from livens.engine import cache
from livens.expressions.stages import counted

#: How many functions were compiled in this process (not taken from the disk cache); tests count with it.
compilations = 0
#: Machine code in memory by its content, as long as somebody holds it.
_loaded: weakref.WeakValueDictionary[str, Code] = weakref.WeakValueDictionary()
#: The code used last is held for a while, so that a model that is built again finds it.
_recent: collections.OrderedDict[str, Code] = collections.OrderedDict()
_RECENT = 128
_lock = threading.RLock()


def cache_directory() -> Path | None:
    """Where the user wants compiled kernels to be kept: $LIVENS_CACHE_DIR, else the user's cache folder."""
    return cache.wanted()


@functools.cache
def _machine(effort: int) -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        opt=effort, cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), jit=True
    )


@functools.cache
def _fingerprint(effort: int) -> str:
    """Machine code depends on the text and on these."""
    machine = _machine(effort)
    features = llvm.get_host_cpu_features().flatten()
    # to ask for the library is to load it: code that is found on disk may call it
    library = vector_library_width()
    return f"{llvmlite.__version__} {machine.triple} {llvm.get_host_cpu_name()} {features} {effort} {library}"


@functools.cache
def vector_library_width() -> int:
    """How many doubles the vector functions of glibc take at once on this machine: 8, 4, or 1 if there are none.

    They come with glibc 2.35 or later on x86-64 and are good to four units in the last place.
    """
    if not llvm.get_default_triple().startswith("x86_64"):
        return 1
    try:
        llvm.load_library_permanently("libmvec.so.1")
    except RuntimeError:
        return 1
    features = llvm.get_host_cpu_features()
    for width, feature, name in ((8, "avx512f", "_ZGVeN8vv_hypot"), (4, "avx2", "_ZGVdN4vv_hypot")):
        if features.get(feature) and llvm.address_of_symbol(name):
            return width
    return 1


@functools.cache
def quick_gathers() -> bool:
    """Whether the machine reads eight numbers from eight places faster by one instruction than one by one.

    Processors of the Zen family take twice as long.
    """
    return bool(llvm.get_host_cpu_features().get("avx512f")) and not llvm.get_host_cpu_name().startswith("znver")


def has_symbol(name: str) -> bool:
    """Whether this process has a function of this name."""
    return bool(llvm.address_of_symbol(name))


def target_is_x86() -> bool:
    return llvm.get_default_triple().startswith("x86_64")


def _object_code(key: str, text: Callable[[], str], effort: int, passes: bool = False) -> bytes:
    global compilations
    stored = cache.read(key)
    if stored is not None:
        return stored
    counted("compiling", "kernel")
    module = llvm.parse_assembly(text())
    machine = _machine(effort)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    if passes:
        _improve(module, machine, effort)
    code: bytes = machine.emit_object(module)
    compilations += 1
    cache.write(key, code)
    return code


def _improve(module: llvm.ModuleRef, machine: llvm.TargetMachine, effort: int) -> None:
    """What LLVM does with code as people write it: variables into registers, functions inlined, loops in vectors."""
    options = llvm.create_pipeline_tuning_options(speed_level=effort)
    options.loop_vectorization, options.slp_vectorization = True, False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


class Code:
    """A native function: its address is good as long as this object lives, and its memory is freed with it."""

    def __init__(self, code: bytes, name: str, effort: int) -> None:
        # an engine is made with a module, and would compile it: that takes ten times as long as to load the code
        empty = llvm.parse_assembly("")
        self._engine = llvm.create_mcjit_compiler(empty, _fresh_machine(effort))
        self._engine.remove_module(empty)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self.address = self.address_of(name) if name else 0

    def address_of(self, name: str) -> int:
        """The address of a function of this code."""
        address = int(self._engine.get_function_address(name))
        if not address:
            raise RuntimeError(f"compiled code does not contain the function {name!r}")
        return address


def compile_function(text: str, name: str, effort: int = 2) -> Code:
    """The function `name` of the LLVM text, compiled or taken from the cache."""
    return find_or_compile(text, lambda: text, name, effort)


def find_or_compile(content: str, text: Callable[[], str], name: str, effort: int = 2) -> Code:
    """As `compile_function`, for a text that follows from `content` and is only written if need be."""
    return _found(f"{name} {content}", text, name, effort, False)


def find_or_compile_library(content: str, text: Callable[[], str], effort: int = 2) -> Code:
    """All functions of a text that is not straight-line code, which follows from `content`; `Code.address_of` says
    where they are.
    """
    return _found(f"library {content}", text, "", effort, True)


def _found(content: str, text: Callable[[], str], name: str, effort: int, passes: bool) -> Code:
    key = hashlib.sha256(f"{_fingerprint(effort)}{content}".encode()).hexdigest()
    with _lock:
        found = _loaded.get(key)
        if found is None:
            found = _loaded[key] = Code(_object_code(key, text, effort, passes), name, effort)
        _recent[key] = found
        _recent.move_to_end(key)
        while len(_recent) > _RECENT:
            _recent.popitem(last=False)
    return found


def forget() -> None:
    """Do not look for code in memory any more: what is asked for next comes from disk, or is compiled."""
    with _lock:
        _recent.clear()
        _loaded.clear()


def _fresh_machine(effort: int) -> llvm.TargetMachine:
    _machine(effort)  # initialises the target
    return llvm.Target.from_default_triple().create_target_machine(opt=effort, jit=True)
