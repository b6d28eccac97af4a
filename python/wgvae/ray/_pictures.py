"""Reads pictures for an encode, and records how each was changed."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from wgvae._arrays import Array

# Exceptions of PIL for bytes that are no picture, a broken one, or a decompression bomb.
BAD = (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError)


def opened(content: bytes, size: tuple[int, int] | None, factor: int, channels: int) -> tuple[Array, dict[str, Any]]:
    """Reads a picture, rotates it by its EXIF data, converts it, and crops its middle.

    A model of 4 ``channels`` gets RGBA, a model of 3 gets RGB. With a ``size`` (height, width), the
    picture is first resized by Lanczos to cover it. Without, sides are cropped to the next smaller
    multiples of ``factor``.

    Returns
    -------
    tuple of (numpy.ndarray, dict)
        Pixels uint8 ``[h, w, channels]``, and the mode, sizes and crop for the record.

    Raises
    ------
    Exception
        One of ``BAD`` if the content is no usable picture.
    """
    try:
        image = Image.open(io.BytesIO(content))
    except UnidentifiedImageError:
        raise ValueError("expected a picture that Pillow can read, found none") from None
    with image as file:
        file.load()
        mode = file.mode
        picture = _of_8_bits(ImageOps.exif_transpose(file), file.format).convert("RGBA" if channels == 4 else "RGB")
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


def _of_8_bits(picture: Image.Image, format: str | None) -> Image.Image:
    """Returns a picture of a file of ``format`` with 8 bits. PIL would cut larger greys off.

    Raises
    ------
    ValueError
        If its greys have more than 16 bits.
    """
    if picture.mode not in ("I", "F") and not picture.mode.startswith("I;16"):
        return picture
    # Some versions of PIL read 16 bits of these files as 32.
    if picture.mode == "F" or (picture.mode == "I" and format not in ("PNG", "PPM")):
        raise ValueError(f"expected greys of 8 or 16 bits, found a picture of mode {picture.mode}")
    values = np.asarray(picture, np.int64)
    return Image.fromarray(((values + 128) // 257).astype(np.uint8))


def png(picture: Array) -> bytes:
    """Returns the PNG file of a picture uint8 ``[h, w, 3]`` or ``[h, w, 4]``."""
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    return file.getvalue()
