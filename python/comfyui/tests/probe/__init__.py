"""Nodes for in_comfyui.py: random inputs, and outputs as files of tensors."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import save_file

import comfy.controlnet
import comfy.latent_formats
import comfy.model_management
import folder_paths

_SHAPE = ("STRING", {"default": "1,4,8,8"})
_SEED = ("INT", {"default": 0})


def _normal(shape: str, seed: int) -> torch.Tensor:
    extents = [int(extent) for extent in shape.split(",")]
    return torch.randn(extents, generator=torch.Generator().manual_seed(seed))


class ProbeInputs:
    """A node with random latents of ``latents``, and images and a mask of ``[b, h, w]``."""

    CATEGORY = "probe"
    RETURN_TYPES = ("LATENT", "IMAGE", "MASK", "CONDITIONING")
    FUNCTION = "make"

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {"required": {"latents": _SHAPE, "images": _SHAPE, "seed": _SEED}}

    def make(self, latents: str, images: str, seed: int) -> tuple[Any, ...]:
        samples = {"samples": _normal(latents, seed), "batch_index": [3, 5]}
        mask = (_normal(images, seed + 1) > 1).float()
        pictures = _normal(f"{images},3", seed + 2).sigmoid()
        return samples, pictures, mask, [[torch.zeros(1, 1, 8), {}]]


class _Control(torch.nn.Module):  # type: ignore[misc]
    """Stands in for the network of a ControlNet. It ignores its inputs."""

    dtype = torch.float32

    def forward(self, **_: Any) -> dict[str, Any]:
        return {}


class ProbeControlNet:
    """A node with a ControlNet that takes latents, as that of SD3 does."""

    CATEGORY = "probe"
    RETURN_TYPES = ("CONTROL_NET",)
    FUNCTION = "make"

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {"required": {}}

    def make(self) -> tuple[Any]:
        space, device = comfy.latent_formats.SD15(), torch.device("cpu")
        kind = comfy.controlnet.ControlNet
        return (kind(_Control(), compression_ratio=1, latent_format=space, load_device=device),)


class ProbeSave:
    """A node that writes all tensors in ``value`` to a file of the output folder."""

    CATEGORY = "probe"
    RETURN_TYPES = ()
    FUNCTION = "save"
    OUTPUT_NODE = True

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {"required": {"value": ("*",), "name": ("STRING", {"default": "value"})}}

    @classmethod
    def VALIDATE_INPUTS(cls, input_types: dict[str, str]) -> bool:
        """Accepts every type."""
        return True

    def save(self, value: Any, name: str) -> dict[str, Any]:
        tensors: dict[str, torch.Tensor] = {}
        _collect(value, "value", tensors)
        save_file(tensors, Path(folder_paths.get_output_directory()) / f"{name}.safetensors")
        return {}


class ProbePass:
    """A node that returns its VAE, which hides the loader."""

    CATEGORY = "probe"
    RETURN_TYPES = ("VAE",)
    FUNCTION = "give"

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {"required": {"vae": ("VAE",)}}

    def give(self, vae: Any) -> tuple[Any]:
        return (vae,)


class ProbeMemory:
    """A node that tells how many bytes a VAE holds. ``after`` only sets the order."""

    CATEGORY = "probe"
    RETURN_TYPES = ()
    FUNCTION = "tell"
    OUTPUT_NODE = True

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {"required": {"vae": ("VAE",), "seed": _SEED}, "optional": {"after": ("IMAGE",)}}

    def tell(self, vae: Any, seed: int, after: Any = None) -> dict[str, Any]:
        listed = vae.patcher in comfy.model_management.loaded_models()
        return {"ui": {"held": (vae.patcher.loaded_size(),), "listed": (listed,)}}


def _collect(value: Any, name: str, tensors: dict[str, torch.Tensor]) -> None:
    if isinstance(value, torch.Tensor):
        tensors[name] = value.contiguous()
    elif isinstance(value, dict):
        for key, each in value.items():
            _collect(each, f"{name}.{key}", tensors)
    elif isinstance(value, (list, tuple)):
        for index, each in enumerate(value):
            _collect(each, f"{name}.{index}", tensors)
    elif isinstance(value, comfy.controlnet.ControlNet):
        tensors[name] = _hint(value)


def _hint(control: Any) -> torch.Tensor:
    """Returns what a ControlNet gives its network while latents of 12x8 are sampled."""
    same = {"timestep": lambda time: time, "calculate_input": lambda _, latents: latents}
    control.model_sampling_current = SimpleNamespace(**same)
    latents, text = torch.zeros(1, 4, 8, 12), {"c_crossattn": torch.zeros(1, 1, 8)}
    control.get_control(latents, torch.zeros(1), text, 1, {})
    hint: torch.Tensor = control.cond_hint
    return hint


NODE_CLASS_MAPPINGS = {
    "ProbeControlNet": ProbeControlNet,
    "ProbeInputs": ProbeInputs,
    "ProbePass": ProbePass,
    "ProbeSave": ProbeSave,
    "ProbeMemory": ProbeMemory,
}
