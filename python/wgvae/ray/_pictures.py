"""A picture's bytes as what is encoded, and what was done to it on the way."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from wgvae._arrays import Array

# What PIL raises for bytes that are no picture, or a broken one, or a bomb.
BAD = (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError)


def opened(content: bytes, size: tuple[int, int] | None, factor: int) -> tuple[Array, dict[str, Any]]:
    """A picture uint8 ``[h, w, 3]`` and what was done to it: turned as EXIF says, to RGB, the middle of it.

    With a ``size`` (height, width) it is resized to cover that, by Lanczos, and cropped in the middle; else cropped to the next smaller multiple of ``factor``.
    """
    with Image.open(io.BytesIO(content)) as file:
        file.load()
        mode = file.mode
        picture = ImageOps.exif_transpose(file).convert("RGB")
    done: dict[str, Any] = {"mode": mode, "size": [picture.height, picture.width]}
    if size is None:
        height, width = picture.height // factor * factor, picture.width // factor * factor
        if not height or not width:
            raise ValueError(f"expected at least {factor}x{factor} pixels, found {picture.width}x{picture.height}")
    else:
        height, width = size
        scale = max(height / picture.height, width / picture.width)
        covering = (max(width, round(picture.width * scale)), max(height, round(picture.height * scale)))
        if covering != picture.size:
            picture = picture.resize(covering, Image.Resampling.LANCZOS)
            done["resized"] = [picture.height, picture.width]
    left, top = (picture.width - width) // 2, (picture.height - height) // 2
    done["crop"] = [top, left, height, width]
    return np.asarray(picture.crop((left, top, left + width, top + height))), done


def png(picture: Array) -> bytes:
    """A picture uint8 ``[h, w, 3]`` as a file."""
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    return file.getvalue()
