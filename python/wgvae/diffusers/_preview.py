"""Shows a picture after each step of a pipeline."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

from wgvae._arrays import Array, wrong
from wgvae._options import number
from wgvae._vae import Vae, preview

Show = Callable[[Array], object]
StepEnd = Callable[[Any, int, Any, dict[str, Any]], dict[str, Any]]

# By the class of the VAE, its channels of latents and its scaling factor.
_FAMILIES: dict[tuple[str, int, float | None], str] = {
    ("AutoencoderKL", 4, 0.18215): "sd15",
    ("AutoencoderKL", 4, 0.13025): "sdxl",
    ("AutoencoderKL", 4, 0.5): "playground",
    ("AutoencoderKL", 4, 0.08333): "sd_x4_upscaler",
    ("AutoencoderKL", 16, 1.5305): "sd3",
    ("AutoencoderKL", 16, 0.3611): "flux1",
    ("AutoencoderKLFlux2", 32, None): "flux2",
    ("AutoencoderKLHunyuanImage", 64, 0.75289): "hunyuan_image",
    ("AutoencoderKLQwenImage", 16, None): "qwen_image",
    ("AutoencoderKLQwenImage21", 64, None): "qwen_image21",
    ("AutoencoderKLWan", 16, None): "wan21",
    ("AutoencoderKLWan", 48, None): "wan22",
}

_PACKED_WITH_TIME = ("AutoencoderKLLTXVideo", "AutoencoderKLLTX2Video")
"""Classes whose pipelines pack frames, rows and columns into one axis."""


def preview_callback(
    pipe: Any,
    every: int = 1,
    max_side: int = 512,
    show: Show | str | Path | None = None,
    *,
    family: str | None = None,
    model: Vae | str | os.PathLike[str] | None = None,
) -> StepEnd:
    """Returns a function for ``callback_on_step_end`` that shows what the latents hold.

    Without a ``model`` it needs no weights and takes milliseconds, but colours are only roughly
    right: see :func:`wgvae.preview`. It never breaks a generation: if something fails, it warns
    once and ends.

    >>> pipe(prompt, callback_on_step_end=preview_callback(pipe, every=2))    # doctest: +SKIP
    >>> preview_callback(pipe, model="hf:madebyollin/taesdxl")                # doctest: +SKIP

    Parameters
    ----------
    pipe
        Pipeline of diffusers, with its own VAE or wgvae's.
    every
        Number of steps from one preview to the next. The first step has one.
    max_side
        The most pixels of the longer side.
    show
        Function that takes uint8 ``[n, h, w, 3]``, with each frame of a clip as a picture. A
        path is that of a picture that each preview overwrites. None shows it in a notebook.
    family
        The published model of the latents, such as "sdxl", where the VAE does not tell.
    model
        Tiny autoencoder of these latents, such as TAESDXL for SDXL, whose colours are right: an
        open :class:`wgvae.Vae`, or a path for :meth:`wgvae.Vae.from_pretrained`. Each frame of a
        clip is decoded alone. None takes the linear map.

    Raises
    ------
    InputError
        If an argument is wrong, the family is unknown or has no known map, ``model`` takes other
        latents, or ``show`` is None outside of notebooks.
    wgvae.Error
        The errors of :meth:`wgvae.Vae.from_pretrained`, if ``model`` is a path.
    """
    every, max_side = number("every", every, "steps"), number("max_side", max_side, "pixels")
    layout = _layout(pipe, family, needs_map=model is None)
    painter = _painter(layout, model, max_side)
    display = _shower(show)
    failed = False

    def on_step_end(
        running: Any, step: int, timestep: Any, tensors: dict[str, Any]
    ) -> dict[str, Any]:
        nonlocal failed
        if not failed and step % every == 0:
            try:
                latents = tensors["latents"].detach().float().cpu()
                unpacked = layout.unpacked(latents, _size_of_call(running))
                display(painter(unpacked))
            except Exception as error:
                failed = True
                # A filter may turn warnings into errors.
                with suppress(Warning):
                    text = f"no more previews: {type(error).__name__}: {error}"
                    warnings.warn(text, stacklevel=2)
        return tensors

    return on_step_end


@dataclass(frozen=True)
class _Layout:
    """The latents that a pipeline holds while it works."""

    family: str | None
    """The published model of the latents. None if it is unknown, and no map is needed."""
    vae_channels: int
    model_channels: int
    """Channels of the latents in :func:`wgvae.preview` and :meth:`wgvae.Vae.decode`."""
    factor: int
    """Pixels for each latent of the VAE, in each direction."""

    def unpacked(self, latents: torch.Tensor, size: tuple[int, int] | None) -> torch.Tensor:
        """Returns ``[n, c, h, w]`` or ``[n, c, t, h, w]`` of the latents of a pipeline.

        FLUX and Qwen-Image have ``[n, h * w, k]``, where k channels hold 2x2 latents of the VAE.
        FLUX.2's family has such channels itself, and Qwen-Image 2.1 has single latents there.
        """
        if latents.ndim != 3:
            return latents
        count, tokens, held = latents.shape
        side = 2 if held == 4 * self.vae_channels else 1
        rows, columns = _grid(tokens, size, side * self.factor)
        latents = latents.reshape(-1, rows, columns, held)
        if held == self.model_channels:
            return latents.permute(0, 3, 1, 2)
        latents = latents.reshape(-1, rows, columns, held // side**2, side, side)
        return latents.permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)


def _layout(pipe: Any, stated: str | None, needs_map: bool) -> _Layout:
    """Returns the layout of the latents of ``pipe``.

    Raises InputError if ``needs_map`` is True and their family is unknown or has no map.
    """
    vae = getattr(pipe, "vae", None)
    vae = getattr(vae, "_orig_mod", vae)
    config = getattr(vae, "config", {})
    channels = config.get("latent_channels", config.get("z_dim"))
    if channels is None:
        raise wrong("pipe", "a pipeline with a VAE", type(pipe).__name__)
    name = type(vae).__name__
    if name in _PACKED_WITH_TIME:
        expected = "a pipeline whose latents keep time apart from height and width"
        raise wrong("pipe", expected, f"one with {name}")
    family = stated or _FAMILIES.get((name, channels, config.get("scaling_factor")))
    if family is None and needs_map:
        expected = "the published model of the latents, such as family='sdxl'"
        raise wrong("family", expected, f"none, and {name} with {channels} channels does not tell")
    of_model = 4 * channels if name == "AutoencoderKLFlux2" else channels
    if family is not None and needs_map:
        preview(np.zeros((of_model, 1, 1), np.float32), family)
    return _Layout(family, channels, of_model, getattr(pipe, "vae_scale_factor", 8))


def _painter(
    layout: _Layout, model: Vae | str | os.PathLike[str] | None, max_side: int
) -> Callable[[torch.Tensor], Array]:
    """Returns a function from unpacked latents to uint8 ``[n, h, w, 3]``."""
    family = layout.family
    if model is None:
        assert family is not None
        return lambda latents: preview(latents, family, max_side=max_side)
    vae = model if isinstance(model, Vae) else Vae.from_pretrained(model)
    taken = vae.facts["latent_channels"][False]
    if taken != layout.model_channels:
        expected = f"one for the pipeline's latents of {layout.model_channels} channels"
        raise wrong("model", expected, f"{vae.facts['name']}, which takes {taken} channels")

    def decoded(latents: torch.Tensor) -> Array:
        if latents.ndim == 5:
            latents = latents.movedim(2, 1).flatten(0, 1)
        return vae.decode(latents, max_side=max_side)

    return decoded


def _grid(tokens: int, size: tuple[int, int] | None, pixels: int) -> tuple[int, int]:
    """Returns rows and columns of the latents of a picture, a square if ``size`` is unknown.

    There may be several pictures: layers.
    """
    if size is None:
        rows = columns = math.isqrt(tokens)
    else:
        rows, columns = (extent // pixels for extent in size)
    if rows * columns == 0 or tokens % (rows * columns) or (size is None and rows**2 != tokens):
        raise wrong("latents", f"those of {rows} rows and {columns} columns", f"{tokens} latents")
    return rows, columns


def _size_of_call(pipe: Any) -> tuple[int, int] | None:
    """Returns height and width of the picture that ``pipe`` makes now.

    Packed latents do not tell their shape, and pipelines keep it in variables of ``__call__``.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        height, width = frame.f_locals.get("height"), frame.f_locals.get("width")
        if (
            frame.f_locals.get("self") is pipe
            and isinstance(height, int)
            and isinstance(width, int)
        ):
            return height, width
        frame = frame.f_back
    return None


def _shower(show: Show | str | Path | None) -> Show:
    if show is None:
        return _notebook()
    if isinstance(show, (str, Path)):
        path = Path(show)
        return lambda pictures: _side_by_side(pictures).save(path)
    if not callable(show):
        raise wrong("show", "a function, a path or None", repr(show))
    return show


def _notebook() -> Show:
    """Returns a function that shows pictures in the output of a notebook's cell, in place."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        raise wrong(
            "show", "a function or a path, such as show='preview.png'", "None outside of a notebook"
        )
    from IPython.display import display

    handle: list[Any] = []

    def show(pictures: Array) -> None:
        picture = _side_by_side(pictures)
        if handle:
            handle[0].update(picture)
        else:
            handle.append(display(picture, display_id=True))

    return show


def _side_by_side(pictures: Array) -> Any:
    """Returns a picture of PIL with four pictures at most, at equal distances."""
    from PIL import Image

    chosen = (
        pictures
        if len(pictures) <= 4
        else pictures[np.linspace(0, len(pictures) - 1, 4).round().astype(int)]
    )
    return Image.fromarray(np.concatenate(list(chosen), axis=1))
