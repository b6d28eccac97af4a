"""The nodes that load a model, decode, encode and plan.

They follow the first version of ComfyUI's documented protocol, with one class for each node.
"""

from __future__ import annotations

from typing import Any, Literal

import torch

import folder_paths

from .core import Graph, engine_of
from .files import States, files_of, models, states_of
from .vae import EngineVae

_HIDDEN = {"prompt": "PROMPT", "unique_id": "UNIQUE_ID"}
_BUDGET = ("STRING", {"default": "", "tooltip": "The most memory of the device to take, such as 2GiB. Empty: what the loader says."})


def _latents_of(samples: dict[str, Any]) -> torch.Tensor:
    """Returns the latents of pictures, which LTX-2's workflows nest with those of sound."""
    latents: torch.Tensor = samples["samples"]
    return latents.unbind()[0] if latents.is_nested else latents


class WgvaeLoader:
    """A node that opens a model of ComfyUI's folders vae, checkpoints or vae_approx.

    Its output is a VAE for ComfyUI's own nodes, too.
    """

    CATEGORY = "wgvae"
    RETURN_TYPES = ("VAE",)
    RETURN_NAMES = ("vae",)
    FUNCTION = "load"

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {
            "required": {
                "vae_name": (list(models()), {"tooltip": "A .safetensors or .sft file of models/vae, checkpoints or vae_approx."}),
                "precision": (["auto", "f16", "f32", "fast"],),
            },
            "optional": {
                "adapter": ("STRING", {"default": "", "tooltip": "Part of a GPU's name, or its index. Empty: the best."}),
                "family": ("STRING", {"default": "", "tooltip": "Where the file does not say which model it is: sdxl, flux1 and others."}),
                "device": (["auto", "gpu", "cpu"], {"tooltip": "auto: a GPU if there is one, else the CPU."}),
                "memory_budget": ("STRING", {"default": "", "tooltip": "The most memory of the device to take, such as 2GiB. Empty: what a whole image takes."}),
                "border": (["auto", "zeros", "reflect", "replicate", "circular"], {"tooltip": "What convolutions see beyond the borders. auto: as the file says, or else zeros. EQ-SDXL-VAE takes reflect."}),
            },
        }

    @classmethod
    def IS_CHANGED(cls, vae_name: str | None = None, **_: Any) -> States:
        """Returns what makes ComfyUI load the model again: another file in the place of this one.

        Without a name, which another node gives, nothing does.
        """
        return states_of(files_of(vae_name)) if vae_name else ()

    def load(
        self,
        vae_name: str,
        precision: Literal["auto", "f16", "f32", "fast"],
        adapter: str = "",
        family: str = "",
        device: Literal["auto", "gpu", "cpu"] = "auto",
        memory_budget: str = "",
        border: Literal["auto", "zeros", "reflect", "replicate", "circular"] = "auto",
    ) -> tuple[EngineVae]:
        files = files_of(vae_name)
        arguments = {"device": device, "precision": precision, "adapter": adapter or None, "family": family.strip().lower() or None}
        if border != "auto":
            arguments["border"] = border
        return (EngineVae(files, memory_budget, **arguments),)


class WgvaeDecode:
    """A node that decodes latents to images within a memory budget of its own.

    A clip becomes a batch of its frames, and layers of Qwen-Image-Layered become a batch, too. As in
    ComfyUI, images of a model with opacity have a fourth channel: [b, h, w, 4].
    """

    CATEGORY = "wgvae"
    RETURN_TYPES = ("IMAGE",)
    FUNCTION = "decode"

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {"required": {"samples": ("LATENT",), "vae": ("VAE",)}, "optional": {"memory_budget": _BUDGET}, "hidden": _HIDDEN}

    def decode(
        self,
        samples: dict[str, Any],
        vae: object,
        memory_budget: str = "",
        prompt: Graph | None = None,
        unique_id: str | None = None,
    ) -> tuple[torch.Tensor]:
        images = engine_of(vae, prompt, unique_id).decode(_latents_of(samples), memory_budget=memory_budget)
        return (images.flatten(0, 1) if images.ndim == 5 else images,)


class WgvaeEncode:
    """A node that encodes images to latents within a memory budget of its own.

    Unlike ComfyUI's node, it encodes the opacity of images if the model has it.
    """

    CATEGORY = "wgvae"
    RETURN_TYPES = ("LATENT",)
    FUNCTION = "encode"

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {"required": {"pixels": ("IMAGE",), "vae": ("VAE",)}, "optional": {"memory_budget": _BUDGET}, "hidden": _HIDDEN}

    def encode(
        self,
        pixels: torch.Tensor,
        vae: object,
        memory_budget: str = "",
        prompt: Graph | None = None,
        unique_id: str | None = None,
    ) -> tuple[dict[str, torch.Tensor]]:
        engine = engine_of(vae, prompt, unique_id)
        return ({"samples": engine.encode(pixels, memory_budget=memory_budget)},)


class WgvaePreview:
    """A node that decodes small pictures of latents, in little memory.

    Squares of latents are averaged until the picture fits, so a tiny autoencoder such as TAESD
    shows most. Each frame or layer becomes a picture.
    """

    CATEGORY = "wgvae"
    RETURN_TYPES = ("IMAGE",)
    FUNCTION = "preview"

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        side = ("INT", {"default": 256, "min": 8, "max": 4096, "step": 8, "tooltip": "The most pixels of the longer side."})
        return {"required": {"samples": ("LATENT",), "vae": ("VAE",), "max_side": side}, "optional": {"memory_budget": _BUDGET}, "hidden": _HIDDEN}

    def preview(
        self,
        samples: dict[str, Any],
        vae: object,
        max_side: int,
        memory_budget: str = "",
        prompt: Graph | None = None,
        unique_id: str | None = None,
    ) -> tuple[torch.Tensor]:
        engine = engine_of(vae, prompt, unique_id)
        return (engine.preview(_latents_of(samples), max_side, memory_budget=memory_budget),)


class WgvaeDecodeTiled:
    """A node that decodes images as another tool does in tiles.

    Its images equal that tool's, with their changes of tone. Tiles are not needed to save memory:
    a memory budget changes no bit of the result.
    """

    CATEGORY = "wgvae"
    RETURN_TYPES = ("IMAGE",)
    FUNCTION = "decode"

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        size = ("INT", {"default": 0, "min": 0, "max": 16384, "step": 8, "tooltip": "Side of a tile in pixels. 0: as that tool has it; for blend, a model such as TAESD, or one without a family, needs a size."})
        overlap = ("INT", {"default": -1, "min": -1, "max": 16384, "tooltip": "Pixels that neighbouring tiles share. -1: as that tool has it."})
        rule = (["blend", "cosine", "estimate"], {"tooltip": "blend: diffusers with enable_tiling(). cosine: SeedVR2's node. estimate: whole, with the norms of a smaller copy."})
        return {
            "required": {"samples": ("LATENT",), "vae": ("VAE",), "rule": rule},
            "optional": {"tile_size": size, "tile_overlap": overlap, "memory_budget": _BUDGET},
            "hidden": _HIDDEN,
        }

    def decode(
        self,
        samples: dict[str, Any],
        vae: object,
        rule: Literal["blend", "cosine", "estimate"],
        tile_size: int = 0,
        tile_overlap: int = -1,
        memory_budget: str = "",
        prompt: Graph | None = None,
        unique_id: str | None = None,
    ) -> tuple[torch.Tensor]:
        engine = engine_of(vae, prompt, unique_id)
        overlap = tile_overlap if tile_overlap >= 0 else None
        tiling = {"tiling": rule, "tile_size": tile_size or None, "tile_overlap": overlap}
        images = engine.decode(_latents_of(samples), memory_budget=memory_budget, tiling=tiling)
        return (images.flatten(0, 1) if images.ndim == 5 else images,)


class WgvaePlan:
    """A node that says how much memory a decode or an encode will take, before it runs."""

    CATEGORY = "wgvae"
    RETURN_TYPES = ("STRING",)
    FUNCTION = "plan"
    OUTPUT_NODE = True

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        side = ("INT", {"default": 1024, "min": 8, "max": 16384, "step": 8, "tooltip": "In pixels."})
        return {
            "required": {"vae": ("VAE",), "width": side, "height": side, "work": (["decode", "encode"],)},
            "optional": {"frames": ("INT", {"default": 1, "min": 1, "max": 16384, "tooltip": "1 for images."}), "memory_budget": _BUDGET},
            "hidden": _HIDDEN,
        }

    def plan(
        self,
        vae: object,
        width: int,
        height: int,
        work: Literal["decode", "encode"],
        frames: int = 1,
        memory_budget: str = "",
        prompt: Graph | None = None,
        unique_id: str | None = None,
    ) -> dict[str, Any]:
        engine = engine_of(vae, prompt, unique_id)
        latents = engine.latents_of((1, 3, frames, height, width), pixels=True)
        if frames == 1 and work == "decode":
            latents = None
        plan = engine.plan(height, width, memory_budget, encode=work == "encode", latents=latents)
        subject = "An image" if latents is None else f"A clip of up to {frames} frames"
        text = (
            f"{subject} of {width}x{height} pixels will take {_mib(plan.peak_bytes)} to {work}, "
            f"of which {_mib(plan.weight_bytes)} are weights."
        )
        if plan.host_bytes:
            text += f" {_mib(plan.host_bytes)} more will wait in the host's memory."
        return {"ui": {"text": (text,)}, "result": (text,)}


def _mib(count: int) -> str:
    return f"{count / (1 << 20):.3g} MiB" if count < 1000 << 20 else f"{count / (1 << 30):.3g} GiB"


NODE_CLASS_MAPPINGS = {
    "WgvaeLoader": WgvaeLoader,
    "WgvaeDecode": WgvaeDecode,
    "WgvaeDecodeTiled": WgvaeDecodeTiled,
    "WgvaeEncode": WgvaeEncode,
    "WgvaePlan": WgvaePlan,
    "WgvaePreview": WgvaePreview,
}
NODE_DISPLAY_NAME_MAPPINGS = {
    "WgvaeLoader": "Load VAE (wgvae)",
    "WgvaeDecode": "VAE Decode (wgvae)",
    "WgvaeDecodeTiled": "VAE Decode in Tiles (wgvae)",
    "WgvaeEncode": "VAE Encode (wgvae)",
    "WgvaePlan": "VAE Memory (wgvae)",
    "WgvaePreview": "VAE Preview (wgvae)",
}
