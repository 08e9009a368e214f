"""JIT compilation: LLVM IR to machine code, cached on disk by content so that a model compiles once."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import threading
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from livens.engine.codegen import code_cache
from livens.engine.lru_cache import LruCache
from livens.lookup_tables import registered_tables
from livens.progress import report_item

#: Number of functions compiled in this process (not loaded from the disk cache), for tests.
compilations = 0
#: Machine code in memory by key, as long as it is referenced.
_loaded: weakref.WeakValueDictionary[str, NativeCode] = weakref.WeakValueDictionary()
#: Recently used code, kept alive so that a model that is built again reuses it.
_MAX_RECENT = 128
_recent: LruCache[str, NativeCode] = LruCache(_MAX_RECENT)
_lock = threading.RLock()
#: LLVM IR by function name while it is recorded for another target, see `recorded_ir`; else None.
_ir_record: ContextVar[dict[str, str] | None] = ContextVar("ir_record", default=None)


def cache_directory() -> Path | None:
    """Return the configured cache directory: $LIVENS_CACHE_DIR, else the user's cache folder."""
    return code_cache.configured_directory()


@functools.cache
def _target_machine(opt_level: int) -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        opt=opt_level, cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), jit=True
    )


@functools.cache
def _fingerprint(opt_level: int) -> str:
    """Return the properties of compiler and processor that determine the machine code."""
    machine = _target_machine(opt_level)
    features = llvm.get_host_cpu_features().flatten()
    # the query also loads the library: code from the disk cache may call it
    library = vector_library_width()
    return f"{llvmlite.__version__} {machine.triple} {llvm.get_host_cpu_name()} {features} {opt_level} {library}"


@functools.cache
def vector_library_width() -> int:
    """Return the width of glibc's vector functions on this machine: 8, 4, or 1 if there are none.

    They require glibc 2.35 or later on x86-64 and are accurate to four units in the last place.
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
def has_fast_gather() -> bool:
    """Return True if one gather of eight doubles is faster than eight scalar loads.

    On processors of the Zen family a gather takes twice as long.
    """
    return bool(llvm.get_host_cpu_features().get("avx512f")) and not llvm.get_host_cpu_name().startswith("znver")


def has_symbol(name: str) -> bool:
    """Return True if this process has a function of this name."""
    return bool(llvm.address_of_symbol(name))


@functools.cache
def has_fused_multiply_add() -> bool:
    """Return True if the processor has instructions for ``a b + c`` with a single rounding."""
    return not target_is_x86() or ("fma" in llvm.get_host_cpu_features() and llvm.get_host_cpu_features()["fma"])


def target_is_x86() -> bool:
    return llvm.get_default_triple().startswith("x86_64")


def _object_code(key: str, make_ir: Callable[[], str], opt_level: int, run_passes: bool = False) -> bytes:
    global compilations
    stored = code_cache.read(key)
    if stored is not None:
        return stored
    report_item("compiling", "kernel")
    code = _emit_object(make_ir(), opt_level, run_passes)
    compilations += 1
    code_cache.write(key, code)
    return code


def _emit_object(text: str, opt_level: int, run_passes: bool) -> bytes:
    module = llvm.parse_assembly(text)
    machine = _target_machine(opt_level)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    if run_passes:
        _optimize(module, machine, opt_level)
    code: bytes = machine.emit_object(module)
    return code


def _optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine, opt_level: int) -> None:
    """Run the LLVM pass pipeline: promotion to registers, inlining, loop vectorisation."""
    options = llvm.create_pipeline_tuning_options(speed_level=opt_level)
    options.loop_vectorization, options.slp_vectorization = True, False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


class NativeCode:
    """Loaded machine code: addresses are valid during the lifetime of this object, and its memory is freed with it."""

    def __init__(self, code: bytes, name: str, opt_level: int) -> None:
        # an MCJIT engine would compile its module, which takes ten times as long as loading object code
        empty = llvm.parse_assembly("")
        self._engine = llvm.create_mcjit_compiler(empty, _new_target_machine(opt_level))
        self._engine.remove_module(empty)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self.address = self.address_of(name) if name else 0

    def address_of(self, name: str) -> int:
        """Return the address of a function."""
        address = int(self._engine.get_function_address(name))
        if not address:
            raise RuntimeError(f"compiled code does not contain the function {name!r}")
        return address


def compile_function(text: str, name: str, opt_level: int = 2) -> NativeCode:
    """Return the function `name` of the LLVM IR, compiled or from the cache."""
    return load_or_compile(text, lambda: text, name, opt_level)


def compile_uncached(text: str, name: str, opt_level: int = 1) -> NativeCode:
    """Return the function `name` of the LLVM IR, which contains addresses of this process and is not cached."""
    return NativeCode(_emit_object(text, opt_level, False), name, opt_level)


def load_or_compile(key: str, make_ir: Callable[[], str], name: str, opt_level: int = 2) -> NativeCode:
    """Return a function as `compile_function` does; the IR is determined by `key` and generated only if needed."""
    return _load(f"{name} {key}", make_ir, name, opt_level, False)


def load_or_compile_module(key: str, make_ir: Callable[[], str], opt_level: int = 2) -> NativeCode:
    """Return all functions of a module with control flow, determined by `key`; see `NativeCode.address_of`."""
    return _load(f"library {key}", make_ir, "", opt_level, True)


@contextlib.contextmanager
def recorded_ir() -> Iterator[dict[str, str]]:
    """Record the LLVM IR of the requested functions by name instead of compiling them."""
    texts: dict[str, str] = {}
    token = _ir_record.set(texts)
    try:
        yield texts
    finally:
        _ir_record.reset(token)


def _load(key_text: str, make_ir: Callable[[], str], name: str, opt_level: int, run_passes: bool) -> NativeCode:
    record = _ir_record.get()
    for table in registered_tables() if record is None else ():
        llvm.add_symbol(table.symbol, table.values.ctypes.data)
    if record is not None:
        record[name] = make_ir()
        return NativeCode.__new__(NativeCode)  # not loaded: only the text is used
    key = hashlib.sha256(f"{_fingerprint(opt_level)}{key_text}".encode()).hexdigest()
    with _lock:
        code = _loaded.get(key)
        if code is None:
            code = _loaded[key] = NativeCode(_object_code(key, make_ir, opt_level, run_passes), name, opt_level)
        return _recent.put(key, code)


def clear_memory_cache() -> None:
    """Clear the cache in memory: later requests load from disk or compile."""
    with _lock:
        _recent.clear()
        _loaded.clear()


def _new_target_machine(opt_level: int) -> llvm.TargetMachine:
    _target_machine(opt_level)  # initialises the target
    return llvm.Target.from_default_triple().create_target_machine(opt=opt_level, jit=True)
