"""Replaces the VAE of a pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from wgvae._arrays import wrong
from wgvae._vae import Vae
from wgvae.diffusers import _images, _videos
from wgvae.diffusers._files import tensors
from wgvae.diffusers._load import border_of
from wgvae.diffusers._model import EngineModel

CLASSES: dict[str, type[EngineModel]] = {
    each.__name__: each
    for each in (
        _images.AutoencoderDC,
        _images.AutoencoderKL,
        _images.AutoencoderKLFlux2,
        _images.AutoencoderKLHunyuanImage,
        _images.AutoencoderTiny,
        _videos.AutoencoderKLHunyuanVideo15,
        _videos.AutoencoderKLLTX2Video,
        _videos.AutoencoderKLQwenImage,
        _videos.AutoencoderKLQwenImage21,
        _videos.AutoencoderKLWan,
    )
}
"""Classes by their names, which are diffusers' names, too."""


def swap(pipe: Any, *, memory_budget: int | str | None = None, **engine: Any) -> str:
    """Replaces the VAEs of a pipeline by wgvae's, and returns a sentence that says so.

    The weights come from the folder that the pipeline was loaded from, if it still has the same
    ones. Otherwise they are written to a temporary folder, which stays as long as the VAE.
    Type and device are those of the old VAE. Call it before the pipeline's offloading methods.

    >>> print(wgvae.diffusers.swap(pipe, memory_budget="2GiB"))    # doctest: +SKIP
    vae: AutoencoderKL now runs on wgvae (NVIDIA H100), with the weights of sdxl/vae.

    Parameters
    ----------
    pipe
        Pipeline of diffusers.
    memory_budget
        Limit of the device's memory, in bytes or as text such as "2GiB".
    engine
        Other arguments of :meth:`wgvae.Vae.from_pretrained`, such as ``device``.

    Raises
    ------
    InputError
        If the pipeline has no VAE, or none of a class that wgvae has, or if it runs on wgvae
        already. Nothing is changed then.
    wgvae.Error
        Other errors of :meth:`wgvae.Vae.from_pretrained`.
    """
    found = {name: part for name, part in _components(pipe).items() if _is_vae(part)}
    known = {name: part for name, part in found.items() if type(part).__name__ in CLASSES}
    if not known:
        names = [f"{name}: {type(part).__name__}" for name, part in found.items()]
        names += [
            f"{name}: one that runs on wgvae already (pipe.{name}.memory_budget changes its budget)"
            for name, part in _components(pipe).items()
            if isinstance(part, EngineModel)
        ]
        raise wrong(
            "pipe",
            f"a VAE of a class that wgvae has ({', '.join(CLASSES)})",
            ", ".join(names) or f"none in {type(pipe).__name__}",
        )
    replacements = {
        name: _replacement(name, part, memory_budget, engine) for name, part in known.items()
    }
    for name, (model, _) in replacements.items():
        setattr(pipe, name, model)
    sentences = [sentence for _, sentence in replacements.values()]
    sentences += [
        f"{name}: {type(part).__name__} stays with torch, as wgvae lacks it."
        for name, part in found.items()
        if name not in known
    ]
    return " ".join(sentences)


def _components(pipe: Any) -> dict[str, Any]:
    """Returns the parts of a pipeline. A part that torch.compile wraps is taken out of it."""
    components = getattr(pipe, "components", None)
    if not isinstance(components, dict):
        raise wrong("pipe", "a pipeline of diffusers", type(pipe).__name__)
    return {name: getattr(part, "_orig_mod", part) for name, part in components.items()}


def _is_vae(part: Any) -> bool:
    """Returns True if ``part`` is an autoencoder of diffusers that torch runs."""
    kind = type(part)
    return (
        not isinstance(part, EngineModel)
        and kind.__module__.startswith("diffusers.models.autoencoders.")
        and hasattr(kind, "decode")
    )


def _replacement(
    name: str, own: Any, memory_budget: int | str | None, engine: dict[str, Any]
) -> tuple[EngineModel, str]:
    """Returns the new VAE and the sentence about it."""
    kind = CLASSES[type(own).__name__]
    vae = _stored(own, engine)
    if vae is None:
        model = kind.from_torch(own, memory_budget=memory_budget, dtype=own.dtype, **engine)
        source = "a copy of its weights in a temporary folder"
    else:
        model = kind._wrap(vae, memory_budget, dtype=own.dtype, config=own.config)
        source = f"the weights of {vae.facts['name']}"
    model.to(own.device)
    return model, f"{name}: {kind.__name__} now runs on wgvae ({model.vae.adapter}), with {source}."


def _stored(own: Any, engine: dict[str, Any]) -> Vae | None:
    """Opens the folder that ``own`` was loaded from, if it holds the weights of ``own``."""
    name = own.config.get("_name_or_path")
    if not name:
        return None
    folder = Path(name)
    if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
        return None
    vae = Vae.from_pretrained(folder, **(border_of(own) | engine))
    if _holds(vae.facts["files"], own):
        return vae
    vae.close()
    return None


def _holds(files: list[str], own: Any) -> bool:
    """Returns True if ``files`` have the weights of ``own``, apart from rounding to its type.

    Weights that are offloaded to files by accelerate cannot be compared. They are not changed
    there, so they count as the same.
    """
    expected = dict(own.state_dict())
    for name, tensor in tensors(files):
        weight = expected.pop(name, None)
        if weight is None:
            return False
        if not weight.is_meta and not torch.equal(tensor.to(weight.dtype), weight.cpu()):
            return False
    return all(name.endswith("num_batches_tracked") for name in expected)
