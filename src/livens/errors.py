"""What can go wrong, in words for the person who runs it."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from livens.results.result import Result


class LivensError(Exception):
    """Anything livens complains about. If a run was under way, everything up to there is in `result`."""

    result: Result | None = None


class InputError(LivensError, ValueError):
    """Something given by the user cannot be used: the message says which field and what is allowed."""


class ModelError(InputError):
    """A model function, or the sum of elements, is not what it must be."""


class CallError(InputError, TypeError):
    """A function was called with arguments that it has not, or without those that it needs."""


class IntegrationError(LivensError, ArithmeticError):
    """A step did not converge. Everything up to there is in `result`."""

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result


class WriteError(IntegrationError):
    """The result file could not be written any further, as on a full disk. What is in the file is in `result`."""


class Interrupted(KeyboardInterrupt):
    """The run was stopped by Ctrl-C. Everything up to there is in `result`."""

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result


def suggestion(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` if some known name is close to `name`, else the list of known names."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(names)}" if names else ""


def with_words(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """The same function, but an argument that it has not, or that is missing, is answered with a sentence.

    >>> def simulate(model, *, t_end): ...
    >>> with_words(simulate)("pendulum", tend=1.0)
    Traceback (most recent call last):
    livens.errors.CallError: simulate has no argument 'tend'; did you mean 't_end'?
    """

    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except _RAW as error:
            if isinstance(error, LivensError):
                raise
            if isinstance(error, TypeError) and (error.__traceback__ is None or error.__traceback__.tb_next is None):
                raise CallError(_what_is_wrong(function, name or function.__name__, arguments, named)) from None
            # the function was entered: if it got something of another kind than it says it takes, that is why
            words = _wrong_kind(function, arguments, named)
            if not words:
                raise
            raise CallError(f"{name or function.__name__}: {words}") from error

    return called


def answer_with_words(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Functions of these names, and the methods of such classes, answer mistyped arguments with a sentence.

    What is not there yet is imported when it is asked for, and sees to it itself.
    """
    for name in names:
        value = namespace.get(name)
        if isinstance(value, FunctionType) and not hasattr(value, "__wrapped__"):
            namespace[name] = with_words(value)
        elif isinstance(value, type) and not issubclass(value, BaseException):
            room = value.__module__.rpartition(".")[0]
            bases = [base for base in reversed(value.__mro__) if base.__module__.startswith(room)]
            for inner, method in {inner: method for base in bases for inner, method in vars(base).items()}.items():
                public = inner == "__init__" or not inner.startswith("_")
                if public and isinstance(method, FunctionType) and not hasattr(method, "__wrapped__"):
                    setattr(value, inner, with_words(method, name if inner == "__init__" else f"{name}.{inner}"))
                elif public and isinstance(method, classmethod) and not hasattr(method.__func__, "__wrapped__"):
                    setattr(value, inner, classmethod(with_words(method.__func__, f"{name}.{inner}")))


#: What Python says where it is given something of another kind than it can use.
_RAW = (TypeError, AttributeError, ValueError, LookupError, OverflowError, NotImplementedError)


def _wrong_kind(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Words about the first argument that is not of the kind its annotation says; nothing if all are."""
    import inspect

    try:
        given = inspect.signature(function).bind(*arguments, **named)
    except TypeError:
        return ""
    for name, value in given.arguments.items():
        kind = inspect.signature(function).parameters[name].kind
        plain = kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        hint = _hint(function, name) if plain else Any
        if not _is_of_kind(value, hint):
            return f"{name} must be {_in_words(hint)}, got {value!r}"[:500]
    return ""


def _hint(function: Callable[..., Any], name: str) -> Any:
    """What an argument is annotated with; anything, if that names what its module does not import before it needs it.

    One argument is looked at by itself, so that such a name says nothing about the others.
    """
    import typing

    inside: Any = function
    while hasattr(inside, "__wrapped__"):
        inside = inside.__wrapped__
    alone = SimpleNamespace(__annotations__={name: inside.__annotations__.get(name, Any)})
    try:
        return typing.get_type_hints(alone, inside.__globals__)[name]
    except (TypeError, NameError, AttributeError):
        return Any


def _is_of_kind(value: Any, kind: Any) -> bool:
    import typing
    from types import UnionType

    origin = typing.get_origin(kind)
    if origin in (typing.Union, UnionType):
        return any(_is_of_kind(value, one) for one in typing.get_args(kind))
    if origin is typing.Literal:
        return value in typing.get_args(kind)
    kind = origin or kind
    if kind is Any or not isinstance(kind, type):
        return True
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(value, name) for name in (*vars(kind), *kind.__annotations__) if not name.startswith("_"))
    if kind is float:
        return isinstance(value, (int, float)) or hasattr(value, "__float__")
    if kind is int:
        return hasattr(value, "__index__")
    return isinstance(value, kind)


def _in_words(kind: Any) -> str:
    """What an annotation allows, as a reader of documents knows it."""
    import typing

    parts = typing.get_args(kind) if not isinstance(kind, type) and typing.get_origin(kind) is not None else ()
    if parts and (typing.get_origin(kind) is typing.Union or "Union" in type(kind).__name__):
        return " or ".join(_in_words(one) for one in parts)
    known = {"str": "a text", "float": "a number", "int": "a whole number", "NoneType": "None", "Path": "a path"}
    name = getattr(typing.get_origin(kind) or kind, "__name__", str(kind))
    return known.get(name, f"a {name}")


def _what_is_wrong(function: Callable[..., Any], name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    import inspect

    signature = inspect.signature(function)
    known = [parameter for parameter in signature.parameters if parameter != "self"]
    for argument in named:
        if argument not in known:
            return f"{name} has no argument '{argument}'{suggestion(argument, known)}"
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        return f"{name}: {error}; its arguments are {', '.join(known)}"
    return f"{name} cannot be called like this; its arguments are {', '.join(known)}"
