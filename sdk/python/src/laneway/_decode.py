"""Decodes JSON into the dataclasses of the wire. Ignores fields of a newer server."""

from __future__ import annotations

import dataclasses
import types
from typing import Any, Callable, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Read = Callable[[Any], Any]


def decode(kind: type[T], data: Any) -> T:
    """Decodes a JSON value as a type."""
    value: T = _reader(kind)(data)
    return value


def _as_it_is(data: Any) -> Any:
    return data


_readers: dict[Any, Read] = {}


def _reader(kind: Any) -> Read:
    known = _readers.get(kind)
    if known is None:
        known = _readers[kind] = _new_reader(kind)
    return known


def _new_reader(kind: Any) -> Read:
    if dataclasses.is_dataclass(kind):
        return _reader_of_class(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is list:
        each = _reader(inner[0])
        return _as_it_is if each is _as_it_is else lambda data: [each(item) for item in data]
    if origin is dict:
        each = _reader(inner[1])
        return _as_it_is if each is _as_it_is else lambda data: {key: each(item) for key, item in data.items()}
    if origin is Union or origin is types.UnionType:
        some = [_reader(part) for part in inner if part is not type(None)]
        if len(some) == 1 and some[0] is not _as_it_is:
            return lambda data: None if data is None else some[0](data)
    return _as_it_is


def _reader_of_class(kind: Any) -> Read:
    hints = get_type_hints(kind)
    # A field whose name Python reserves has an underscore after it.
    names = {field.name.removesuffix("_"): field.name for field in dataclasses.fields(kind)}
    readers = {key: _reader(hints[name]) for key, name in names.items()}
    rest = next((field.name for field in dataclasses.fields(kind) if field.metadata.get("rest")), None)

    def read(data: Any) -> Any:
        return kind(**{names[key]: readers[key](value) for key, value in data.items() if key in readers})

    def read_with_rest(data: Any) -> Any:
        known = {key: value for key, value in data.items() if key in readers and key != rest}
        more = {key: value for key, value in data.items() if key not in known}
        return kind(**{names[key]: readers[key](value) for key, value in known.items()}, **{str(rest): more})

    return read if rest is None else read_with_rest
