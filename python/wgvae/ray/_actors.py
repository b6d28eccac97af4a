"""The actors, one for each GPU, or on cores: each holds a loaded model and turns shards into files."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import ray
from filelock import FileLock, Timeout

import wgvae
from wgvae._arrays import Array, wrong
from wgvae.errors import InputError, NoAdapterError, NotFiniteError
from wgvae.ray._files import put_images, put_json, put_latents, safe, sha256
from wgvae.ray._pictures import BAD, opened, png
from wgvae.ray._sources import Shard, latents_of, pictures_of

# Errors of a single picture. The job goes on without it. A budget that is too small ends the job,
# which may run again with another one.
_OF_ONE = (InputError, NotFiniteError)

# A batch of decoded pictures ends with the one that reaches so many bytes.
_BATCH_BYTES = 1 << 29


class Actor:
    """Base class of actors: a model on a device, and the description of the job."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.output = Path(job["output"])
        self.adapter, self.lock = _claim(job["device"], job["adapter"])
        settings = {name: job[name] for name in ("device", "precision", "family", "border")}
        if _may_be_on_cores(settings, self.adapter):
            settings["threads"] = job["threads"]
        self.vae = wgvae.Vae.from_pretrained(job["model"], adapter=self.adapter, **settings)
        # What is wrong with the model or the arguments would be an error of every picture. Zeros
        # may overflow where pictures do not.
        with suppress(NotFiniteError):
            self.try_out()

    def try_out(self) -> None:
        """Runs the model once.

        Raises
        ------
        wgvae.Error
            If the model cannot do what the job asks for.
        """
        raise NotImplementedError

    def __call__(self, batch: dict[str, Array]) -> dict[str, Array]:
        """Processes each shard of ``batch`` and returns their names.

        Ray calls it with shards as JSON in the column "shard".
        """
        for text in batch["shard"]:
            shard = Shard.from_json(str(text))
            start = time.perf_counter()
            rows, errors, busy = self.work(shard)
            record = {"shard": shard.name, "rows": rows, "errors": errors, "actor": self.describe(len(rows), busy, time.perf_counter() - start)}
            # Written last: a record in place means that its shard is complete.
            put_json(self.output / "records" / f"{shard.name}.json", record)
        return {"shard": np.array([Shard.from_json(str(text)).name for text in batch["shard"]])}

    def work(self, shard: Shard) -> tuple[list[dict[str, Any]], list[dict[str, Any]], float]:
        """Writes the shard's file.

        Returns
        -------
        tuple of (list, list, float)
            Rows of the file, errors with the ids of what is left out, and seconds in calls of
            :class:`wgvae.Vae`.
        """
        raise NotImplementedError

    def describe(self, images: int, busy: float, seconds: float) -> dict[str, Any]:
        """Returns the place of this actor and its use of time and memory, for a record."""
        context = ray.get_runtime_context()
        return {
            "actor": context.get_actor_id(),
            "node": context.get_node_id(),
            "pid": os.getpid(),
            "adapter": self.vae.adapter,
            "images": images,
            "seconds": seconds,
            "gpu_seconds": busy,
            "gpu_bytes": self.vae.memory()[1],
            # macOS counts bytes, Linux KiB.
            "host_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        }


class Encoder(Actor):
    """An actor that encodes pictures to latents."""

    def try_out(self) -> None:
        side = 8 * self.vae.facts["image_step"][0]
        height, width = self.job["size"] or (side, side)
        self.encoded(np.zeros((height, width, self.vae.config["in_channels"]), np.uint8), "0" * 16)

    def work(self, shard: Shard) -> tuple[list[dict[str, Any]], list[dict[str, Any]], float]:
        errors: list[dict[str, Any]] = []
        made: list[tuple[dict[str, Any], Array]] = []
        busy = 0.0
        for pictures in self.batches(shard, errors):
            # Sorted by size, so that each size of a batch is planned and allocated only once.
            for row, picture in sorted(pictures, key=lambda pair: pair[1].shape[:2]):
                start = time.perf_counter()
                try:
                    latents = self.encoded(picture, row["sha256"])
                except _OF_ONE as error:
                    errors.append(_error(row["id"], error))
                    continue
                busy += time.perf_counter() - start
                made.append((row, latents.astype(self.job["dtype"], copy=False)))
            # Before the next batch is read.
            pictures.clear()
        made.sort(key=lambda pair: pair[0]["id"])
        put_latents(self.output, shard.name, self.job["format"], [(row["id"], latents) for row, latents in made])
        return [row for row, _ in made], errors, busy

    def batches(self, shard: Shard, errors: list[dict[str, Any]]) -> Iterator[list[tuple[dict[str, Any], Array]]]:
        """Reads the shard's pictures in batches: a row of the record, and uint8 ``[h, w, c]``.

        Adds those that cannot be read to ``errors``.
        """
        job, step, channels = self.job, int(self.vae.facts["image_step"][0]), int(self.vae.config["in_channels"])
        size = None if job["size"] is None else (int(job["size"][0]), int(job["size"][1]))
        batch: list[tuple[dict[str, Any], Array]] = []
        held = 0
        for name, content in pictures_of(shard, job["image_column"], job["id_column"]):
            try:
                # The name of a file may be no text, which tables and tensors cannot have as an id.
                name.encode()
                if isinstance(content, Exception):
                    raise content
                picture, done = opened(content, size, step, channels)
            except BAD as error:
                errors.append(_error(name, error))
                continue
            batch.append(({"id": name, "sha256": sha256(content), **done}, picture))
            held += picture.nbytes
            if held >= _BATCH_BYTES:
                yield batch
                batch, held = [], 0
        yield batch

    def encoded(self, picture: Array, content: str) -> Array:
        """Returns latents ``[c, h, w]`` of a picture whose file has the SHA-256 ``content``.

        The noise of a sample depends on the job's seed and the picture only, so that a shard has
        the same latents whichever actor encodes it.
        """
        seed = self.job["seed"]
        drawn = None if seed is None else (seed + int(content[:16], 16)) % (1 << 64)
        return self.vae.encode(picture, sample=seed is not None, seed=drawn, memory_budget=self.job["memory_budget"])[0]  # type: ignore[no-any-return]


class Decoder(Actor):
    """An actor that decodes latents to pictures."""

    def try_out(self) -> None:
        zeros = np.zeros((self.vae.facts["latent_channels"][0], 8, 8), np.float32)
        self.vae.decode(zeros, memory_budget=self.job["memory_budget"])

    def work(self, shard: Shard) -> tuple[list[dict[str, Any]], list[dict[str, Any]], float]:
        images: list[tuple[str, bytes]] = []
        errors: list[dict[str, Any]] = []
        busy = 0.0
        # Sorted by shape, so that each shape is planned and allocated only once.
        for name, latents in sorted(latents_of(shard), key=lambda pair: getattr(pair[1], "shape", ())):
            start = time.perf_counter()
            try:
                if isinstance(latents, Exception):
                    raise latents
                if self.job["format"] != "parquet":
                    safe(name)
                if latents.ndim != 3:
                    raise wrong("latents", "a shape [c, h, w]", str(list(latents.shape)))
                picture = self.vae.decode(latents, memory_budget=self.job["memory_budget"])[0]
            except (*_OF_ONE, TypeError, ValueError) as error:
                errors.append(_error(name, error))
                continue
            busy += time.perf_counter() - start
            images.append((name, png(picture)))
        images.sort()
        put_images(self.output, shard.name, self.job["format"], images)
        return [{"id": name, "sha256": sha256(image)} for name, image in images], errors, busy


def _error(name: str, error: Exception) -> dict[str, Any]:
    """Returns what the record says of a picture that is left out."""
    return {"id": name.encode(errors="backslashreplace").decode(), "error": f"{type(error).__name__}: {error}"}


def _may_be_on_cores(settings: dict[str, Any], adapter: str | int | None) -> bool:
    """True unless an argument asks for a GPU, beside which a number of threads is an error."""
    return settings["device"] == "cpu" or (settings["device"] == "auto" and adapter is None and settings["precision"] != "fast")


def _claim(device: str, adapter: str | int | None) -> tuple[str | int | None, FileLock | None]:
    """Chooses an adapter for this process alone, unless ``device`` is "cpu".

    Vulkan ignores CUDA_VISIBLE_DEVICES, and Ray's custom resources carry no GPU number. So if
    ``adapter`` is None and the machine has discrete GPUs, this takes the first one without a lock
    of another actor. The lock ends with the process.

    Raises
    ------
    InputError
        If this user's processes have taken all discrete GPUs.
    """
    if device == "cpu" or adapter is not None:
        return adapter, None
    try:
        cards = [one.index for one in wgvae.adapters() if one.device_type == "DiscreteGpu"]
    except NoAdapterError:
        # The model then opens on the cores, or the error comes from there.
        cards = []
    if not cards:
        return None, None
    for index in cards:
        # Users cannot open each other's files in a shared folder.
        lock = FileLock(Path(tempfile.gettempdir()) / f"wgvae-{os.getuid()}-adapter-{index}.lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            continue
        return index, lock
    raise wrong("workers", f"at most one for each GPU: give this node Ray's resource wgpu={len(cards)}", f"more than {len(cards)} on a machine")


def ids(records: Iterable[dict[str, Any]]) -> list[str]:
    """Returns the ids of all rows of ``records``, good and bad."""
    return [row["id"] for record in records for row in [*record["rows"], *record["errors"]]]
