"""ComfyUI's own VAE at an input of our nodes: the same file is opened with wgvae.

ComfyUI's object does not tell its file. The workflow does, if the loader is connected directly.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import Any

import torch
from wgvae._arrays import wrong

from .files import States, files_of, states_of
from .vae import EngineVae, Files

Graph = Mapping[str, Mapping[str, Any]]
"""A workflow as ComfyUI runs it: nodes by their id, with ``class_type`` and ``inputs``."""

# By the class of a loader: its input with a file's name, its output that is the VAE, and the
# beginning of the name in our own list.
_LOADERS = {
    "VAELoader": ("vae_name", 0, ""),
    "CheckpointLoaderSimple": ("ckpt_name", 2, "checkpoints/"),
}


def engine_of(vae: object, prompt: Graph | None, unique_id: str | None) -> EngineVae:
    """Returns wgvae's VAE for the input ``vae`` of the node ``unique_id`` of the workflow ``prompt``.

    Raises
    ------
    wgvae.errors.InputError
        If ``vae`` is no VAE of wgvae, and its file is unknown or none that wgvae reads.
    """
    if isinstance(vae, EngineVae):
        return vae
    name = _name_of_file(prompt or {}, unique_id)
    if name is None:
        expected = "the output of 'Load VAE (wgvae)', or directly that of 'Load VAE' or 'Load Checkpoint'"
        found = f"{type(vae).__name__}, which does not tell its file: use 'Load VAE (wgvae)' with the same file"
        raise wrong("vae", expected, found)
    precision = "f32" if getattr(vae, "vae_dtype", None) == torch.float32 else "auto"
    files = files_of(name, "vae")
    return _opened(files, precision, states_of(files))


def _name_of_file(prompt: Graph, unique_id: str | None) -> str | None:
    """Returns the name in our own list of the file that is loaded for the input ``vae``.

    None if the workflow does not tell.
    """
    try:
        source, output = prompt[str(unique_id)]["inputs"]["vae"]
        loader = prompt[source]
        key, wanted, prefix = _LOADERS[loader["class_type"]]
        name = loader["inputs"][key]
    except (KeyError, TypeError, ValueError):
        return None
    if output != wanted or not isinstance(name, str) or name == "pixel_space":
        return None
    # ComfyUI's loader lists tiny autoencoders, too: those for images without an ending.
    loaders = getattr(sys.modules.get("nodes"), "VAELoader", None)
    of_videos = () if prefix else getattr(loaders, "video_taes", ())
    file = PurePath(name)
    return ("vae_approx/" if not file.suffix or file.stem in of_videos else prefix) + name


@lru_cache(maxsize=1)
def _opened(files: Files, precision: str, states: States) -> EngineVae:
    """Opens files, anew if their ``states`` have changed.

    ComfyUI frees its memory on demand, and the next call reads it again.
    """
    name = PurePath(files.decoder).stem
    # The tensors do not tell whose latents these take. ComfyUI goes by their names, too.
    return EngineVae(files, precision=precision, family=name if name in ("lighttaew2_1", "lighttaew2_2") else None)
