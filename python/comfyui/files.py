"""The models in ComfyUI's folders, by their names in lists."""

from __future__ import annotations

import os

from wgvae._arrays import wrong

import folder_paths

from .vae import Files

States = tuple[tuple[int, int], ...]
"""Time of change and size of each file."""


def models() -> dict[str, list[tuple[str, str]]]:
    """Returns the models by their names in lists: folder and file of the decoder and of the encoder.

    Names of other folders than vae begin with the folder. As in ComfyUI, two files of vae_approx such
    as taesd_decoder and taesd_encoder are one model, taesd.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for folder in ("vae", "checkpoints", "vae_approx"):
        names = [name for name in folder_paths.get_filename_list(folder) if name.endswith((".safetensors", ".sft"))]
        prefix = "" if folder == "vae" else f"{folder}/"
        for name in names:
            encoder = name.replace("_decoder.", "_encoder.")
            if folder == "vae_approx" and name != encoder and encoder in names:
                found[prefix + name.partition("_decoder.")[0]] = [(folder, name), (folder, encoder)]
            elif folder != "vae_approx" or "_encoder." not in name or name.replace("_encoder.", "_decoder.") not in names:
                found[prefix + name] = [(folder, name)] * 2
    return found


def files_of(name: str, what: str = "vae_name") -> Files:
    """Returns the paths of the model ``name``, which the input ``what`` gives.

    Raises
    ------
    wgvae.errors.InputError
        If :func:`models` has no such name.
    """
    listed = models()
    if name not in listed:
        raise wrong(what, "a .safetensors or .sft file of models/vae, checkpoints or vae_approx", name)
    return Files(*(folder_paths.get_full_path_or_raise(*half) for half in listed[name]))


def states_of(files: Files) -> States:
    """Returns what changes when another file takes the place of one of ``files``."""
    states = [os.stat(path) for path in (files.decoder, files.encoder)]
    return tuple((state.st_mtime_ns, state.st_size) for state in states)
