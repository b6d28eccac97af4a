"""Finds the ``config`` of a VAE: in its config.json, or in what wgvae knows of its network."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

from wgvae._arrays import wrong

Settings = dict[str, Any]


def settings(own: Any, facts: dict[str, Any]) -> Settings:
    """Returns the arguments of diffusers' class ``own`` for a model with these ``facts``.

    They are in the config.json of a folder. A file alone gets those of its network.

    Raises
    ------
    InputError
        If config.json names another class, or nothing tells the scale of the latents.
    """
    beside = Path(facts["files"][0]).parent / "config.json"
    if Path(facts["name"]).is_file() or not beside.exists():
        if not facts["scaled"]:
            raise wrong(
                "config",
                "config= or family=, as the file does not tell the scale of its latents",
                "neither",
            )
        return _of_network(own, facts)
    found: Settings = json.loads(beside.read_text())
    name = found.get("_class_name", own.__name__)
    if name != own.__name__:
        raise wrong(
            "vae",
            f"an {own.__name__}",
            f"an {name}, for which wgvae.diffusers.{name} is the class, if there is one",
        )
    return found


def _of_network(own: Any, facts: dict[str, Any]) -> Settings:
    config = facts["config"]
    known = {**config, **_renamed(config, facts)}
    names = inspect.signature(own.__init__).parameters
    return {name: known[name] for name in names if known.get(name) is not None}


def _renamed(config: Settings, facts: dict[str, Any]) -> Settings:
    """Returns the settings that diffusers' classes call otherwise, or that wgvae does not keep."""
    levels = len(config.get("block_out_channels", ()))
    factor = facts["latent_factor"][1]
    patch = config.get("patch_size") if config["network"] == "wan" else config["patch"]
    return {
        "down_block_types": ["DownEncoderBlock2D"] * levels,
        "up_block_types": ["UpDecoderBlock2D"] * levels,
        "patch_size": None
        if patch in (None, 1)
        else [patch, patch]
        if config["network"] == "kl"
        else patch,
        "spatial_compression_ratio": factor,
        "scale_factor_spatial": factor,
        "scale_factor_temporal": facts["temporal_factor"],
        "z_dim": config["latent_channels"],
        "input_channels": config["in_channels"],
    }
