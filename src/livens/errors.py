"""Exceptions of livens, and error messages for wrong arguments with a suggestion of the right one."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from livens.results.result import Result

#: Decorated function or class.
T = TypeVar("T")


class LivensError(Exception):
    """Base class of all errors of livens; `result` contains the rows up to the failure of a run, if there is one."""

    result: Result | None = None


class InputError(LivensError, ValueError):
    """Invalid input; the message contains the argument, its value and the allowed values."""


class ModelError(InputError):
    """Invalid model: a model function, or the sum of the elements, violates a requirement."""


class CallError(InputError, TypeError):
    """Call with unknown, missing or wrongly typed arguments."""


class IntegrationError(LivensError, ArithmeticError):
    """Failure of a step, such as Newton divergence; `result` contains the rows up to the failure.

    Parameters
    ----------
    message : str
        Text of the error.
    result : Result, optional
        Rows up to the end of the run.
    """

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result


class MissingExtraError(InputError, ImportError):
    """Missing optional dependency; the message contains the extra to install.

    Parameters
    ----------
    feature : str
        Feature that needs the dependency, with article.
    extra : str
        Extra of livens that installs the dependency.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the extra '{extra}': pip install 'livens[{extra}]', "
            f"or, in a checkout of livens, pip install '.[{extra}]'"
        )


class LivensWarning(UserWarning):
    """Warning of livens, such as a right-hand side that is integrated by SciPy because it cannot be compiled."""


class WriteError(IntegrationError):
    """Failure to write the result file, for example on a full disk; `result` contains the stored rows.

    Parameters
    ----------
    message : str
        Text of the error.
    result : Result, optional
        Rows up to the failure.
    """


class Interrupted(KeyboardInterrupt):
    """Interruption of a run by Ctrl-C; `result` contains the rows up to the interruption.

    Parameters
    ----------
    message : str
        Text of the error.
    result : Result, optional
        Rows up to the end of the run.
    """

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result


#: Largest number of known names in a message.
_MAX_LISTED = 40
#: Number of levels of nested containers above which an argument is refused.
_DEEP = 100
#: Arguments of other codes, and the argument of livens with the same meaning.
_SYNONYMS = {
    **dict.fromkeys(("dt", "step", "stepsize", "step_size", "timestep", "max_step"), "h"),
    **dict.fromkeys(("tol", "rtol", "atol"), "tolerance"),
    **dict.fromkeys(("tmax", "t_max", "tf", "t_final", "duration", "t_span"), "t_end"),
    **dict.fromkeys(("method", "integrator", "solver"), "scheme"),
}


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` if a known name is close to `name`, otherwise the list of known names.

    Names that begin with an underscore are not suggested. For ``dt`` and other words of other codes,
    the argument of the same meaning is suggested.
    """
    names = sorted(name for name in known if not name.startswith("_"))
    if _SYNONYMS.get(name) in names:
        return f"; did you mean '{_SYNONYMS[name]}'?"
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    if len(names) > _MAX_LISTED:
        names = [*names[:_MAX_LISTED], f"... ({len(names)} names)"]
    return f"; known: {', '.join(names)}" if names else ""


def abbreviate(names: Sequence[object], limit: int = 12) -> str:
    """Return the first names, and the number of the remaining ones.

    >>> abbreviate(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    listed = ", ".join(str(name) for name in names[:limit])
    return listed + (f" and {len(names) - limit} more" if len(names) > limit else "")


def explain_call_errors(target: T, name: str = "") -> T:
    """Raise a `CallError` for unknown, missing and wrongly typed arguments: a decorator of functions and classes.

    For a class, its constructor and its public methods are decorated, those of bases in the same package included.

    >>> @explain_call_errors
    ... def simulate(model, *, t_end): ...
    >>> simulate("pendulum", tend=1.0)
    Traceback (most recent call last):
    livens.errors.CallError: simulate has no argument 'tend'; did you mean 't_end'?
    """
    if isinstance(target, type):
        _explain_method_errors(target)
        return target
    function = cast("Callable[..., object]", target)

    @functools.wraps(function)
    def called(*arguments: object, **named: object) -> object:
        try:
            return function(*arguments, **named)
        except _WRAPPED_ERRORS as error:
            if isinstance(error, LivensError):
                raise
            label = name or function.__name__
            if isinstance(error, TypeError) and (error.__traceback__ is None or error.__traceback__.tb_next is None):
                raise CallError(_explain_bad_call(function, label, arguments, named)) from None
            # the error is raised inside the function: report an argument that does not match its annotation
            message = _type_mismatch(function, arguments, named)
            if not message:
                raise
            raise CallError(f"{label}: {message}") from error
        except RecursionError:
            # functions of the user may recurse without end as well: then the arguments are not deep
            if not any(map(_is_deep, (*arguments, *named.values()))):
                raise
            raise CallError(f"{name or function.__name__}: an argument contains lists or dicts {_DEEP} deep") from None

    return cast("T", called)


def refuse_arguments(reason: str, *names: str) -> Callable[[T], T]:
    """Return a decorator of functions that have no arguments of these names; `reason` enters the error message.

    >>> @explain_call_errors
    ... @refuse_arguments("all members take equal steps", "tolerance")
    ... def ensemble(model, *, h): ...
    >>> ensemble("pendulum", h=0.1, tolerance=1e-6)
    Traceback (most recent call last):
    livens.errors.CallError: ensemble has no argument 'tolerance': all members take equal steps
    """

    def decorate(target: T) -> T:
        vars(target).setdefault("refused_arguments", {}).update(dict.fromkeys(names, reason))
        return target

    return decorate


def _is_deep(value: object) -> bool:
    """Return whether lists, tuples or dicts contain each other more than `_DEEP` levels deep."""
    level = [value]
    for _ in range(_DEEP):
        level = [
            part
            for outer in level
            if isinstance(outer, (list, tuple, dict))
            for part in (outer.values() if isinstance(outer, dict) else outer)
        ][:_DEEP]
        if not level:
            return False
    return True


def _explain_method_errors(decorated: type) -> None:
    package = decorated.__module__.rpartition(".")[0]
    bases = [base for base in reversed(decorated.__mro__) if base.__module__.startswith(package)]
    for name, method in {name: method for base in bases for name, method in vars(base).items()}.items():
        if name.startswith("_") and name != "__init__":
            continue
        label = decorated.__name__ if name == "__init__" else f"{decorated.__name__}.{name}"
        if isinstance(method, FunctionType) and not hasattr(method, "__wrapped__"):
            setattr(decorated, name, explain_call_errors(method, label))
        elif isinstance(method, classmethod) and not hasattr(method.__func__, "__wrapped__"):
            setattr(decorated, name, classmethod(explain_call_errors(method.__func__, label)))


#: Exceptions that Python raises for arguments of a wrong type or value.
_WRAPPED_ERRORS = (TypeError, AttributeError, ValueError, LookupError, OverflowError, NotImplementedError)


def _type_mismatch(function: Callable[..., Any], arguments: tuple[object, ...], named: dict[str, object]) -> str:
    """Return a message about the first argument that does not match its annotation, or an empty string."""
    import inspect

    try:
        bound = inspect.signature(function).bind(*arguments, **named)
    except TypeError:
        return ""
    for name, value in bound.arguments.items():
        parameter_kind = inspect.signature(function).parameters[name].kind
        plain = parameter_kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        hint = _annotation(function, name) if plain else Any
        if not _matches_type(value, hint):
            return f"{name} must be {_describe_type(hint)}, got {value!r}"[:500]
    return ""


def _annotation(function: Callable[..., Any], name: str) -> Any:
    """Return the annotation of an argument, or Any if it contains a name that is imported for type checkers only."""
    import typing

    unwrapped: Any = function
    while hasattr(unwrapped, "__wrapped__"):
        unwrapped = unwrapped.__wrapped__
    holder = SimpleNamespace(__annotations__={name: unwrapped.__annotations__.get(name, Any)})
    try:
        return typing.get_type_hints(holder, unwrapped.__globals__)[name]
    except (TypeError, NameError, AttributeError):
        return Any


def _matches_type(value: object, annotation: object) -> bool:
    import typing
    from types import UnionType

    origin = typing.get_origin(annotation)
    if origin in (typing.Union, UnionType):
        return any(_matches_type(value, part) for part in typing.get_args(annotation))
    if origin is typing.Literal:
        return value in typing.get_args(annotation)
    annotation = origin or annotation
    if annotation is Any or not isinstance(annotation, type):
        return True
    if getattr(annotation, "_is_protocol", False):
        return all(
            hasattr(value, name)
            for name in (*vars(annotation), *annotation.__annotations__)
            if not name.startswith("_")
        )
    if annotation is float:
        return isinstance(value, (int, float)) or hasattr(value, "__float__")
    if annotation is int:
        return hasattr(value, "__index__")
    return isinstance(value, annotation)


def _describe_type(annotation: object) -> str:
    """Return the description of an annotated type for a message."""
    import typing

    parts = (
        typing.get_args(annotation)
        if not isinstance(annotation, type) and typing.get_origin(annotation) is not None
        else ()
    )
    if parts and (typing.get_origin(annotation) is typing.Union or "Union" in type(annotation).__name__):
        return " or ".join(_describe_type(part) for part in parts)
    known = {"str": "a text", "float": "a number", "int": "a whole number", "NoneType": "None", "Path": "a path"}
    name = getattr(typing.get_origin(annotation) or annotation, "__name__", str(annotation))
    return known.get(name, f"a {name}")


def _explain_bad_call(
    function: Callable[..., Any], name: str, arguments: tuple[object, ...], named: dict[str, object]
) -> str:
    import inspect

    signature = inspect.signature(function)
    known = [parameter for parameter in signature.parameters if parameter != "self"]
    refused = getattr(function, "refused_arguments", {})
    for argument in named:
        if argument not in known and argument in refused:
            return f"{name} has no argument '{argument}': {refused[argument]}"
        if argument not in known:
            return f"{name} has no argument '{argument}'{suggestion(argument, known)}"
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        return f"{name}: {error}; its arguments are {', '.join(known)}"
    return f"{name} cannot be called like this; its arguments are {', '.join(known)}"
