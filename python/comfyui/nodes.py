"""The nodes that load a model, decode and encode.

They follow the first version of ComfyUI's documented protocol, with one class for each node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
import wgvae

import comfy.model_management
import comfy.utils
import folder_paths

_BUDGET = ("STRING", {"default": "", "tooltip": "The most memory of the device to take, such as 2GiB. Empty: what a whole image takes."})


class WgvaeLoader:
    """A node that opens a model of ComfyUI's vae folder."""

    CATEGORY = "wgvae"
    RETURN_TYPES = ("WGVAE",)
    RETURN_NAMES = ("vae",)
    FUNCTION = "load"

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {
            "required": {
                "vae_name": (folder_paths.get_filename_list("vae"),),
                "precision": (["auto", "f16", "f32", "fast"],),
            },
            "optional": {
                "adapter": ("STRING", {"default": "", "tooltip": "Part of a GPU's name, or its index. Empty: the best."}),
                "family": ("STRING", {"default": "", "tooltip": "Where the file does not say which model it is: sdxl, flux1 and others."}),
                "device": (["auto", "gpu", "cpu"], {"tooltip": "auto: a GPU if there is one, else the CPU."}),
            },
        }

    def load(
        self,
        vae_name: str,
        precision: Literal["auto", "f16", "f32", "fast"],
        adapter: str = "",
        family: str = "",
        device: Literal["auto", "gpu", "cpu"] = "auto",
    ) -> tuple[wgvae.Vae]:
        path = folder_paths.get_full_path_or_raise("vae", vae_name)
        return (wgvae.Vae.from_pretrained(path, device=device, precision=precision, adapter=adapter or None, family=family or None),)


class WgvaeDecode:
    """A node that decodes latents to images, exactly and without tiles.

    A clip becomes a batch of its frames, and layers of Qwen-Image-Layered become a batch, too. As in
    ComfyUI, images of a model with opacity have a fourth channel: [b, h, w, 4].
    """

    CATEGORY = "wgvae"
    RETURN_TYPES = ("IMAGE",)
    FUNCTION = "decode"

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {"required": {"samples": ("LATENT",), "vae": ("WGVAE",)}, "optional": {"memory_budget": _BUDGET}}

    def decode(self, samples: dict[str, Any], vae: wgvae.Vae, memory_budget: str = "") -> tuple[torch.Tensor]:
        latents = samples["samples"].detach().float().cpu()
        budget, unscaled = memory_budget or None, _unscaled(vae)
        factor = vae.facts["latent_factor"][unscaled]
        height, width = (side * factor for side in latents.shape[-2:])
        if latents.ndim == 5 and vae.facts["temporal_factor"] is not None:
            clip = vae.clip()
            _make_room(vae, clip.plan(height, width, budget, unscaled=unscaled))
            parts = [clip.decode(one[None], output="float", unscaled=unscaled, memory_budget=budget, progress=_bar()) for one in latents]
            images = torch.cat([torch.from_numpy(part)[0].movedim(0, 1) for part in parts])
        else:
            _make_room(vae, vae.plan(height, width, budget, unscaled=unscaled))
            images = torch.from_numpy(vae.decode(latents, output="float", unscaled=unscaled, memory_budget=budget, progress=_bar()))
        return ((images.movedim(1, -1) / 2 + 0.5).clamp(0, 1),)


class WgvaeEncode:
    """A node that encodes images to latents, the mode of their distribution.

    A model for video encodes all images as one clip, latents [1, c, t, h, w]. As in ComfyUI, edges
    that fill no latent are cropped, and so are last frames that fill no frame of latents. Models of
    TAEHV's family take any number of frames: the last one is repeated until it fills a frame of
    latents. A model with opacity takes images with and without it.
    """

    CATEGORY = "wgvae"
    RETURN_TYPES = ("LATENT",)
    FUNCTION = "encode"

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {"required": {"pixels": ("IMAGE",), "vae": ("WGVAE",)}, "optional": {"memory_budget": _BUDGET}}

    def encode(self, pixels: torch.Tensor, vae: wgvae.Vae, memory_budget: str = "") -> tuple[dict[str, torch.Tensor]]:
        budget, unscaled = memory_budget or None, _unscaled(vae)
        step, time = vae.facts["image_step"][unscaled], vae.facts["temporal_factor"]
        count, rows, columns, _ = pixels.shape
        height, width = rows // step * step, columns // step * step
        top, left = (rows - height) // 2, (columns - width) // 2
        channels = vae.config["in_channels"]
        images = pixels[:, top : top + height, left : left + width, :channels].detach().float().cpu().movedim(-1, 1) * 2 - 1
        if time is None:
            _make_room(vae, vae.plan(height, width, budget, encode=True, unscaled=unscaled))
            latents = vae.encode(images, unscaled=unscaled, memory_budget=budget, progress=_bar())
            if vae.config["network"] == "wan" and not vae.config["is_residual"]:
                # ComfyUI's latents of Qwen-Image-Layered have an axis for the frame, of extent 1.
                # Those of Qwen-Image 2.1 have none.
                latents = latents[:, :, None]
        else:
            clip = vae.clip()
            taken = count if vae.facts["fills_parts"] else (count - 1) // time * time + 1
            frames = images[:taken].movedim(0, 1)[None]
            _make_room(vae, clip.plan(height, width, budget, encode=True, unscaled=unscaled))
            latents = clip.encode(frames, unscaled=unscaled, memory_budget=budget, progress=_bar())
        return ({"samples": torch.from_numpy(latents)},)


def _unscaled(vae: wgvae.Vae) -> bool:
    """Returns True if ComfyUI has this model's latents in the VAE's own scale.

    FLUX.2 and LTX-2 are the exceptions: their latents are in the diffusion model's scale, and those
    of FLUX.2 are packed.
    """
    return int(vae.config["patch"]) == 1 and int(vae.config["latent_channels"]) != 128


def _make_room(vae: wgvae.Vae, plan: wgvae.Plan) -> None:
    """Makes ComfyUI free the GPU memory that the plan needs, as it cannot see wgvae's use."""
    if vae.device == "gpu":
        comfy.model_management.free_memory(plan.peak_bytes, comfy.model_management.get_torch_device())


def _bar() -> Callable[[wgvae.Progress], None]:
    """Returns a callback that shows progress and stops the call when the user interrupts.

    Nodes run in a thread that Ctrl-C does not reach.
    """
    bar = comfy.utils.ProgressBar(1000)

    def tell(progress: wgvae.Progress) -> None:
        comfy.model_management.throw_exception_if_processing_interrupted()
        bar.update_absolute(round(1000 * progress.fraction), 1000)

    return tell


NODE_CLASS_MAPPINGS = {"WgvaeLoader": WgvaeLoader, "WgvaeDecode": WgvaeDecode, "WgvaeEncode": WgvaeEncode}
NODE_DISPLAY_NAME_MAPPINGS = {
    "WgvaeLoader": "Load VAE (wgvae)",
    "WgvaeDecode": "VAE Decode (wgvae)",
    "WgvaeEncode": "VAE Encode (wgvae)",
}
