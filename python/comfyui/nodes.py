"""The nodes that load a model, decode, encode and plan.

They follow the first version of ComfyUI's documented protocol, with one class for each node.
"""

from __future__ import annotations

from typing import Any, Literal

import torch

import folder_paths

from .vae import EngineVae, Files, wrong

_BUDGET = ("STRING", {"default": "", "tooltip": "The most memory of the device to take, such as 2GiB. Empty: what the loader says."})


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
                "vae_name": (list(_models()), {"tooltip": "A .safetensors or .sft file of models/vae, checkpoints or vae_approx."}),
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
        models = _models()
        if vae_name not in models:
            raise wrong("vae_name", "a .safetensors or .sft file of models/vae, checkpoints or vae_approx", vae_name)
        files = Files(*(folder_paths.get_full_path_or_raise(*half) for half in models[vae_name]))
        arguments = {"device": device, "precision": precision, "adapter": adapter or None, "family": family or None}
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
        return {"required": {"samples": ("LATENT",), "vae": ("VAE",)}, "optional": {"memory_budget": _BUDGET}}

    def decode(self, samples: dict[str, Any], vae: EngineVae, memory_budget: str = "") -> tuple[torch.Tensor]:
        images = _checked(vae).decode(samples["samples"], memory_budget=memory_budget)
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
        return {"required": {"pixels": ("IMAGE",), "vae": ("VAE",)}, "optional": {"memory_budget": _BUDGET}}

    def encode(self, pixels: torch.Tensor, vae: EngineVae, memory_budget: str = "") -> tuple[dict[str, torch.Tensor]]:
        return ({"samples": _checked(vae).encode(pixels, memory_budget=memory_budget)},)


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
        }

    def plan(
        self,
        vae: EngineVae,
        width: int,
        height: int,
        work: Literal["decode", "encode"],
        frames: int = 1,
        memory_budget: str = "",
    ) -> dict[str, Any]:
        latents = _checked(vae).latents_of((1, 3, frames, height, width), pixels=True)
        plan = vae.plan(height, width, memory_budget, encode=work == "encode", latents=latents)
        subject = "An image" if latents is None else f"A clip of up to {frames} frames"
        text = (
            f"{subject} of {width}x{height} pixels will take {_mib(plan.peak_bytes)} to {work}, "
            f"of which {_mib(plan.weight_bytes)} are weights."
        )
        if plan.host_bytes:
            text += f" {_mib(plan.host_bytes)} more will wait in the host's memory."
        return {"ui": {"text": (text,)}, "result": (text,)}


def _models() -> dict[str, list[tuple[str, str]]]:
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


def _checked(vae: object) -> EngineVae:
    if not isinstance(vae, EngineVae):
        raise wrong("vae", "the output of 'Load VAE (wgvae)'", f"{type(vae).__name__}, which ComfyUI's own nodes take")
    return vae


def _mib(count: int) -> str:
    return f"{count / (1 << 20):.3g} MiB" if count < 1000 << 20 else f"{count / (1 << 30):.3g} GiB"


NODE_CLASS_MAPPINGS = {
    "WgvaeLoader": WgvaeLoader,
    "WgvaeDecode": WgvaeDecode,
    "WgvaeEncode": WgvaeEncode,
    "WgvaePlan": WgvaePlan,
}
NODE_DISPLAY_NAME_MAPPINGS = {
    "WgvaeLoader": "Load VAE (wgvae)",
    "WgvaeDecode": "VAE Decode (wgvae)",
    "WgvaeEncode": "VAE Encode (wgvae)",
    "WgvaePlan": "VAE Memory (wgvae)",
}
