"""Converts arguments to numpy arrays: tensors and arrays of other packages, and PIL images.

Nothing here imports torch or PIL. Only five kinds of input are copied: PIL images, lists, arrays
in another byte order, unaligned arrays, and latents of several images with layers. The native half
reads all others in place, with their strides, and copies each image once, to contiguous floats.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from wgvae.errors import InputError

Array: TypeAlias = np.ndarray[Any, Any]


@runtime_checkable
class HasArray(Protocol):
    """An object that converts itself to a numpy array."""

    def __array__(self, /, *args: Any, **kwargs: Any) -> Array: ...


@runtime_checkable
class HasDlpack(Protocol):
    """An object that shares its memory by DLPack."""

    def __dlpack__(self, /, *args: Any, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, int]: ...


@runtime_checkable
class Picture(Protocol):
    """An image of PIL."""

    @property
    def mode(self) -> str: ...

    def getbands(self) -> tuple[str, ...]: ...

    def tobytes(self) -> bytes: ...


ArrayLike: TypeAlias = Array | HasArray | HasDlpack

# DLPack's device type for host memory.
_CPU = 1


def wrong(what: str, expected: str, found: str) -> InputError:
    """Returns the error for the argument ``what``, for the caller to raise."""
    return InputError(f"{what}: expected {expected}, found {found}", what=what, expected=expected, found=found)


def as_array(value: Any, what: str) -> tuple[Array, bool]:
    """Returns ``value`` as a numpy array, without a copy where possible.

    Parameters
    ----------
    value
        A numpy array, a torch tensor on the CPU, or an object with ``__array__`` or ``__dlpack__``.
    what
        Name of the argument, for errors.

    Returns
    -------
    tuple of (numpy.ndarray, bool)
        The array, and True if it holds the bits of bfloat16 as uint16. Numpy has no bfloat16.

    Raises
    ------
    InputError
        If ``value`` is no such object, is on another device, or is a masked array.
    """
    bfloat16 = False
    if hasattr(value, "detach") and hasattr(value, "device"):
        value, bfloat16 = _of_tensor(value, what)
    elif not isinstance(value, np.ndarray):
        value = _of_other(value, what)
    if isinstance(value, np.ma.MaskedArray):
        raise wrong(what, "an array without a mask (value.filled(0))", "a masked array")
    if value.dtype.name == "bfloat16":
        value, bfloat16 = value.view(np.uint16), True
    if not value.dtype.isnative or not value.flags.aligned:
        # From a file of another byte order, or a field of a packed record.
        value = np.require(value.astype(value.dtype.newbyteorder("=")), requirements=["A"])
    return value, bfloat16


def _of_tensor(value: Any, what: str) -> tuple[Array, bool]:
    """Returns a torch tensor as :func:`as_array` does.

    The caller made the tensor with torch, so ``sys.modules`` has it.
    """
    device = str(value.device)
    if device != "cpu":
        raise wrong(what, "a tensor on the CPU (tensor.cpu())", f"one on {device}")
    value = value.detach()
    try:
        if str(value.dtype) == "torch.bfloat16":
            return value.view(sys.modules["torch"].uint16).numpy(), True
        return value.numpy(), False
    except (TypeError, RuntimeError, KeyError) as error:
        raise wrong(what, "a dense tensor of float32, float16 or bfloat16", f"{value.dtype} ({error})") from error


def _of_other(value: Any, what: str) -> Array:
    expected = "a numpy array, or what has __array__ or __dlpack__"
    try:
        if hasattr(value, "__dlpack_device__") and not hasattr(value, "__array__"):
            kind, _ = value.__dlpack_device__()
            if int(kind) != _CPU:
                raise wrong(what, "memory of the CPU", f"DLPack device {int(kind)}")
            return np.from_dlpack(value)
        if hasattr(value, "__array__"):
            array = np.asarray(value)
            if isinstance(array, np.ndarray):
                return array
    except InputError:
        raise
    except Exception as error:
        raise wrong(what, expected, f"{type(value).__name__}, which failed: {error}") from error
    raise wrong(what, expected, type(value).__name__)


def as_latents(value: Any, video: bool) -> tuple[Array, bool]:
    """Returns latents as ``[n, c, h, w]``, and True if they are bits of bfloat16.

    Each layer of ``[n, c, layers, h, w]`` becomes an image, unless the model is for ``video``: then
    the axis counts frames, which depend on each other.

    Raises
    ------
    InputError
        If the shape is another.
    """
    array, bfloat16 = as_array(value, "latents")
    if array.ndim == 3:
        array = array[None]
    if array.ndim == 5 and not video:
        count, channels, layers, height, width = array.shape
        array = array.swapaxes(1, 2).reshape(count * layers, channels, height, width)
    if array.ndim != 4:
        other = "; Vae.clip() decodes [1, c, t, h, w]" if video else " or [n, c, layers, h, w]"
        raise wrong("latents", f"a shape [n, c, h, w], [c, h, w]{other}", str(list(array.shape)))
    return array, bfloat16


def as_images(value: Any, channels: int) -> tuple[Array, bool]:
    """Returns images for a model of ``channels``, and True if they are bits of bfloat16.

    The images are uint8 ``[n, h, w, c]`` or floats ``[n, c, h, w]``. The native half checks types
    and the number of channels.

    Raises
    ------
    InputError
        If the images are of no accepted shape, a list has images of several sizes or types, or a
        PIL image has a mode that the model cannot take.
    """
    if isinstance(value, Picture):
        return _of_picture(value, "images", channels)[None], False
    if isinstance(value, (list, tuple)):
        return _of_list(value, channels)
    array, bfloat16 = as_array(value, "images")
    if array.ndim == 3:
        array = array[None]
    if array.ndim != 4:
        raise wrong("images", f"a shape [n, h, w, {channels}] of uint8 or [n, {channels}, h, w] of floats", str(list(array.shape)))
    return array, bfloat16


def _of_list(images: list[Any] | tuple[Any, ...], channels: int) -> tuple[Array, bool]:
    if not images:
        raise wrong("images", "at least one", "none")
    if all(isinstance(image, Picture) for image in images):
        arrays = [_of_picture(image, f"images[{index}]", channels) for index, image in enumerate(images)]
        bfloat16 = False
    elif any(isinstance(image, Picture) for image in images):
        odd = next(index for index, image in enumerate(images) if not isinstance(image, Picture))
        raise wrong(f"images[{odd}]", "an image of PIL, as others of the list are", type(images[odd]).__name__)
    else:
        pairs = [as_array(image, f"images[{index}]") for index, image in enumerate(images)]
        arrays = [array for array, _ in pairs]
        bfloat16 = pairs[0][1]
        if any(other != bfloat16 for _, other in pairs):
            raise wrong("images", "images of one type", "bfloat16 among others")
    first = arrays[0]
    if first.ndim != 3:
        expected = f"a shape [h, w, {channels}] of uint8 or [{channels}, h, w] of floats"
        raise wrong("images[0]", expected, str(list(first.shape)))
    for index, array in enumerate(arrays):
        if array.shape != first.shape or array.dtype != first.dtype:
            expected = f"images of one size and type, as images[0]: {first.dtype} {list(first.shape)}"
            raise wrong(f"images[{index}]", expected, f"{array.dtype} {list(array.shape)}")
    return np.stack(arrays), bfloat16


def _of_picture(picture: Any, what: str, channels: int) -> Array:
    if picture.mode == "L":
        picture = picture.convert("RGB")
    if picture.mode != "RGB" and (picture.mode, channels) != ("RGBA", 4):
        expected = 'mode RGB or L (image.convert("RGB") leaves out what RGB has not)'
        if channels == 4:
            expected = 'mode RGBA, RGB or L (image.convert("RGBA") keeps the opacity of a palette)'
        raise wrong(what, expected, f"mode {picture.mode}")
    try:
        return np.asarray(picture)
    except OSError as error:
        raise wrong(what, "a whole picture", str(error)) from error


def as_clip_latents(value: Any) -> tuple[Array, bool]:
    """Returns latents ``[1, c, t, h, w]`` of a clip as ``[t, c, h, w]``.

    The second value is True if they are bits of bfloat16.

    Raises
    ------
    InputError
        If the shape is another.
    """
    array, bfloat16 = as_array(value, "latents")
    if array.ndim != 5 or array.shape[0] != 1:
        raise wrong("latents", "a shape [1, c, t, h, w]", str(list(array.shape)))
    return array[0].swapaxes(0, 1), bfloat16


def as_frames(value: Any) -> tuple[Array, bool]:
    """Returns frames, and True if they are bits of bfloat16.

    Frames of uint8 stay ``[t, h, w, 3]``. Frames of floats ``[1, 3, t, h, w]`` become
    ``[t, 3, h, w]``.

    Raises
    ------
    InputError
        If the shape is another.
    """
    if isinstance(value, (list, tuple)):
        return as_images(value, 3)
    array, bfloat16 = as_array(value, "frames")
    if array.dtype == np.uint8 and array.ndim == 4:
        return array, False
    if array.dtype != np.uint8 and array.ndim == 5 and array.shape[0] == 1:
        return array[0].swapaxes(0, 1), bfloat16
    expected = "a shape [t, h, w, 3] of uint8 or [1, 3, t, h, w] of floats"
    raise wrong("frames", expected, f"{array.dtype} {list(array.shape)}")
