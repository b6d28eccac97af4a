"""Checks arguments, and collects those of a call for the native half."""

from __future__ import annotations

import operator
import secrets
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from wgvae import _native
from wgvae._arrays import wrong

Precision: TypeAlias = Literal["auto", "f16", "f32", "fast"]
Border: TypeAlias = Literal["zeros", "reflect", "replicate", "circular"]
Device: TypeAlias = Literal["auto", "gpu", "cpu"]
Parking: TypeAlias = Literal["auto", "on", "off"]
Output: TypeAlias = Literal["uint8", "float"]
Tiling: TypeAlias = Literal["exact", "blend", "cosine", "estimate"]

_BOOLS = (bool, np.bool_)


def number(what: str, value: Any, unit: str, least: int = 1, most: int = (1 << 32) - 1) -> int:
    """Returns a whole number of any type, such as numpy's, as an int. Booleans are no numbers.

    Raises
    ------
    InputError
        If the argument ``what`` is none from ``least`` to ``most``.
    """
    try:
        found = None if isinstance(value, _BOOLS) else operator.index(value)
    except TypeError:
        found = None
    if found is None or not least <= found <= most:
        raise wrong(what, f"{least} to {most} {unit}", repr(value) if found is None else str(found))
    return found


def optional(what: str, value: Any, unit: str, least: int = 1, most: int = (1 << 32) - 1) -> int | None:
    """Returns a number as :func:`number` does, or None."""
    return None if value is None else number(what, value, unit, least, most)


def flag(what: str, value: Any) -> bool:
    """Returns a boolean. Texts such as "no" would count as true."""
    if not isinstance(value, _BOOLS):
        raise wrong(what, "True or False", repr(value))
    return bool(value)


def word(what: str, value: Any, words: Any = None) -> str:
    """Returns a text, one of the Literal ``words`` if they are given."""
    choices = get_args(words)
    if not isinstance(value, str) or (choices and value not in choices):
        expected = " or ".join(f'"{choice}"' for choice in choices) or "a word"
        raise wrong(what, expected, repr(value))
    return value


def budget(value: int | str | None) -> int | None:
    """Returns a memory budget in bytes."""
    if isinstance(value, str):
        return _native.parse_bytes(value)
    return optional("memory_budget", value, 'bytes, or text such as "2GiB"', most=(1 << 64) - 1)


def adapter_name(value: str | int | None) -> str | None:
    """Returns a part of an adapter's name, or its index as text."""
    if value is None or isinstance(value, str):
        return value
    return str(number("adapter", value, "as an index, or part of a name, or None", least=0))


def seed(value: int | None) -> int | None:
    """Returns the seed of samples."""
    return optional("seed", value, "(2**64 - 1), or None", least=0, most=(1 << 64) - 1)


def drawn(sample: bool, value: int | None, moments: bool) -> int | None:
    """Returns the seed for the noise of an encode, or None if there is none to draw."""
    stated = seed(value)
    if not flag("sample", sample):
        if stated is not None:
            raise wrong("seed", "sample=True with it", "sample=False")
        return None
    if moments:
        raise wrong("moments", "sample=False with it", "sample=True")
    return secrets.randbits(64) if stated is None else stated


def call_options(
    least_memory: bool,
    unscaled: bool,
    output: str,
    memory_budget: int | str | None,
    parking: str,
    moments: bool = False,
    seed: int | None = None,
) -> _native.Options:
    """Returns the options of a call that decodes or encodes whole."""
    return {
        "unscaled": flag("unscaled", unscaled),
        "floats": word("output", output, Output) == "float",
        "memory_budget": budget(memory_budget),
        "least_memory": least_memory,
        "parking": word("parking", parking),
        "clip_latents": None,
        "moments": flag("moments", moments),
        "seed": seed,
        "max_side": None,
        "tiling": "exact",
        "tile_size": None,
        "tile_overlap": None,
    }


def divide(
    options: _native.Options, max_side: int | None, tiling: str, size: int | None, overlap: int | None
) -> None:
    """Adds to ``options`` how a decode averages and divides an image."""
    options["max_side"] = optional("max_side", max_side, "pixels")
    options["tiling"] = word("tiling", tiling)
    options["tile_size"] = optional("tile_size", size, "pixels")
    # Tiles may lie side by side.
    options["tile_overlap"] = optional("tile_overlap", overlap, "pixels", least=0)
