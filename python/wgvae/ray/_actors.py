"""What runs on each GPU: an actor that holds a loaded model, and turns shards into files."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import ray
from filelock import FileLock, Timeout

import wgvae
from wgvae._arrays import Array, wrong
from wgvae.errors import InputError, NotFiniteError
from wgvae.ray._files import put_images, put_json, put_latents, sha256
from wgvae.ray._pictures import BAD, opened, png
from wgvae.ray._sources import Shard, latents_of, pictures_of


class Actor:
    """Holds a model on a GPU."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.output = Path(job["output"])
        self.adapter, self.lock = _claim(job["adapter"])
        self.vae = wgvae.Vae.from_pretrained(job["model"], adapter=self.adapter, precision=job["precision"], family=job["family"])

    def __call__(self, batch: dict[str, Array]) -> dict[str, Array]:
        """Does each shard of the batch, and gives their names."""
        for text in batch["shard"]:
            shard = Shard.from_json(str(text))
            start = time.perf_counter()
            rows, errors, busy = self.work(shard)
            record = {"shard": shard.name, "rows": rows, "errors": errors, "actor": self.describe(len(rows), busy, time.perf_counter() - start)}
            # Last: that it is there says that the shard is.
            put_json(self.output / "records" / f"{shard.name}.json", record)
        return {"shard": np.array([Shard.from_json(str(text)).name for text in batch["shard"]])}

    def work(self, shard: Shard) -> tuple[list[dict[str, Any]], list[dict[str, Any]], float]:
        """Makes the shard's file. Gives what is in it, what is not and why, and how long the GPU worked, seconds."""
        raise NotImplementedError

    def describe(self, images: int, busy: float, seconds: float) -> dict[str, Any]:
        """Where this is and what it took."""
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
    """Pictures to latents."""

    def work(self, shard: Shard) -> tuple[list[dict[str, Any]], list[dict[str, Any]], float]:
        job, factor = self.job, int(self.vae.facts["latent_factor"][0])
        size = None if job["size"] is None else (int(job["size"][0]), int(job["size"][1]))
        pictures: list[tuple[dict[str, Any], Array]] = []
        errors: list[dict[str, Any]] = []
        for name, content in pictures_of(shard, job["image_column"], job["id_column"]):
            try:
                if isinstance(content, Exception):
                    raise content
                picture, done = opened(content, size, factor)
            except BAD as error:
                errors.append({"id": name, "error": f"{type(error).__name__}: {error}"})
            else:
                pictures.append(({"id": name, "sha256": sha256(content), **done}, picture))
        rows, made, busy = [], {}, 0.0
        # One size after the other: a plan is made and allocated once for each.
        for row, picture in sorted(pictures, key=lambda pair: pair[1].shape[:2]):
            start = time.perf_counter()
            try:
                latents = self.encoded(picture, row["sha256"])
            except (InputError, NotFiniteError) as error:
                errors.append({"id": row["id"], "error": f"{type(error).__name__}: {error}"})
                continue
            busy += time.perf_counter() - start
            made[row["id"]] = latents.astype(job["dtype"], copy=False)
            rows.append(row)
        rows.sort(key=lambda row: row["id"])
        put_latents(self.output, shard.name, job["format"], [(row["id"], made[row["id"]]) for row in rows])
        return rows, errors, busy

    def encoded(self, picture: Array, content: str) -> Array:
        """Latents ``[c, h, w]``: a sample's noise is told by the seed and the picture, wherever and whenever it is drawn."""
        seed = self.job["seed"]
        drawn = None if seed is None else (seed + int(content[:16], 16)) % (1 << 64)
        return self.vae.encode(picture, sample=seed is not None, seed=drawn, memory_budget=self.job["memory_budget"])[0]  # type: ignore[no-any-return]


class Decoder(Actor):
    """Latents to pictures."""

    def work(self, shard: Shard) -> tuple[list[dict[str, Any]], list[dict[str, Any]], float]:
        images: list[tuple[str, bytes]] = []
        errors: list[dict[str, Any]] = []
        busy = 0.0
        by_shape = sorted(latents_of(shard), key=lambda pair: pair[1].shape)
        for _, group in groupby(by_shape, key=lambda pair: pair[1].shape):
            for name, latents in group:
                start = time.perf_counter()
                try:
                    picture = self.vae.decode(latents, memory_budget=self.job["memory_budget"])[0]
                except (InputError, NotFiniteError) as error:
                    errors.append({"id": name, "error": f"{type(error).__name__}: {error}"})
                    continue
                busy += time.perf_counter() - start
                images.append((name, png(picture)))
        images.sort()
        put_images(self.output, shard.name, self.job["format"], images)
        return [{"id": name, "sha256": sha256(image)} for name, image in images], errors, busy


def _claim(adapter: str | int | None) -> tuple[str | int | None, FileLock | None]:
    """An adapter for this process alone, as Vulkan heeds no CUDA_VISIBLE_DEVICES and Ray's custom resources carry no number.

    Where the machine has discrete GPUs and none was named: the first that no other actor has, by a lock that ends with the process.
    """
    cards = [one.index for one in wgvae.adapters() if one.device_type == "DiscreteGpu"]
    if adapter is not None or not cards:
        return adapter, None
    for index in cards:
        lock = FileLock(Path(tempfile.gettempdir()) / f"wgvae-adapter-{index}.lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            continue
        return index, lock
    raise wrong("workers", f"at most one for each GPU: give this node Ray's resource wgpu={len(cards)}", f"more than {len(cards)} on a machine")


def ids(records: Iterable[dict[str, Any]]) -> list[str]:
    """Of all rows, good and bad."""
    return [row["id"] for record in records for row in [*record["rows"], *record["errors"]]]
