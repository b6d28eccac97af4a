"""Warnings that point at the caller of the package."""

from __future__ import annotations

import sys
import warnings

# Packages whose frames lie between a call of this package and the code of its user.
_BETWEEN = frozenset(("diffusers", "torch", "wgvae"))


def warn(text: str) -> None:
    """Warns with ``text`` at the line of the user's code that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)
