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
    if config["network"] == "ltx2":
        return _of_ltx2(config, facts)
    if config["network"] == "dc":
        return _of_dc(config)
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
        "temporal_compression_ratio": facts["temporal_factor"],
        "scale_factor_spatial": factor,
        "scale_factor_temporal": facts["temporal_factor"],
        "z_dim": config["latent_channels"],
        "input_channels": config["in_channels"],
    }


def _of_dc(config: Settings) -> Settings:
    """Returns the settings of DC-AE's class that differ from wgvae's."""
    kinds = {"res": "ResBlock", "efficient_vit": "EfficientViTBlock"}
    functions_and_norms = [level["block"].get("res", {}) for level in config["decoder"]]
    known: Settings = {
        "downsample_block_type": "pixel_unshuffle" if config["unshuffles"] else "conv",
        "upsample_block_type": "pixel_shuffle" if config["shuffles"] else "interpolate",
        "decoder_act_fns": [level.get("act_fn", "silu") for level in functions_and_norms],
        "decoder_norm_types": [level.get("norm", "rms_norm") for level in functions_and_norms],
    }
    for half in ("encoder", "decoder"):
        levels = config[half]
        blocks = [level["block"] for level in levels]
        known |= {
            # A level without blocks has no channels, but the class wants some.
            f"{half}_block_out_channels": [level["channels"] or 128 for level in levels],
            f"{half}_layers_per_block": [level["layers"] for level in levels],
            f"{half}_block_types": [kinds[next(iter(block))] for block in blocks],
            f"{half}_qkv_multiscales": [
                block.get("efficient_vit", {}).get("qkv_multiscales", []) for block in blocks
            ],
        }
    return known


def _of_ltx2(config: Settings, facts: dict[str, Any]) -> Settings:
    """Returns the settings of LTX-2's class that differ from wgvae's.

    Diffusers has the decoder's lists in the encoder's order, except ``upsample_type``.
    """
    reversed_lists = (
        "decoder_block_out_channels",
        "decoder_layers_per_block",
        "upsample_factor",
        "upsample_residual",
    )
    levels, decoder_levels = (
        len(config[name]) for name in ("block_out_channels", "decoder_block_out_channels")
    )
    names = {(True, False): "spatial", (False, True): "temporal", (True, True): "spatiotemporal"}
    return {
        **{name: config[name][::-1] for name in reversed_lists},
        **{
            f"{way}_type": [names[change["space"], change["time"]] for change in config[way]]
            for way in ("downsample", "upsample")
        },
        "down_block_types": ["LTX2VideoDownBlock3D"] * levels,
        "spatio_temporal_scaling": [True] * levels,
        "decoder_spatio_temporal_scaling": [True] * decoder_levels,
        "decoder_inject_noise": [False] * (decoder_levels + 1),
        "decoder_causal": False,
        "decoder_spatial_padding_mode": "reflect" if config["decoder_reflects"] else "zeros",
        "spatial_compression_ratio": facts["latent_factor"][1],
        "temporal_compression_ratio": facts["temporal_factor"],
    }
