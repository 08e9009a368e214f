"""Functions of NumPy, `math` and SciPy for symbols: counterparts that accept numbers, symbols and arrays of both."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.numpy_tracing.branches import TracingError
from livens.math import Scalar
from livens.types import ModelFunction

#: Largest number of intervals of an interpolation table: all intervals are evaluated at every call.
MAX_TABLE = 256
Function = ModelFunction


class _FloatType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (float, Scalar))


class SymbolicFloat(float, metaclass=_FloatType):
    """Counterpart of the type `float`: a conversion that returns symbols unchanged, and a type of symbols."""

    def __new__(cls, value: Any = 0.0) -> Any:
        item = value.reshape(())[()] if isinstance(value, np.ndarray) and value.size == 1 else value
        return item if isinstance(item, Scalar) else float(item)


def has_symbol(value: object) -> bool:
    """Return True if a value is a Scalar, or a container of Scalars."""
    if isinstance(value, Scalar):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype == object and any(isinstance(item, Scalar) for item in value.flat)
    if isinstance(value, (list, tuple)):
        return any(map(has_symbol, value))
    return isinstance(value, dict) and any(map(has_symbol, value.values()))


def as_numbers(value: Any) -> Any:
    """Return arrays of objects that contain numbers only as arrays of floats; `SymbolicFloat` as `float`."""
    if value is SymbolicFloat:
        return float
    if isinstance(value, np.ndarray) and value.dtype == object and not has_symbol(value):
        return value.astype(float)
    if type(value) in (list, tuple) and any(isinstance(item, (np.ndarray, list, tuple)) for item in value):
        return type(value)(map(as_numbers, value))
    return value


def as_objects(value: object) -> np.ndarray:
    """Return an array of objects."""
    if isinstance(value, Scalar):
        array = np.empty((), dtype=object)
        array[()] = value
        return array
    return np.array(value, dtype=object)


class ModuleView:
    """View of a module in which some functions have counterparts for symbols, unless they were replaced."""

    def __init__(self, module: ModuleType, counterparts: dict[str, object], refused: Sequence[str] = ()) -> None:
        self._module, self._counterparts, self._refused = module, counterparts, refused
        self._originals = {name: getattr(module, name, None) for name in counterparts}

    def __getattr__(self, name: str) -> Any:
        if name in self._counterparts and getattr(self._module, name, None) is self._originals[name]:
            return self._counterparts[name]
        if name in self._refused:
            raise TracingError(f"{self._module.__name__}.{name} depends on more than its arguments")
        value = getattr(self._module, name)
        if callable(value) and not isinstance(value, (type, np.ufunc)):
            return _numeric_only(value)
        return value


def _numeric_only(function: Function) -> Function:
    """Return a function that receives numbers as arrays of floats."""

    def called(*arguments: object, **named: object) -> Any:
        return function(*map(as_numbers, arguments), **{name: as_numbers(value) for name, value in named.items()})

    return called


def _dispatched(symbolic: Function, numeric: Function) -> Function:
    """Return a function that calls `symbolic` if an argument has symbols, else `numeric`; ``out=`` is supported."""

    def called(*arguments: Any, **named: Any) -> Any:
        numbers = tuple(map(as_numbers, arguments))
        out = named.pop("out", None)
        value = symbolic(*numbers) if any(map(has_symbol, numbers)) else numeric(*numbers, **named)
        if out is None:
            return value
        target = out[0] if isinstance(out, tuple) else out
        target[...] = value
        return target

    return called


def _elementwise(function: Function, n_arguments: int) -> Function:
    return np.frompyfunc(function, n_arguments, 1)


# -- selection -------------------------------------------------------------------------------------------------------
def where(condition: object, *values: object) -> Any:
    """Return values selected by a condition, element by element."""
    if len(values) != 2:
        raise TracingError("np.where with one argument returns indices, which depend on values of symbols")

    def select(c: object, a: object, b: object) -> Any:
        if isinstance(c, Scalar):
            return Scalar(ca.if_else(c.sx, m.to_casadi(a), m.to_casadi(b)))
        return a if c else b

    return _elementwise(select, 3)(condition, *values)


def select_interval(u: Any, breaks: Sequence[float], pieces: Sequence[Function]) -> Any:
    """Return ``pieces[i](u)`` for u between ``breaks[i - 1]`` and ``breaks[i]``, by a balanced tree of conditions."""
    values = [piece(u) for piece in pieces]

    def tree(first: int, last: int) -> Any:
        if first == last:
            return values[first]
        middle = (first + last + 1) // 2
        return where(u < breaks[middle - 1], tree(first, middle - 1), tree(middle, last))

    return tree(0, len(pieces) - 1)


def _interp(x: object, xp: object, fp: object, left: object = None, right: object = None, period: object = None) -> Any:
    if has_symbol(xp) or has_symbol(fp) or period is not None:
        raise TracingError("np.interp of a table of symbols, or with a period, cannot be traced")
    try:
        return m.interp(x, xp, fp, left, right)
    except InputError as error:
        raise TracingError(str(error)) from None


def _piecewise(x: Any, conditions: Any, functions: Any, *arguments: object, **named: object) -> Any:
    condition_list = list(conditions) if isinstance(conditions, (list, tuple)) else [conditions]

    def value(function: object) -> Any:
        return function(x, *arguments, **named) if callable(function) else function

    result = value(functions[len(condition_list)]) if len(functions) > len(condition_list) else 0.0
    for condition, function in reversed(list(zip(condition_list, functions, strict=False))):
        result = where(condition, value(function), result)
    return result


def _select(conditions: Any, choices: Any, default: Any = 0) -> Any:
    result = default
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        result = where(condition, choice, result)
    return result


def _reduction(pick: Function, numeric: Function) -> Function:
    def reduced(a: Any, axis: Any = None, **named: object) -> Any:
        numbers = as_numbers(a)
        if not has_symbol(numbers):
            return numeric(numbers, axis=axis, **named)
        items = as_objects(numbers)
        return functools.reduce(pick, list(items.ravel() if axis is None else np.moveaxis(items, axis, 0)))

    return reduced


def _logical(operation: int) -> Function:
    return _elementwise(lambda a, b: Scalar(ca.SX.binary(operation, m.to_casadi(a), m.to_casadi(b))), 2)


def _comparison(name: str) -> Function:
    return lambda a, b: getattr(a if isinstance(a, Scalar) else as_objects(a), name)(b)


# -- linear algebra --------------------------------------------------------------------------------------------------
def _solve(A: object, b: object, *_: object) -> Any:
    rhs = as_objects(b)
    solution = ca.solve(m.to_casadi(as_objects(A)), m.to_casadi(rhs))
    columns = np.array([[Scalar(solution[i, j]) for j in range(solution.shape[1])] for i in range(solution.shape[0])])
    return columns[:, 0] if rhs.ndim == 1 else columns


def _inverse(A: Any) -> Any:
    return _solve(A, np.eye(len(A)))


def _determinant(A: object) -> Any:
    return Scalar(ca.det(m.to_casadi(as_objects(A))))


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    items = as_objects(x)
    if ord in (None, 2) and (ord is None or items.ndim == 1 or isinstance(axis, int)):
        return m.sqrt(np.sum(items * items, axis=axis, keepdims=keepdims))
    if items.ndim == 1 and axis is None and ord in (1, np.inf):
        return np.sum(m.abs(items)) if ord == 1 else functools.reduce(m.maximum, list(m.abs(items)))
    raise TracingError(f"np.linalg.norm with ord={ord!r} cannot be traced")


def _matrix_exponential(A: object) -> Any:
    raise TracingError("scipy.linalg.expm of symbols cannot be traced")


# -- creation of arrays: they hold objects, because symbols may be assigned to their entries -----------------------
def _is_float_type(dtype: object) -> bool:
    return dtype is SymbolicFloat or dtype in (None, float, np.float64, "float", "float64", "d", "f8", object)


def _filled(numeric: Function, value: float) -> Function:
    def create(shape: object, dtype: object = None, *arguments: object, **named: object) -> Any:
        if not _is_float_type(dtype):
            return numeric(shape, dtype, *arguments, **named)
        return np.full(shape, value, dtype=object)

    return create


def _filled_like(numeric: Function, value: float) -> Function:
    def create(a: Any, dtype: Any = None, *_: object, shape: Any = None, **named: object) -> Any:
        if dtype is not None and not _is_float_type(dtype):
            return numeric(a, dtype, shape=shape)
        return np.full(np.shape(a) if shape is None else shape, value, dtype=object)

    return create


def _array(value: Any, dtype: Any = None, **named: object) -> Any:
    if has_symbol(value):
        return np.array(value, dtype=object)
    numbers = np.array(as_numbers(value), dtype=float if dtype is SymbolicFloat else dtype)
    return numbers.astype(object) if numbers.dtype == float and numbers.ndim else numbers


def _as_array(value: object, dtype: object = None, **named: object) -> np.ndarray:
    return value if isinstance(value, np.ndarray) and value.dtype == object else _array(value, dtype)


class _Concatenator:
    """Counterpart of ``np.r_`` and ``np.c_``, without names of variables in a text."""

    def __init__(self, numeric: Any) -> None:
        self._numeric = numeric

    def __getitem__(self, key: object) -> Any:
        if isinstance(key, str):
            raise TracingError(f"np.r_[{key!r}] reads variables by their names")
        return self._numeric[key]


#: Counterparts of objects of NumPy that are used with brackets.
CONCATENATORS = {id(numeric): _Concatenator(numeric) for numeric in (np.r_, np.c_)}


def _any_or_all(operation: Function, numeric: Function) -> Function:
    def combine(a: object, b: object) -> Any:
        return Scalar(operation(m.to_casadi(a), m.to_casadi(b)))

    def called(a: object, *arguments: object, **named: object) -> Any:
        if not has_symbol(a):
            return numeric(as_numbers(a), *arguments, **named)
        return functools.reduce(combine, list(as_objects(a).ravel()))

    return called


def _trunc(x: Any) -> Any:
    return where(x < 0, m.ceil(x), m.floor(x))


def _real_power(a: object, b: object) -> Any:
    return a**b if isinstance(a, Scalar) else as_objects(a) ** b


def _erf(x: object) -> Any:
    return _elementwise(lambda u: Scalar(ca.erf(m.to_casadi(u))), 1)(x)


_ELEMENTWISE: dict[str, Function] = {
    **{
        name: getattr(m, name)
        for name in "sin cos tan sinh cosh tanh exp log expm1 log1p sqrt hypot abs sign floor ceil minimum maximum clip"
        " asin acos atan atan2 asinh acosh atanh".split()
    },
    **dict(arcsin=m.asin, arccos=m.acos, arctan=m.atan, arctan2=m.atan2, arcsinh=m.asinh, arccosh=m.acosh),
    **dict(arctanh=m.atanh, absolute=m.abs, fabs=m.abs, fmin=m.minimum, fmax=m.maximum, where=where),
    "heaviside": lambda x, at_zero: where(x < 0, 0.0, where(x > 0, 1.0, at_zero)),
    "power": _real_power,
    "float_power": _real_power,
    "square": lambda x: x * x,
    "cbrt": lambda x: m.sign(x) * m.abs(x) ** (1 / 3),
    "exp2": lambda x: 2.0**x,
    "log10": lambda x: m.log(x) / math.log(10),
    "log2": lambda x: m.log(x) / math.log(2),
    "deg2rad": lambda x: x * (math.pi / 180),
    "radians": lambda x: x * (math.pi / 180),
    "rad2deg": lambda x: x * (180 / math.pi),
    "degrees": lambda x: x * (180 / math.pi),
    "reciprocal": lambda x: 1 / x,
    "negative": lambda x: -x,
    "positive": lambda x: x,
    "mod": lambda a, b: a % b,
    "remainder": lambda a, b: a % b,
    "trunc": _trunc,
    "sinc": lambda x: where(x == 0, 1.0, m.sin(math.pi * x) / (math.pi * where(x == 0, 1.0, x))),
    "real": lambda x: x,
    "conj": lambda x: x,
    "float64": lambda x: x,
    "isnan": lambda x: x != x,
    "isfinite": lambda x: (x - x) == 0,
    "isinf": lambda x: m.abs(x) == math.inf,
    "nan_to_num": lambda x: where(x != x, 0.0, x),
    "logical_and": _logical(ca.OP_AND),
    "logical_or": _logical(ca.OP_OR),
    "logical_not": _elementwise(lambda a: Scalar(ca.SX.unary(ca.OP_NOT, m.to_casadi(a))), 1),
    **{
        name: _comparison(method)
        for name, method in dict(
            less="__lt__", greater="__gt__", less_equal="__le__", greater_equal="__ge__", equal="__eq__",
            not_equal="__ne__",
        ).items()
    },
    "interp": _interp,
    "piecewise": _piecewise,
    "select": _select,
}  # fmt: skip


def _norm_counterpart(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if has_symbol(x):
        return _norm(x, ord, axis, keepdims)
    return np.linalg.norm(as_numbers(x), ord, axis, keepdims)


LINALG = ModuleView(
    np.linalg,
    {
        "norm": _norm_counterpart,
        "solve": _dispatched(_solve, np.linalg.solve),
        "inv": _dispatched(_inverse, np.linalg.inv),
        "det": _dispatched(_determinant, np.linalg.det),
        "pinv": _dispatched(_inverse, np.linalg.pinv),
    },
)

_NUMPY: dict[str, Any] = {
    name: _dispatched(function, getattr(np, name)) for name, function in _ELEMENTWISE.items() if hasattr(np, name)
}
_NUMPY |= {
    "zeros": _filled(np.zeros, 0.0),
    "empty": _filled(np.empty, 0.0),
    "ones": _filled(np.ones, 1.0),
    "zeros_like": _filled_like(np.zeros_like, 0.0),
    "empty_like": _filled_like(np.empty_like, 0.0),
    "ones_like": _filled_like(np.ones_like, 1.0),
    "full": lambda shape, value, *_, **named: np.full(shape, value, dtype=object),
    "full_like": lambda a, value, *_, **named: np.full(np.shape(a), value, dtype=object),
    "eye": lambda *arguments, **named: np.eye(*arguments).astype(object),
    "identity": lambda n, *_, **named: np.eye(n).astype(object),
    "array": _array,
    "asarray": _as_array,
    "asanyarray": _as_array,
    "ascontiguousarray": _as_array,
    "copy": lambda a, *_, **named: as_objects(a).copy(),
    "isscalar": lambda x: isinstance(x, Scalar) or np.isscalar(x),
    "linalg": LINALG,
    "r_": CONCATENATORS[id(np.r_)],
    "c_": CONCATENATORS[id(np.c_)],
    "max": _reduction(m.maximum, np.max),
    "min": _reduction(m.minimum, np.min),
    "amax": _reduction(m.maximum, np.max),
    "amin": _reduction(m.minimum, np.min),
    "any": _any_or_all(ca.logic_or, np.any),
    "all": _any_or_all(ca.logic_and, np.all),
}
NUMPY = ModuleView(np, _NUMPY, refused=("random",))


def _of_math(name: str, symbolic: Function) -> Function:
    return _dispatched(symbolic, getattr(math, name))


def _logarithm(x: Any, *base: Any) -> Any:
    if not has_symbol(x):
        return math.log(x, *base)
    return m.log(x) / math.log(*base) if base else m.log(x)


MATH = ModuleView(
    math,
    {
        **{name: _of_math(name, function) for name, function in _ELEMENTWISE.items() if hasattr(math, name)},
        "pow": _of_math("pow", lambda a, b: a**b),
        "log": _logarithm,
        "fmod": _of_math("fmod", lambda a, b: a - b * _trunc(a / b)),
        "erf": _of_math("erf", _erf),
        "erfc": _of_math("erfc", lambda x: 1 - _erf(x)),
        "fsum": lambda items: functools.reduce(lambda a, b: a + b, list(items)),
        "copysign": _of_math("copysign", lambda a, b: Scalar(ca.copysign(m.to_casadi(a), m.to_casadi(b)))),
        "dist": lambda p, q: _norm_counterpart(as_objects(p) - as_objects(q)),
    },
)


@functools.cache
def scipy_linalg() -> ModuleView:
    """Return the view of `scipy.linalg`."""
    import scipy.linalg

    functions: dict[str, Function] = dict(solve=_solve, inv=_inverse, det=_determinant, expm=_matrix_exponential)
    counterparts = {name: _dispatched(f, getattr(scipy.linalg, name)) for name, f in functions.items()}
    return ModuleView(scipy.linalg, {**counterparts, "norm": _norm_counterpart})


@functools.cache
def scipy_special() -> ModuleView:
    """Return the view of `scipy.special`."""
    from scipy import special

    functions: dict[str, Function] = {
        "erf": _erf,
        "erfc": lambda x: 1 - _erf(x),
        "expit": lambda x: 1 / (1 + m.exp(-x)),
        "logit": lambda x: m.log(x / (1 - x)),
        "xlogy": lambda x, y: x * m.log(y),
    }
    return ModuleView(special, {name: _dispatched(f, getattr(special, name)) for name, f in functions.items()})


@functools.cache
def scipy_package() -> ModuleView:
    """Return the view of `scipy`."""
    import scipy

    return ModuleView(scipy, {"special": scipy_special(), "linalg": scipy_linalg()})


def _extremum(pick: Function, builtin: Function) -> Function:

    def called(*items: Any, **named: Any) -> Any:
        candidates = list(items[0]) if len(items) == 1 else list(items)
        if has_symbol(candidates) and not named:
            return functools.reduce(pick, candidates)
        return builtin(*items, **named)

    return called


#: Counterparts of built-in functions and types, by name, with the originals.
BUILTINS: dict[str, tuple[object, Any]] = {
    "float": (float, SymbolicFloat),
    "max": (max, _extremum(m.maximum, max)),
    "min": (min, _extremum(m.minimum, min)),
}
