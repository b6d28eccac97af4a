"""The VAE on a GPU or a CPU: decodes latents and encodes images."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeAlias, overload

import numpy as np

from wgvae import _native
from wgvae._arrays import Array, ArrayLike, Picture, as_clip_latents, as_frames, as_images, as_latents, wrong
from wgvae._options import (
    Border,
    Device,
    Output,
    Parking,
    Precision,
    Tiling,
    adapter_name,
    call_options,
    divide,
    drawn,
    flag,
    number,
    optional,
    word,
)
from wgvae.errors import ModelNotFoundError

Images: TypeAlias = ArrayLike | Picture | Sequence[Picture] | Sequence[Array]


class Progress(NamedTuple):
    """The progress of a call."""

    image: int
    """Index from 0 of the current image, or of the current part of a clip."""
    images: int
    """Number of images, or of parts of a clip."""
    done: int
    """Multiply-adds of the current image that are done, out of ``total``."""
    total: int
    """Multiply-adds of the current image."""
    stage: str
    """Module that the call has reached, by diffusers' name."""

    @property
    def fraction(self) -> float:
        """Finished share of the whole call, 0 to 1."""
        return (self.image + self.done / max(self.total, 1)) / max(self.images, 1)


ProgressArgument: TypeAlias = Callable[[Progress], object] | bool | None


@dataclass(frozen=True)
class Adapter:
    """A GPU, or a CPU driver that acts as one."""

    index: int
    """Number of the adapter for ``adapter=``. The best adapter has number 0."""
    name: str
    backend: str
    device_type: str
    """``DiscreteGpu``, ``IntegratedGpu``, ``VirtualGpu``, ``Cpu`` or ``Other``."""
    driver: str
    pci_id: str
    """PCI vendor and device."""
    facts: dict[str, Any] = field(hash=False)
    """Everything that ``wgvae adapters --json`` prints about the adapter."""


def adapters() -> list[Adapter]:
    """Lists the adapters of this machine, best first.

    Raises
    ------
    NoAdapterError
        If there is none. The message says what to install.
    """
    names = ("name", "backend", "device_type", "driver", "pci_id")
    found = enumerate(json.loads(_native.adapters()))
    return [Adapter(index, **{name: facts[name] for name in names}, facts=facts) for index, facts in found]


@dataclass(frozen=True)
class Plan:
    """The memory and time that a decode or an encode takes, known before anything is allocated.

    ``str(plan)`` is the table of the plan, as ``wgvae plan`` prints it for an image. In tiles, ``seconds``, ``macs`` and
    ``transferred_bytes`` are those of all tiles; ``text``, and the stages in ``facts``, are those of
    the tile that takes the most memory.
    """

    height: int
    """Height of the image, in pixels."""
    width: int
    """Width of the image, in pixels."""
    peak_bytes: int
    """Peak of all memory of the device, in bytes."""
    weight_bytes: int
    """Bytes of ``peak_bytes`` that are weights."""
    host_bytes: int
    """Bytes of host memory for spilled weights and activations, and for states of a clip."""
    transferred_bytes: int
    """Bytes that a budget moves between host and device."""
    seconds: float
    """Estimated time on a device of this kind, in seconds. For a clip: one part."""
    macs: int
    """Multiply-adds. For a clip: one part."""
    facts: list[dict[str, Any]] = field(hash=False)
    """All facts, by the names of ``wgvae plan --json`` for an image, without ``limits``.

    A clip has two items: its first part and its other parts.
    """
    text: str
    """Table of the plan, as ``wgvae plan`` prints it for an image, without its last line."""

    def __str__(self) -> str:
        return self.text


class Vae:
    """A VAE on a GPU, or on this machine's own cores.

    Weights are read when they are first needed, so a decode does not read the encoder's weights.

    Several threads may share one ``Vae``: their calls take turns. The GIL is free while the device
    works, so other threads run meanwhile. A ``Vae`` cannot be pickled, and a child process cannot
    use the one of its parent: open the model in each process.

    Ctrl-C stops a call within a submission, about 0.1 s. So does an exception from ``progress``.
    The object stays usable.
    """

    def __init__(self, model: _native.Model, least_memory: bool = False) -> None:
        """Wraps an open model. Users call :meth:`from_pretrained` instead."""
        self._model = model
        self._least_memory = least_memory
        self._process = os.getpid()
        self._facts: dict[str, Any] = json.loads(model.facts)

    @classmethod
    def from_pretrained(
        cls,
        path_or_hf_name: str | os.PathLike[str],
        *,
        device: Device = "auto",
        adapter: str | int | None = None,
        threads: int | None = None,
        precision: Precision | None = None,
        family: str | None = None,
        border: Border | None = None,
        variant: Literal["fp16"] | None = None,
        least_memory: bool = False,
        preview_rate: bool = False,
    ) -> Vae:
        """Opens a model from files on this machine or from the Hugging Face Hub.

        Parameters
        ----------
        path_or_hf_name
            A .safetensors file, a diffusers VAE folder, a pipeline's folder, or
            ``hf:owner/name[/folder or file][@revision]`` for the Hub. From the Hub, config.json and
            the VAE's weights are downloaded into the cache of ``huggingface_hub``, with its token
            and its environment variables.
        device
            "gpu" is the best adapter, which may be a CPU driver, or the one that ``adapter`` names.
            "cpu" is this machine's own cores, without a driver. "auto" is a GPU if there is one,
            else the cores; it takes an adapter, too, if ``adapter`` names one or if ``precision``
            is "fast".
        adapter
            Part of a GPU's name, or its index in :func:`adapters`. None is the best adapter.
        threads
            Number of threads on this machine's own cores, at most 1024. None is one for each core. A GPU that
            "auto" finds does not use it.
        precision
            Type of weights and activations, "f16" or "f32". Sums are f32. "auto" is f16 on a GPU
            and f32 elsewhere. "fast" is f16 with less memory traffic on the GPU and a few
            times the error of f16. It needs a device with ``shader-f16``. None is "auto".
        family
            Published model, such as "sdxl", where the files do not tell.
        border
            What convolutions see beyond a picture's borders, as torch's ``padding_mode``, for
            models of ``AutoencoderKL``'s kind: "reflect" for EQ-SDXL-VAE, "circular" for seamless textures. None is as the files
            say, or else "zeros".
        variant
            "fp16" takes files that are marked so.
        least_memory
            True prefers less memory to speed where that computes nothing twice. It changes nothing on
            the CPU, and nothing for networks with norms over the whole image. For others, plans of
            large images were predicted to take down to a sixth of the memory, and up to five times
            as long.
        preview_rate
            True to decode a clip to one frame for each frame of latents: a cheaper preview, by the
            same weights. Only models of TAEHV's family have it, and they cannot encode then.

        Warns
        -----
        UserWarning
            If a config.json beside the file is not used, or neither it nor a published model tells
            the number of groups of norms, so that one is assumed.

        Raises
        ------
        ModelNotFoundError
            If there is no such path.
        FileError
            If a file cannot be read, or the Hub does not answer or denies access.
        FormatError, TensorError, MissingTensorsError, ConfigError
            If the files are no supported model.
        InputError
            If an argument is wrong, or ``device`` is "cpu" and another argument needs a GPU.
        NoAdapterError, DeviceError
            If there is no such GPU, or it cannot be opened.
        """
        try:
            path = os.fspath(path_or_hf_name)
        except TypeError:
            expected = "a path, as str or os.PathLike"
            raise wrong("path_or_hf_name", expected, type(path_or_hf_name).__name__) from None
        if not isinstance(path, str):
            raise wrong("path_or_hf_name", "a path, as str or os.PathLike", "bytes")
        if variant not in (None, "fp16"):
            raise wrong("variant", '"fp16" or None', repr(variant))
        if not path:
            raise wrong("path_or_hf_name", "a path", "an empty text")
        named = None if family is None else word("family", family)
        stated = None if border is None else word("border", border)
        if "\0" not in path and not path.startswith("hf:") and not os.path.exists(path):
            raise _not_found(path)
        place: _native.Place = {
            "device": word("device", device),
            "adapter": adapter_name(adapter),
            "threads": optional("threads", threads, "threads", most=1024),
            "precision": word("precision", "auto" if precision is None else precision),
        }
        thrifty, rate = flag("least_memory", least_memory), flag("preview_rate", preview_rate)
        return cls(_native.Model.open(path, named, stated, variant == "fp16", rate, place), thrifty)

    def decode(
        self,
        latents: ArrayLike,
        *,
        output: Output = "uint8",
        unscaled: bool = False,
        memory_budget: int | str | None = None,
        parking: Parking = "auto",
        max_side: int | None = None,
        tiling: Tiling = "exact",
        tile_size: int | None = None,
        tile_overlap: int | None = None,
        progress: ProgressArgument = None,
    ) -> Array:
        """Decodes latents to images.

        Latents may have any strides. The native half copies them once, image by image. Pictures
        are not copied.

        Parameters
        ----------
        latents
            ``[n, c, h, w]`` or ``[c, h, w]`` of float32, float16 or bfloat16, in the diffusion
            model's scale: a numpy array, a torch tensor on the CPU, or an object with ``__array__``
            or ``__dlpack__``. Unless the model is for video, also ``[n, c, layers, h, w]``, whose
            layers become ``n * layers`` images.
        output
            "uint8" for pictures ``[n, h, w, 3]``, or "float" for float32 ``[n, 3, h, w]`` of about
            -1 to 1, not clamped. A model with ``config["out_channels"] == 4`` gives
            ``[n, h, w, 4]`` or ``[n, 4, h, w]``: the last channel is the opacity, and colours are
            not multiplied with it.
        unscaled
            True if the latents are in the VAE's own scale, already divided by the model's scaling
            factor. Diffusers' ``vae.decode`` takes such latents, and ComfyUI has them, except for
            FLUX.2, LTX-2, MiniMax-H3 and SeedVR2. A tiny autoencoder itself takes the diffusion model's scale. For it, the latents are those of
            the big VAE that it replaces, which ``family`` or the file's name tells.
        memory_budget
            Limit of the device's memory, in bytes or as text such as "2GiB". The result is the same
            to the bit.
        parking
            "on" if activations that exceed the budget may wait in host memory, "off" if they are
            computed again instead. "auto" is "off" where device and host share one memory.
        max_side
            For a preview: the most pixels of the longer side. If the picture would be larger,
            squares of latents are averaged first, which loses detail. Meant for tiny autoencoders;
            see also :func:`preview`.
        tiling
            "exact" for the model's own result. The others reproduce tools that decode in tiles:
            "blend" is diffusers' ``AutoencoderKL`` with ``enable_tiling()``, "cosine" is SeedVR2's
            node for ComfyUI, and "estimate" is the whole image with norms of a smaller copy.
            Tiles are not needed to save memory: a budget changes no bit of the result.
        tile_size, tile_overlap
            Side of a tile and pixels that neighbours share, for "blend" and "cosine". None is as
            that tool has it.
        progress
            Function that is called with :class:`Progress` after each submission, and that may raise
            to stop the call. True shows a bar of tqdm.

        Returns
        -------
        numpy.ndarray
            Images of the type and shape that ``output`` sets.

        Raises
        ------
        InputError
            If shapes, types or values do not fit the model.
        BudgetError, TooLargeError, HostMemoryError, DeviceMemoryError
            If the budget or the memory is too small.
        ConfigError
            If ``tiling`` is "blend" without ``tile_size``, and the model does not say what its tiles
            are, such as TAESD.
        NotFiniteError
            If the result is not finite.
        DeviceError
            If the device fails.
        """
        clips = self._facts["temporal_factor"] is not None
        array, bfloat16 = as_latents(latents, clips)
        options = call_options(self._least_memory, unscaled, output, memory_budget, parking)
        divide(options, max_side, tiling, tile_size, tile_overlap)
        with _watched(progress, "decode") as watch:
            return self._model.decode(array, bfloat16, options, watch)

    def encode(
        self,
        images: Images,
        *,
        sample: bool = False,
        seed: int | None = None,
        moments: bool = False,
        unscaled: bool = False,
        memory_budget: int | str | None = None,
        parking: Parking = "auto",
        progress: ProgressArgument = None,
    ) -> Array:
        """Encodes images to latents.

        Parameters
        ----------
        images
            uint8 ``[n, h, w, 3]`` or ``[h, w, 3]``, floats ``[n, 3, h, w]`` or ``[3, h, w]`` of
            -1 to 1, or PIL images of one size. For a model with ``config["in_channels"] == 4`` also
            uint8 ``[n, h, w, 4]``, floats ``[n, 4, h, w]`` and PIL images of mode RGBA. There,
            images of three channels are opaque.

            If a side is no multiple of ``facts["image_step"][unscaled]``, uint8 and PIL images are
            scaled down to the next multiples with Lanczos. Floats are encoded as they are.
        sample
            True draws latents from the distribution that the encoder gives. False takes its mode,
            which is its mean.
        seed
            Seed of the noise for ``sample``, 0 to 2**64 - 1. It gives the same noise on every
            machine, and other noise for each image. None draws new noise in every call.
        moments
            True returns the distribution itself, ``[n, 2c, h, w]``: means, then logarithms of
            variances, unscaled.
        unscaled
            True returns latents in the VAE's own scale, not in the diffusion model's.
        memory_budget, parking, progress
            See :meth:`decode`.

        Returns
        -------
        numpy.ndarray
            Latents, float32 ``[n, c, h, w]``, or ``[n, 2c, h, w]`` with ``moments``. Their scale is
            the diffusion model's, unless ``unscaled`` or ``moments`` is True.

        Warns
        -----
        UserWarning
            If a side is no multiple, or floats are beyond -2 to 2, where no picture has values.

        Raises
        ------
        wgvae.Error
            The same errors as :meth:`decode`.
        """
        array, bfloat16 = as_images(images, self.config["in_channels"])
        options = call_options(self._least_memory, unscaled, "float", memory_budget, parking, moments, drawn(sample, seed, moments))
        with _watched(progress, "encode") as watch:
            return self._model.encode(array, bfloat16, options, watch)

    def plan(
        self,
        height: int,
        width: int,
        memory_budget: int | str | None = None,
        *,
        encode: bool = False,
        output: Output = "uint8",
        unscaled: bool = False,
        parking: Parking = "auto",
        max_side: int | None = None,
        tiling: Tiling = "exact",
        tile_size: int | None = None,
        tile_overlap: int | None = None,
    ) -> Plan:
        """Plans the decode or the encode of an image of ``height`` by ``width`` pixels.

        Takes no memory of the device, and does not wait for calls in other threads. The other arguments are
        those of :meth:`decode`. ``encode=True`` plans an encode.

        Raises
        ------
        InputError
            If the sides do not fit the model, or another argument is wrong.
        ConfigError
            See :meth:`decode`.
        BudgetError
            If no plan fits the budget. Its ``smallest`` is the smallest budget found.
        """
        encode = flag("encode", encode)
        if encode and tiling != "exact":
            raise wrong("tiling", '"exact" for an encode, which is always whole', repr(tiling))
        for name, given in (("max_side", max_side), ("tile_size", tile_size), ("tile_overlap", tile_overlap)):
            if encode and given is not None:
                raise wrong(name, "None for an encode", repr(given))
        options = call_options(self._least_memory, unscaled, output, memory_budget, parking)
        divide(options, max_side, tiling, tile_size, tile_overlap)
        return self._plan(height, width, encode, options, clip=False)

    def clip(self) -> Clip:
        """Returns a decoder and encoder of clips that uses this model.

        Images and clips have different weights on the device. Each change between them reads the
        files again. Open the model twice to use both.

        Raises
        ------
        InputError
            If the model is not for video.
        """
        return Clip(self)

    @property
    def config(self) -> dict[str, Any]:
        """The network and the scale of its latents, by diffusers' names."""
        return copy.deepcopy(self._facts["config"])

    @property
    def facts(self) -> dict[str, Any]:
        """Facts about the model and its device.

        ``image_step``, ``latent_channels`` and ``latent_factor`` are pairs: index them with
        ``unscaled``.
        """
        return copy.deepcopy(self._facts)

    @property
    def device(self) -> Literal["gpu", "cpu"]:
        """Kind of the device: "gpu" for an adapter, "cpu" for this machine's own cores."""
        return "cpu" if self._facts["adapter"]["limits"]["kind"] == "host" else "gpu"

    @property
    def adapter(self) -> str:
        """Name of the GPU, or of the CPU with its threads."""
        return str(self._facts["adapter"]["name"])

    def memory(self) -> tuple[int, int]:
        """Returns the device's memory in bytes: the amount held now, and the peak so far."""
        return self._model.memory()

    @property
    def closed(self) -> bool:
        """True if :meth:`close` was called, or if another process opened the model."""
        return os.getpid() != self._process or self._model.closed

    def close(self) -> None:
        """Frees the device's memory, after calls in other threads have ended.

        Does nothing in a child process of the one that opened the model.
        """
        if not self.closed:
            self._model.close()

    def __enter__(self) -> Vae:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("Vae: expected to be opened where it is used (Vae.from_pretrained), found an attempt to pickle or copy it: it holds a device")

    def __repr__(self) -> str:
        return f"<wgvae.Vae {self._facts['name']} on {self.adapter}, {self._facts['storage']}>"

    def _plan(
        self,
        height: int,
        width: int,
        encode: bool,
        options: _native.Options,
        clip: bool,
    ) -> Plan:
        height, width = number("height", height, "pixels"), number("width", width, "pixels")
        text, facts_json = self._model.plan(height, width, flag("encode", encode), clip, options)
        facts = json.loads(facts_json)

        def most(name: str) -> int:
            return max(int(part[name]) for part in facts)

        return Plan(
            height=height,
            width=width,
            peak_bytes=most("predicted_peak_bytes"),
            weight_bytes=most("weight_bytes"),
            host_bytes=most("host_bytes"),
            transferred_bytes=most("transferred_bytes"),
            seconds=float(facts[-1]["predicted_seconds"]),
            macs=most("macs"),
            facts=facts,
            text=text,
        )


def preview(latents: ArrayLike, family: str, *, max_side: int = 512) -> Array:
    """Shows roughly what latents hold, without weights and without a device.

    A published linear map makes a pixel of each latent of the VAE. The colours are only roughly
    right; a tiny autoencoder (``Vae.decode``) gives the right ones.

    Parameters
    ----------
    latents
        ``[n, c, h, w]`` or ``[c, h, w]`` as the diffusion model leaves them; see
        :meth:`Vae.decode`. Each layer or frame of ``[n, c, layers, h, w]`` becomes a picture.
    family
        The published model that they belong to, such as "sdxl" or "flux1".
    max_side
        The most pixels of the longer side. More latents than that are averaged.

    Returns
    -------
    numpy.ndarray
        uint8 ``[n, h, w, 3]``.

    Raises
    ------
    InputError
        If the family is unknown, has no known map or other channels, or a value is not
        finite.
    """
    array, bfloat16 = as_latents(latents, False)
    return _native.preview(array, bfloat16, word("family", family), number("max_side", max_side, "pixels"))


class Clip:
    """Decoder and encoder of clips: see :meth:`Vae.clip`.

    It works part by part, in the memory of one part. A part is the frames of one frame of latents.
    HunyuanVideo 1.5 also keeps keys and values of all earlier frames.
    """

    def __init__(self, vae: Vae) -> None:
        """Wraps a model. Users call :meth:`Vae.clip` instead."""
        factor = vae.facts["temporal_factor"]
        if factor is None:
            raise wrong("clip", "a model for video", str(vae.facts["name"]))
        self._vae = vae
        self.temporal_factor = int(factor)
        """Frames for each frame of latents but the first, which gives one frame. In taeh3, every fifth
        gives one. In taecvx, the first gives one if the clip has an odd number of them."""

    @overload
    def decode(
        self,
        latents: ArrayLike,
        on_frames: None = None,
        *,
        output: Output = "uint8",
        unscaled: bool = False,
        memory_budget: int | str | None = None,
        parking: Parking = "auto",
        progress: ProgressArgument = None,
    ) -> Array: ...

    @overload
    def decode(
        self,
        latents: ArrayLike,
        on_frames: Callable[[Array], object],
        *,
        output: Output = "uint8",
        unscaled: bool = False,
        memory_budget: int | str | None = None,
        parking: Parking = "auto",
        progress: ProgressArgument = None,
    ) -> None: ...

    @overload
    def decode(
        self,
        latents: ArrayLike,
        on_frames: Callable[[Array], object] | None,
        *,
        output: Output = "uint8",
        unscaled: bool = False,
        memory_budget: int | str | None = None,
        parking: Parking = "auto",
        progress: ProgressArgument = None,
    ) -> Array | None: ...

    def decode(
        self,
        latents: ArrayLike,
        on_frames: Callable[[Array], object] | None = None,
        *,
        output: Output = "uint8",
        unscaled: bool = False,
        memory_budget: int | str | None = None,
        parking: Parking = "auto",
        progress: ProgressArgument = None,
    ) -> Array | None:
        """Decodes the latents of a clip to frames.

        Parameters
        ----------
        latents
            ``[1, c, t, h, w]``, otherwise as for :meth:`Vae.decode`.
        on_frames
            Function that is called with the frames of each part when they are ready,
            ``[k, h, w, 3]`` of uint8 or ``[k, 3, h, w]`` of floats.
        output, unscaled, memory_budget, parking, progress
            See :meth:`Vae.decode`.

        Returns
        -------
        numpy.ndarray or None
            Frames, uint8 ``[f, h, w, 3]`` or float32 ``[1, 3, f, h, w]``. None if ``on_frames`` is
            given: then no frames are kept.

        Raises
        ------
        wgvae.Error
            The same errors as :meth:`Vae.decode`.
        """
        if on_frames is not None and not callable(on_frames):
            raise wrong("on_frames", "a function or None", repr(on_frames))
        array, bfloat16 = as_clip_latents(latents)
        options = call_options(self._vae._least_memory, unscaled, output, memory_budget, parking)
        parts: list[Array] = []
        with _watched(progress, "decode clip") as watch:
            self._vae._model.decode_clip(array, bfloat16, on_frames or parts.append, options, watch)
        if on_frames is not None:
            return None
        return _joined(parts) if options["floats"] else np.concatenate(parts)

    def encode(
        self,
        frames: ArrayLike | Sequence[Picture] | Sequence[Array],
        *,
        sample: bool = False,
        seed: int | None = None,
        moments: bool = False,
        unscaled: bool = False,
        memory_budget: int | str | None = None,
        parking: Parking = "auto",
        progress: ProgressArgument = None,
    ) -> Array:
        """Encodes the frames of a clip to latents.

        Parameters
        ----------
        frames
            1, 5, 9 and so on frames of one size (LTX-2: 1, 9, 17), or any number for TAEHV's models (``taeh3``: 5, 22, 39): uint8 ``[f, h, w, 3]``, floats
            ``[1, 3, f, h, w]`` of -1 to 1, or a list of PIL images. If a side is no multiple of
            ``facts["image_step"][unscaled]``, the middle of uint8 and PIL images is encoded. Floats
            are encoded as they are.
        sample, seed, moments, unscaled
            See :meth:`Vae.encode`.
        memory_budget, parking, progress
            See :meth:`Vae.decode`.

        Returns
        -------
        numpy.ndarray
            Latents, float32 ``[1, c, t, h, w]``, or ``[1, 2c, t, h, w]`` with ``moments``.

        Warns
        -----
        UserWarning
            As for :meth:`Vae.encode`.

        Raises
        ------
        wgvae.Error
            The same errors as :meth:`Vae.decode`.
        """
        array, bfloat16 = as_frames(frames)
        options = call_options(self._vae._least_memory, unscaled, "float", memory_budget, parking, moments, drawn(sample, seed, moments))
        parts: list[Array] = []
        with _watched(progress, "encode clip") as watch:
            self._vae._model.encode_clip(array, bfloat16, parts.append, options, watch)
        return _joined(parts)

    def plan(
        self,
        height: int,
        width: int,
        memory_budget: int | str | None = None,
        *,
        encode: bool = False,
        output: Output = "uint8",
        unscaled: bool = False,
        parking: Parking = "auto",
        clip_latents: int | None = None,
    ) -> Plan:
        """Plans the decode or the encode of a clip.

        ``clip_latents`` is the most frames of latents that the clip has, 33 if None. Only the memory
        of HunyuanVideo 1.5 depends on it. Other arguments and errors are those of :meth:`Vae.plan`.
        """
        options = call_options(self._vae._least_memory, unscaled, output, memory_budget, parking)
        options["clip_latents"] = optional("clip_latents", clip_latents, "latents")
        return self._vae._plan(height, width, encode, options, clip=True)


def _joined(parts: list[Array]) -> Array:
    """Moves parts ``[k, c, h, w]`` of a clip to an array ``[1, c, frames, h, w]``.

    Each part is freed when it is copied, so the clip takes its size once.
    """
    channels, *sides = parts[0].shape[1:]
    clip = np.empty((1, channels, sum(map(len, parts)), *sides), parts[0].dtype)
    start = 0
    while parts:
        part = parts.pop(0)
        clip[0, :, start : start + len(part)] = part.swapaxes(0, 1)
        start += len(part)
    return clip


def _not_found(path: str) -> ModelNotFoundError:
    message = f"{path}: expected a .safetensors file or a folder, found nothing there"
    words = path.split("/")
    is_plain = all(word and not word.startswith(".") for word in words)
    if len(words) > 1 and is_plain and not os.path.exists(words[0]):
        message += f"; a model of the Hugging Face Hub is called hf:{path}"
    return ModelNotFoundError(message, filename=path, errno=2, strerror="No such file or directory")


@contextmanager
def _watched(progress: ProgressArgument, name: str) -> Iterator[Callable[[int, int, int, int, str], object] | None]:
    """Returns the function that the native half calls with progress, or None."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        from tqdm.auto import tqdm

        with tqdm(total=1.0, desc=name, bar_format="{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]") as bar:
            yield lambda *told: bar.update(Progress(*told).fraction - bar.n)
    elif callable(progress):
        call = progress
        yield lambda *told: call(Progress(*told))
    else:
        raise wrong("progress", "a function, True or None", repr(progress))


