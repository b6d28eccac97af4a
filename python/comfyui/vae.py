"""The object that ComfyUI's nodes take as a VAE. wgvae does its work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import wgvae
from wgvae._arrays import wrong

import comfy.model_management
import comfy.model_patcher
import comfy.utils


# Frames of a chunk of MiniMax-H3's tiny autoencoder, which is five frames of latents.
_CHUNK_FRAMES = 17


Tiling = Mapping[str, Any]
"""Arguments ``tiling``, ``tile_size`` and ``tile_overlap`` of :meth:`wgvae.Vae.decode`."""


@dataclass(frozen=True)
class Files:
    """Paths of a model. Both are the same path, unless its halves are two files."""

    decoder: str
    encoder: str


class Statistics:
    """The means and deviations of LTX-2's latents, which ComfyUI's nodes read from its own VAE."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._mean, self._std = (torch.tensor(config[name]).view(1, -1, 1, 1, 1) for name in ("latents_mean", "latents_std"))

    def normalize(self, latents: torch.Tensor) -> torch.Tensor:
        """Returns the VAE's own latents ``[b, c, t, h, w]`` in the diffusion model's scale."""
        return (latents - self._mean.to(latents)) / self._std.to(latents)

    def un_normalize(self, latents: torch.Tensor) -> torch.Tensor:
        """Returns the diffusion model's latents ``[b, c, t, h, w]`` in the VAE's own scale."""
        return latents * self._std.to(latents) + self._mean.to(latents)


class Model(torch.nn.Module):  # type: ignore[misc]
    """A model of wgvae, closed while ComfyUI needs its memory. It has no parameters in torch."""

    def __init__(self, files: Files, arguments: Mapping[str, Any]) -> None:
        """Opens the files. ``arguments`` are those of :meth:`wgvae.Vae.from_pretrained`."""
        super().__init__()
        self.files = files
        self._arguments = arguments
        self._opened: dict[str, wgvae.Vae] = {}
        self.planned_bytes = 0
        """Bytes of weights of the call that is planned."""
        decoder = self.opened(files.decoder)
        self.facts = decoder.facts
        self.config = decoder.config
        self.on_gpu = decoder.device == "gpu"
        if self.config["network"] == "ltx2":
            self.per_channel_statistics = Statistics(self.config)
        self.opened(files.encoder)

    def opened(self, path: str) -> wgvae.Vae:
        """Returns the model of ``path``, and opens it if it is closed."""
        if path not in self._opened:
            self._opened[path] = wgvae.Vae.from_pretrained(path, **self._arguments)
        return self._opened[path]

    def held_bytes(self) -> int:
        """Returns the device's memory that is held now, in bytes."""
        return sum(vae.memory()[0] for vae in self._opened.values())

    def close(self) -> None:
        """Frees the device's memory. The next call opens the model again."""
        for vae in self._opened.values():
            vae.close()
        self._opened.clear()

    def extra_repr(self) -> str:
        return str(self.facts["name"])


class Patcher(comfy.model_patcher.ModelPatcher):  # type: ignore[misc]
    """Tells ComfyUI's memory management what a :class:`Model` holds, and closes it on demand."""

    model: Model

    def model_size(self) -> int:
        return max(self.model.planned_bytes, self.model.held_bytes())

    def loaded_size(self) -> int:
        return self.model.held_bytes()

    def current_loaded_device(self) -> torch.device:
        device: torch.device = self.load_device
        return device

    def add_patches(self, *_: Any, **__: Any) -> list[str]:
        """Raises InputError: weights are not in torch, so ComfyUI cannot change them."""
        expected = "ComfyUI's own VAE, as wgvae's VAE takes no patches: use 'Load VAE'"
        raise wrong("vae", expected, "a node that patches the weights")

    def partially_load(self, *_: Any, **__: Any) -> int:
        """Does nothing: wgvae reads weights when it first needs them."""
        return 0

    def partially_unload(self, *_: Any, **__: Any) -> int:
        """Frees nothing, after which ComfyUI calls :meth:`detach`."""
        return 0

    def detach(self, unpatch_all: bool = True) -> torch.nn.Module:
        """Closes the model, unless ComfyUI is only about to list it again."""
        if unpatch_all:
            self.model.close()
        return self.model


class EngineVae:
    """Stands in for ``comfy.sd.VAE``, with the methods and fields that nodes use.

    Images are ``[b, h, w, c]`` of 0 to 1, and clips ``[b, frames, h, w, c]``. Latents are those of
    ComfyUI: ``[b, c, h, w]``, or ``[b, c, t, h, w]`` if ``latent_dim`` is 3. Both are float32.

    Tiles do not change the result: the tiled methods work as the others, within the same budget.
    """

    def __init__(self, files: Files, memory_budget: str = "", **arguments: Any) -> None:
        """Opens a model.

        Parameters
        ----------
        files
            Paths of the model.
        memory_budget
            Limit of the device's memory, such as "2GiB". Empty for none.
        arguments
            Arguments of :meth:`wgvae.Vae.from_pretrained`.

        Raises
        ------
        wgvae.Error
            The same errors as :meth:`wgvae.Vae.from_pretrained`.
        """
        model = Model(files, arguments)
        config, facts, management = model.config, model.facts, comfy.model_management
        self.memory_budget = memory_budget.strip()
        if self.memory_budget:
            wgvae._native.parse_bytes(self.memory_budget)
        self.device = management.get_torch_device() if model.on_gpu else torch.device("cpu")
        self.output_device = management.intermediate_device()
        self.vae_dtype = torch.float32
        self.working_dtypes = [torch.float32]
        self.first_stage_model = model
        self.patcher = Patcher(model, self.device, management.vae_offload_device())

        self._unscaled: bool = facts["unscaled_in_comfyui"]
        self._time: int | None = facts["temporal_factor"]
        encoded = facts["latent_factor"][self._unscaled]
        decoded = encoded * config.get("upscale", 1)
        # Qwen-Image has the network of Wan 2.1. Its pictures are clips of one frame, and take less
        # work with the weights of pictures. Other models for video encode a picture and decode a
        # clip: to read the weights anew between the two would take longer. MiniMax-H3's model has
        # no clip of one frame of latents.
        has_pictures = config["network"] == "wan" and not config["is_residual"]
        self._has_chunks: bool = facts["starts"] == "every_fifth"
        self._single_frames_are_images = has_pictures or self._has_chunks
        layered = has_pictures and self._time is None
        self.latent_channels: int = facts["latent_channels"][self._unscaled]
        self.output_channels: int = config["out_channels"]
        self.latent_dim = 2 if self._time is None and not layered else 3
        self.not_video = layered
        self.crop_input = True
        self.disable_offload = False
        self.extra_1d_channel = None
        # Latents of encode are in ComfyUI's scale already.
        self.format_encoded = None
        self.handles_tiling = False
        self.pad_channel_value = 1.0 if config["in_channels"] == 4 else None
        self.downscale_ratio, self.downscale_index_formula = _ratio(encoded, self._time, _latents)
        self.upscale_ratio, self.upscale_index_formula = _ratio(decoded, self._time, _frames)

    def throw_exception_if_invalid(self) -> None:
        """Does nothing: the constructor raises an error if a file is no VAE."""

    def vae_output_dtype(self) -> torch.dtype:
        """Returns the type of images and latents."""
        return torch.float32

    def process_input(self, images: torch.Tensor) -> torch.Tensor:
        """Returns images of 0 to 1 as the model takes them, -1 to 1."""
        return images * 2 - 1

    def process_output(self, images: torch.Tensor) -> torch.Tensor:
        """Returns images of about -1 to 1 as ComfyUI takes them, 0 to 1, in the same memory."""
        return images.div_(2).add_(0.5).clamp_(0, 1)

    def spacial_compression_decode(self) -> int:
        """Returns the pixels a side of a latent, in a decode."""
        return _of_space(self.upscale_ratio)

    def spacial_compression_encode(self) -> int:
        """Returns the pixels a side of a latent, in an encode."""
        return _of_space(self.downscale_ratio)

    def temporal_compression_decode(self) -> int | None:
        """Returns the frames for each frame of latents, or None if the model is not for video."""
        return self._time

    def is_clip(self, shape: Sequence[int]) -> bool:
        """Returns True if latents or pixels of this ``shape`` need the weights of clips.

        Axes are ``[b, c, t, h, w]``, or ``[b, c, h, w]`` for images.
        """
        if self._time is None or len(shape) < 5:
            return False
        return shape[2] > 1 or not self._single_frames_are_images

    def latents_of(self, shape: Sequence[int], *, pixels: bool = False) -> int | None:
        """Returns the number of frames of latents of a clip, or None for images.

        ``shape`` is that of latents, or of ``pixels``, as for :meth:`is_clip`.
        """
        if self._time is None or len(shape) < 5:
            return None
        if pixels and self._has_chunks:
            return (shape[2] - 1) // _CHUNK_FRAMES * 5 + 2
        if not self.is_clip(shape):
            return None
        if not pixels:
            return shape[2]
        return 1 + max(0, shape[2] - 2 + self._time) // self._time

    def vae_encode_crop_pixels(self, pixels: torch.Tensor) -> torch.Tensor:
        """Returns the middle of ``[..., h, w, c]``, without edges that fill no latent."""
        step = self.first_stage_model.facts["image_step"][self._unscaled]
        if min(pixels.shape[-3:-1]) < step:
            raise wrong("image", f"at least {step}x{step} pixels", f"{pixels.shape[-2]}x{pixels.shape[-3]}")
        for axis in (-3, -2):
            side = pixels.shape[axis]
            pixels = pixels.narrow(axis, side % step // 2, side // step * step)
        return pixels

    def decode(
        self,
        samples_in: torch.Tensor,
        vae_options: Mapping[str, Any] | None = None,
        *,
        memory_budget: str = "",
        tiling: Tiling | None = None,
    ) -> torch.Tensor:
        """Decodes latents to images, or to clips if they have an axis of frames or layers.

        Parameters
        ----------
        samples_in
            Latents. As in ComfyUI, a model for images decodes the first frame of
            ``[b, c, t, h, w]``, and other models take ``[b, c, h, w]`` for one frame.
        vae_options
            None or empty, as no model of wgvae has options.
        memory_budget
            Limit for this call, instead of the loader's.
        tiling
            Rule of another tool for images, with its lengths. None decodes whole. Latents of one
            frame are an image.

        Raises
        ------
        wgvae.Error
            The errors of :meth:`wgvae.Vae.decode`. InputError if options are given, or a tiling for
            a clip or for packed latents.
        """
        if vae_options:
            raise wrong("vae_options", "none", ", ".join(vae_options))
        model = self.first_stage_model
        latents = self._shaped(samples_in.detach().float().cpu())
        clips, count = self.is_clip(latents.shape), self.latents_of(latents.shape)
        if tiling:
            self._check_tiles(latents.shape)
            clips, count = False, None
        sides = self._sides(latents.shape)
        self._make_room(self.plan(*sides, memory_budget, latents=count, **(tiling or {})))
        vae = model.opened(model.files.decoder)
        options: dict[str, Any] = {
            "output": "float",
            "unscaled": self._unscaled,
            "memory_budget": self._budget(memory_budget),
        }
        if clips:
            clip = vae.clip()
            images = _joined(clip.decode(one[None], progress=_bar(), **options) for one in latents)
        else:
            options |= tiling or {}
            images = _each_frame(latents, lambda one: vae.decode(one, progress=_bar(), **options))
        return self.process_output(images).to(self.output_device).movedim(1, -1)

    def encode(
        self,
        pixel_samples: torch.Tensor,
        not_video: bool | None = None,
        *,
        memory_budget: str = "",
    ) -> torch.Tensor:
        """Encodes images or a clip to the mode of their distribution.

        As in ComfyUI, ``[frames, h, w, c]`` is one clip if the model is for video, and edges that
        fill no latent are cropped. Last frames that fill no frame of latents are dropped, except by
        TAEHV's models, which repeat the last one. Channels that the model lacks are dropped.

        Parameters
        ----------
        pixel_samples
            Images, or clips ``[b, frames, h, w, c]``.
        not_video
            True if images are no clip, even if the model is for video. None is the field of that
            name.
        memory_budget
            Limit for this call, instead of the loader's.

        Raises
        ------
        wgvae.Error
            The errors of :meth:`wgvae.Vae.encode`.
        """
        model = self.first_stage_model
        pixels = self.vae_encode_crop_pixels(pixel_samples)[..., : model.config["in_channels"]]
        images = self.process_input(pixels.detach().float().cpu()).movedim(-1, 1)
        if self.latent_dim == 3 and images.ndim < 5:
            apart = self.not_video if not_video is None else not_video
            images = images.unsqueeze(2) if apart else images.movedim(1, 0).unsqueeze(0)
        # MiniMax-H3's model has two frames of latents for a picture, and ComfyUI keeps the first.
        kept = 1 if images.ndim == 5 and images.shape[2] == 1 else None
        if self._has_chunks:
            images = _of_chunks(images)
        elif self._time is not None and not model.facts["fills_parts"]:
            images = images[:, :, : (images.shape[2] - 1) // self._time * self._time + 1]
        height, width = images.shape[-2:]
        clips = self.is_clip(images.shape)
        count = self.latents_of(images.shape, pixels=True)
        self._make_room(self.plan(height, width, memory_budget, encode=True, latents=count))
        vae = model.opened(model.files.encoder)
        options: dict[str, Any] = {
            "unscaled": self._unscaled,
            "memory_budget": self._budget(memory_budget),
        }
        if clips:
            clip = vae.clip()
            encoded = (clip.encode(one[None], progress=_bar(), **options) for one in images)
            latents = _joined(encoded)[:, :, :kept]
        else:
            latents = _each_frame(images, lambda one: vae.encode(one, progress=_bar(), **options))
        return latents.to(self.output_device)

    def preview(
        self, samples: torch.Tensor, max_side: int, *, memory_budget: str = ""
    ) -> torch.Tensor:
        """Decodes small images ``[n, h, w, c]`` of latents, one for each frame or layer.

        Parameters
        ----------
        samples
            Latents.
        max_side
            The most pixels of the longer side. If an image would be larger, squares of latents
            are averaged first.
        memory_budget
            Limit for this call, instead of the loader's.

        Raises
        ------
        wgvae.Error
            The errors of :meth:`wgvae.Vae.decode`.
        """
        model, latents = self.first_stage_model, samples.detach().float().cpu()
        if latents.ndim == 5:
            latents = latents.movedim(2, 1).flatten(0, 1)
        sides = self._sides(latents.shape)
        self._make_room(self.plan(*sides, memory_budget, max_side=max_side))
        images = model.opened(model.files.decoder).decode(
            latents,
            output="float",
            unscaled=self._unscaled,
            memory_budget=self._budget(memory_budget),
            max_side=max_side,
            progress=_bar(),
        )
        small = self.process_output(torch.from_numpy(images))
        return small.to(self.output_device).movedim(1, -1)

    def decode_tiled(self, samples: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        """Decodes as :meth:`decode`. Sizes of tiles are ignored."""
        return self.decode(samples)

    def encode_tiled(
        self, pixel_samples: torch.Tensor, *_: Any, not_video: bool | None = None, **__: Any
    ) -> torch.Tensor:
        """Encodes as :meth:`encode`. Sizes of tiles are ignored."""
        return self.encode(pixel_samples, not_video)

    def plan(
        self,
        height: int,
        width: int,
        memory_budget: str = "",
        *,
        encode: bool = False,
        latents: int | None = None,
        **how: Any,
    ) -> wgvae.Plan:
        """Plans a decode or an encode of images of ``height`` by ``width`` pixels.

        ``latents`` is the number of frames of latents of a clip. Further arguments and errors are
        those of :meth:`wgvae.Vae.plan`.
        """
        model = self.first_stage_model
        vae = model.opened(model.files.encoder if encode else model.files.decoder)
        budget = self._budget(memory_budget)
        if latents is None:
            return vae.plan(height, width, budget, encode=encode, unscaled=self._unscaled, **how)
        return vae.clip().plan(
            height, width, budget, encode=encode, unscaled=self._unscaled, clip_latents=latents
        )

    def model_size(self) -> int:
        """Returns the bytes of the model for ComfyUI's memory management."""
        return self.patcher.model_size()

    def is_dynamic(self) -> bool:
        """Returns False, as ComfyUI cannot move single weights."""
        return False

    def prepare_decode(self, sample_shape: Sequence[int], memory_required: int | None = None) -> int:
        """Makes room to decode latents of ``sample_shape``, and returns the size of a batch, 1."""
        self._make_room(self.plan(*self._sides(sample_shape), latents=self.latents_of(sample_shape)))
        return 1

    def memory_used_decode(self, shape: Sequence[int], dtype: torch.dtype) -> int:
        """Returns the bytes besides the weights for a decode of latents of ``shape``."""
        plan = self.plan(*self._sides(shape), latents=self.latents_of(shape))
        return plan.peak_bytes - plan.weight_bytes

    def memory_used_encode(self, shape: Sequence[int], dtype: torch.dtype) -> int:
        """Returns the bytes besides the weights for an encode of images of ``shape``."""
        latents = self.latents_of(shape, pixels=True)
        plan = self.plan(shape[-2], shape[-1], encode=True, latents=latents)
        return plan.peak_bytes - plan.weight_bytes

    def get_sd(self) -> dict[str, torch.Tensor]:
        """Returns the tensors of the file, for nodes that save a VAE or a checkpoint.

        Raises
        ------
        wgvae.errors.InputError
            If the model is two files, whose tensors have the same names.
        """
        files = self.first_stage_model.files
        if files.decoder != files.encoder:
            raise wrong("vae", "a VAE of one file", f"{files.decoder} and {files.encoder}")
        tensors: dict[str, torch.Tensor] = comfy.utils.load_torch_file(files.decoder)
        for prefix in ("first_stage_model.", "vae."):
            if any(name.startswith(prefix) for name in tensors):
                return {
                    name.removeprefix(prefix): tensor
                    for name, tensor in tensors.items()
                    if name.startswith(prefix)
                }
        return tensors

    def _shaped(self, latents: torch.Tensor) -> torch.Tensor:
        """Returns latents with the axes that the model has."""
        if self.latent_dim == 2:
            return latents[:, :, 0] if latents.ndim == 5 else latents
        if latents.ndim != 4:
            return latents
        # ComfyUI's nodes for SeedVR2 hand on [b, c * t, h, w].
        frames, rest = divmod(latents.shape[1], self.latent_channels)
        is_collapsed = self.first_stage_model.config["network"] == "seedvr" and not rest
        return latents.unflatten(1, (-1, frames if is_collapsed else 1))

    def _sides(self, shape: Sequence[int]) -> tuple[int, int]:
        """Returns height and width in pixels of decoded latents of ``shape``."""
        factor = self.spacial_compression_decode()
        return shape[-2] * factor, shape[-1] * factor

    def _check_tiles(self, shape: Sequence[int]) -> None:
        """Raises InputError if latents of this ``shape`` cannot be decoded in tiles."""
        if self._time is not None and len(shape) == 5 and shape[2] > 1:
            raise wrong("samples", "one frame, as only images are decoded in tiles", f"{shape[2]} frames")
        if self.first_stage_model.config["patch"] > 1:
            expected = "a model whose latents ComfyUI does not pack"
            raise wrong("vae", expected, str(self.first_stage_model.facts["name"]))

    def _budget(self, memory_budget: str) -> str | None:
        return memory_budget.strip() or self.memory_budget or None

    def _make_room(self, plan: wgvae.Plan) -> None:
        """Makes ComfyUI free the memory that ``plan`` needs, and list the model as loaded."""
        self.first_stage_model.planned_bytes = plan.weight_bytes
        rest = max(0, plan.peak_bytes - self.patcher.model_size())
        comfy.model_management.load_models_gpu([self.patcher], memory_required=rest)


Ratio = int | tuple[Callable[[int], int], int, int]
"""Pixels a side of a latent. For video, a function for lengths comes first, as in ComfyUI."""


def _ratio(
    factor: int, time: int | None, lengths: Callable[[int], Callable[[int], int]]
) -> tuple[Ratio, tuple[int, int, int] | None]:
    """Returns ComfyUI's ratio and its index formula for a model."""
    if time is None:
        return factor, None
    return (lengths(time), factor, factor), (time, factor, factor)


def _latents(time: int) -> Callable[[int], int]:
    return lambda frames: max(0, (frames + time - 1) // time)


def _frames(time: int) -> Callable[[int], int]:
    return lambda latents: max(0, latents * time - time + 1)


def _of_space(ratio: Ratio) -> int:
    return ratio[-1] if isinstance(ratio, tuple) else ratio


def _each_frame(given: torch.Tensor, work: Callable[[torch.Tensor], Any]) -> torch.Tensor:
    """Applies ``work`` to images ``[n, c, h, w]``, or to all frames of ``[b, c, t, h, w]``."""
    if given.ndim < 5:
        return torch.from_numpy(work(given))
    flat = given.movedim(2, 1)
    done = torch.from_numpy(work(flat.flatten(0, 1)))
    return done.unflatten(0, flat.shape[:2]).movedim(1, 2)


def _of_chunks(clips: torch.Tensor) -> torch.Tensor:
    """Returns ``[b, c, t, h, w]`` with 17 n + 5 frames, which MiniMax-H3's tiny autoencoder takes.

    It sees no more of the last 17 frames, and the last frame again if there are fewer.
    """
    frames = clips.shape[2]
    wanted = (frames - 1) // _CHUNK_FRAMES * _CHUNK_FRAMES + 5
    last = clips[:, :, -1:].expand(-1, -1, max(0, wanted - frames), -1, -1)
    return torch.cat([clips[:, :, :wanted], last], 2)


def _joined(arrays: Iterable[Any]) -> torch.Tensor:
    """Returns arrays ``[1, ...]`` as one tensor. A single one is not copied."""
    parts = [torch.from_numpy(array) for array in arrays]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _bar() -> Callable[[wgvae.Progress], None]:
    """Returns a callback that shows progress and stops the call when the user interrupts.

    Nodes run in a thread that Ctrl-C does not reach.
    """
    bar = comfy.utils.ProgressBar(1000)

    def tell(progress: wgvae.Progress) -> None:
        comfy.model_management.throw_exception_if_processing_interrupted()
        bar.update_absolute(round(1000 * progress.fraction), 1000)

    return tell
