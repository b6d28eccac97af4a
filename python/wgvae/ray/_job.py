"""The driver of a job.

It lists the shards, skips finished ones, lets Ray spread the rest, and writes the manifest.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import ray
import ray.data

import wgvae
from wgvae import _native
from wgvae._arrays import wrong
from wgvae._options import Device, Precision, adapter_name, budget, number, word
from wgvae._options import seed as stated_seed
from wgvae.ray._actors import Actor, Decoder, Encoder, ids
from wgvae.ray._files import IMAGES, LATENTS, put_json, sha256, sha256_of_file
from wgvae.ray._sources import COLUMNS, Shard, check_tables, list_shards


@dataclass(frozen=True)
class ActorReport:
    """The work of one actor. Actors of earlier runs of the job are included."""

    actor: str
    node: str
    pid: int
    adapter: str
    images: int
    seconds: float
    """Seconds of reading, computing and writing."""
    gpu_seconds: float
    """Seconds in :meth:`wgvae.Vae.encode` or ``decode``. The model has been loaded before."""
    gpu_bytes: int
    """Peak of the device's memory, in bytes."""
    host_bytes: int
    """Peak of the process's memory, in bytes."""

    @property
    def images_per_second(self) -> float:
        return self.images / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Report:
    """The result of a job."""

    images: int
    """Number of images in shards."""
    errors: list[dict[str, str]]
    """``id`` and ``error`` of each image that was left out."""
    shards: int
    resumed: int
    """Number of shards that an earlier run had finished."""
    seconds: float
    actors: list[ActorReport]
    manifest: str
    """Path of the manifest: this report, hashes of the model and each image, and each crop."""


def encode_dataset(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str],
    size: tuple[int, int] | None = None,
    format: Literal["parquet", "safetensors"] = "parquet",
    dtype: Literal["float32", "float16"] = "float32",
    seed: int | None = None,
    image_column: str = "image",
    id_column: str | None = None,
    shard_rows: int = 128,
    workers: int = 1,
    resources: dict[str, float] | None = None,
    num_cpus: float = 1,
    device: Literal["auto", "gpu", "cpu"] = "auto",
    adapter: str | int | None = None,
    precision: Literal["auto", "f16", "f32", "fast"] = "auto",
    family: str | None = None,
    border: Literal["zeros", "reflect", "replicate", "circular"] | None = None,
    memory_budget: int | str | None = None,
) -> Report:
    """Encodes all pictures of ``source`` to shards of latents in the folder ``output``.

    Each picture is encoded exactly once. A job that runs again continues after its finished shards.
    ``source``, ``output`` and ``model`` are on storage that all nodes see.

    Parameters
    ----------
    source
        A folder of pictures, of .parquet files or of .tar files (WebDataset), or one such file.
    output
        Folder for shards, ``records/`` and, at the end, ``manifest.json``.
    model
        A file or folder. A name of the Hub is an error: each node would download it, perhaps in
        different versions.
    size
        Height and width in pixels. Pictures are resized to cover it, then cropped to it. None
        crops each picture to the largest size that fits whole latents.
    format
        "parquet" with the columns id, latents (little-endian bytes), shape and dtype, or
        "safetensors" with one tensor for each id.
    dtype
        Type of the latents. "float16" rounds them.
    seed
        Seed for samples, combined with each picture's hash. None takes the mode of the
        distribution.
    image_column, id_column
        Columns of .parquet files. An image is bytes or Hugging Face's struct. Without
        ``id_column``, an id is made of the file, the row group and the row's number.
    shard_rows
        Pictures in a shard, if ``source`` is a folder of pictures.
    workers
        Number of actors: one for each GPU, or as many as the nodes' cores allow.
    resources
        Ray resources of an actor, such as ``{"wgpu": 1}`` on nodes started with
        ``--resources='{"wgpu": 4}'``.
    num_cpus
        CPU cores of an actor, and its number of threads if it computes on them.
    device
        See :meth:`wgvae.Vae.from_pretrained`.
    adapter
        Adapter of all actors. None gives each actor a discrete GPU of its node for itself.
    precision, family, border
        See :meth:`wgvae.Vae.from_pretrained`.
    memory_budget
        See :meth:`wgvae.Vae.decode`.

    Raises
    ------
    InputError
        If an argument is wrong, ``source`` has no pictures, or ``output`` is of another job.
    ray.exceptions.RayError
        If an actor fails for another reason than a bad picture.
    """
    settings = {
        "dtype": word("dtype", dtype, Literal["float32", "float16"]),
        "seed": stated_seed(seed),
        "image_column": word("image_column", image_column),
        "id_column": None if id_column is None else word("id_column", id_column),
    }
    word("format", format, LATENTS)
    job = _job(output, model, format, device, num_cpus, adapter, precision, family, border, memory_budget) | settings
    workers, rows = number("workers", workers, "actors"), number("shard_rows", shard_rows, "pictures")
    shards = list_shards(os.fspath(source), rows, latents=False)
    check_tables(shards, [image_column] if id_column is None else [image_column, id_column], id_column)
    known = _inspected(job)
    return _run(Encoder, job | {"size": _size(size, known["image_step"])}, known, shards, workers, num_cpus, resources)


def decode_dataset(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str],
    format: Literal["webdataset", "parquet", "folder"] = "webdataset",
    workers: int = 1,
    resources: dict[str, float] | None = None,
    num_cpus: float = 1,
    device: Literal["auto", "gpu", "cpu"] = "auto",
    adapter: str | int | None = None,
    precision: Literal["auto", "f16", "f32", "fast"] = "auto",
    family: str | None = None,
    border: Literal["zeros", "reflect", "replicate", "circular"] | None = None,
    memory_budget: int | str | None = None,
) -> Report:
    """Decodes all latents of ``source`` to PNG files in the folder ``output``.

    ``source`` has shards as :func:`encode_dataset` writes them. ``format`` is "webdataset" for
    .tar, "parquet", or "folder" for single files. Other arguments and errors are those of
    :func:`encode_dataset`.
    """
    word("format", format, IMAGES)
    job = _job(output, model, format, device, num_cpus, adapter, precision, family, border, memory_budget)
    workers = number("workers", workers, "actors")
    shards = list_shards(os.fspath(source), 1, latents=True)
    check_tables(shards, COLUMNS, "id")
    return _run(Decoder, job, _inspected(job), shards, workers, num_cpus, resources)


def _size(size: tuple[int, int] | None, step: int) -> list[int] | None:
    """Returns height and width, which are multiples of ``step``."""
    if size is None:
        return None
    expected = f"height and width, multiples of {step}"
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise wrong("size", expected, repr(size))
    sides = [number("size", side, "pixels a side") for side in size]
    if any(side % step for side in sides):
        raise wrong("size", expected, repr(size))
    return sides


def _job(
    output: str | os.PathLike[str],
    model: str | os.PathLike[str],
    format: str,
    device: str,
    num_cpus: float,
    adapter: str | int | None,
    precision: str,
    family: str | None,
    border: str | None,
    memory_budget: int | str | None,
) -> dict[str, Any]:
    if os.fspath(model).startswith("hf:"):
        raise wrong("model", "a file or folder that all nodes see (huggingface_hub.snapshot_download makes one)", repr(model))
    return {
        "output": str(Path(output).absolute()),
        "model": str(Path(model).absolute()),
        "format": format,
        "device": word("device", device, Device),
        "threads": max(1, int(num_cpus)),
        "adapter": adapter_name(adapter),
        "precision": word("precision", precision, Precision),
        "family": None if family is None else word("family", family),
        "border": None if border is None else word("border", border),
        "memory_budget": budget(memory_budget),
    }


def _inspected(job: dict[str, Any]) -> dict[str, Any]:
    """Reads the files of the model without a device, as the driver may have no GPU.

    Raises
    ------
    InputError
        If it is no VAE, or the scale of its latents is unknown.
    """
    return json.loads(_native.inspect(job["model"], job["family"], job["border"]))  # type: ignore[no-any-return]


def _run(
    actor: type[Actor],
    job: dict[str, Any],
    known: dict[str, Any],
    shards: list[Shard],
    workers: int,
    num_cpus: float,
    resources: dict[str, float] | None,
) -> Report:
    start = time.perf_counter()
    output = Path(job["output"])
    begun = _begun(actor, job, known, shards)
    _settle(output / "job.json", begun)
    records = output / "records"
    left = [shard for shard in shards if not (records / f"{shard.name}.json").is_file()]
    if left:
        pool = ray.data.ActorPoolStrategy(size=min(workers, len(left)))
        items = [{"shard": shard.to_json()} for shard in left]
        done = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
            actor,
            batch_size=1,
            batch_format="numpy",
            compute=pool,
            fn_constructor_kwargs={"job": job},
            num_cpus=num_cpus,
            resources=resources,
        )
        for _ in done.iter_rows():
            pass
    written = [json.loads((records / f"{shard.name}.json").read_text()) for shard in shards]
    # Only the entries of .tar files are not compared before.
    twice = [name for name, count in Counter(ids(written)).items() if count > 1]
    if twice:
        raise wrong("ids", "each once in the source", f"{twice[0]!r} several times")
    report = Report(
        images=sum(len(record["rows"]) for record in written),
        errors=[error for record in written for error in record["errors"]],
        shards=len(shards),
        resumed=len(shards) - len(left),
        seconds=time.perf_counter() - start,
        actors=_actors(written),
        manifest=str(output / "manifest.json"),
    )
    rows = [{**row, "shard": record["shard"]} for record in written for row in record["rows"]]
    put_json(output / "manifest.json", {**begun, "report": asdict(report), "images": rows})
    return report


def _begun(actor: type[Actor], job: dict[str, Any], known: dict[str, Any], shards: list[Shard]) -> dict[str, Any]:
    """Returns everything that the results of a job depend on, files as hashes."""
    files = {Path(name).name: sha256_of_file(name) for name in known["files"]}
    # Place and memory do not change the results on one kind of device.
    kept = {name: value for name, value in job.items() if name not in ("output", "model", "threads", "adapter", "memory_budget")}
    listed = sha256("\n".join(shard.to_json() for shard in shards).encode())
    model = {"files": files, "config": known["config"]}
    return {"wgvae": wgvae.__version__, "task": actor.__name__, "model": model, "settings": kept, "source": shards[0].root, "shards": f"{len(shards)} with the hash {listed}"}


def _settle(path: Path, begun: dict[str, Any]) -> None:
    """Writes the job's description to ``path``, or checks that the one there is the same.

    Raises
    ------
    InputError
        If the folder belongs to another job.
    """
    # A job that ended before its first shard leaves nothing to go on with.
    if not path.is_file() or not any((path.parent / "records").glob("*.json")):
        put_json(path, begun)
        return
    before = json.loads(path.read_text())
    for name, value in json.loads(json.dumps(begun)).items():
        if before.get(name) != value:
            raise wrong(f"output {path.parent}", f"an empty folder, or one of the same job (there, {name} is {before.get(name)})", str(value))


def _actors(records: list[dict[str, Any]]) -> list[ActorReport]:
    """Returns the report of each actor over all its shards."""
    by_actor: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        by_actor.setdefault(record["actor"]["actor"], []).append(record["actor"])
    sums, tops = ("images", "seconds", "gpu_seconds"), ("gpu_bytes", "host_bytes")
    return [
        ActorReport(**{**parts[0], **{name: sum(part[name] for part in parts) for name in sums}, **{name: max(part[name] for part in parts) for name in tops}})
        for parts in by_actor.values()
    ]
