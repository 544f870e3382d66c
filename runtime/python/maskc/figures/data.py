# SPDX-License-Identifier: Apache-2.0
"""Checks of the JSON that figures are made of. A check is a function (value, place) that returns the value as the figure needs it,
or raises Bad with one line that names the place."""
import base64
import binascii
import re
import types

UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # characters that no picture, and no XML, may hold
MOST = 1e30  # axes have no place for much larger numbers
TYPES = {"f4": "<f4", "u1": "u1"}  # of an array in base64


class Bad(Exception):
    """Input that is refused, in one line."""


def text(value, place):
    if not isinstance(value, str):
        raise Bad(f"{place}: a text is expected")
    return UNSEEN.sub("\ufffd", value)


def number(value, place):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= MOST:
        raise Bad(f"{place}: a number of at most {MOST:g} is expected")
    return float(value)


def deviation(value, place):
    found = number(value, place)
    if found < 0:
        raise Bad(f"{place}: a deviation is not below 0")
    return found


def flag(value, place):
    if not isinstance(value, bool):
        raise Bad(f"{place}: true or false is expected")
    return value


def choice(*words):
    def check(value, place):
        if value not in words:
            raise Bad(f"{place}: {', '.join(words)} is expected")
        return value
    return check


def listing(item, least=1):
    def check(value, place):
        if not isinstance(value, list) or len(value) < least:
            raise Bad(f"{place}: a list of at least {least} is expected")
        return [item(v, f"{place}[{k}]") for k, v in enumerate(value)]
    return check


def numbers(least, most):
    def check(value, place):
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise Bad(f"{place}: a list of {' or '.join(map(str, sorted({least, most})))} numbers is expected")
        return tuple(number(v, f"{place}[{k}]") for k, v in enumerate(value))
    return check


def point(value, place):
    """[x, y] or [x, y, deviation]"""
    found = numbers(2, 3)(value, place)
    return found[:2] + tuple(deviation(x, place) for x in found[2:])


def optional(check, default=None):
    """A field that may be missing or null."""
    def either(value, place):
        return default if value is None else check(value, place)
    either.optional = True
    return either


def record(others=False, **checks):
    """An object with these fields, as a namespace. Other fields are refused unless `others`."""
    def check(value, place):
        if not isinstance(value, dict):
            raise Bad(f"{place}: an object is expected")
        for name in value:
            if name not in checks and not others:
                raise Bad(f"{place}: has a field \"{name}\"; {', '.join(checks)} are expected")
        for name in checks:
            if name not in value and not getattr(checks[name], "optional", False):
                raise Bad(f"{place}: has no field \"{name}\"")
        return types.SimpleNamespace(**{name: c(value.get(name), f"{place}.{name}") for name, c in checks.items()})
    return check


def array(rank):
    """Numbers as nested lists, or as {"type": "f4" or "u1", "shape": [..], "base64": ".."}, little-endian. An array of numpy."""
    def check(value, place):
        import numpy
        found = decode(value, place) if isinstance(value, dict) else nested(value, rank, place)
        if found.ndim != rank or not found.size:
            raise Bad(f"{place}: an array of {rank} dimensions is expected")
        if not (abs(found) <= MOST).all():
            raise Bad(f"{place}: numbers of at most {MOST:g} are expected")
        return found
    return check


def decode(value, place):
    import numpy
    fields = record(type=choice(*TYPES), shape=listing(number), base64=text)(value, place)
    shape = [int(s) for s in fields.shape]
    try:
        found = numpy.frombuffer(base64.b64decode(fields.base64, validate=True), TYPES[fields.type])
        return found.reshape(shape).astype("f4") if min(shape) > 0 else found
    except (binascii.Error, ValueError):
        raise Bad(f"{place}.base64: not the bytes of an array of shape {shape}") from None


def nested(value, rank, place):
    import numpy
    check = number
    for _ in range(rank):
        check = listing(check)
    found = check(value, place)
    try:
        return numpy.array(found, "f8")
    except ValueError:
        raise Bad(f"{place}: its rows have different lengths") from None


def square(values, place):
    """A map of queries by keys."""
    if values.shape[-1] != values.shape[-2]:
        raise Bad(f"{place}: as many queries as keys are expected, not {values.shape[-2]} x {values.shape[-1]}")
    return values


axis = record(label=text, scale=optional(choice("linear", "log", "log2"), "linear"), least=optional(number), most=optional(number))
level = record(name=text, value=number, band=optional(deviation))  # a line, as dense or the majority; band: half of what is shaded around it
zoom = record(x=numbers(2, 2), y=numbers(2, 2))  # a part that is drawn a second time, larger
