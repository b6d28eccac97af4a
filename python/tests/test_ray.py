"""Tests of data sets by Ray, on a cluster of several processes on this machine.

Each picture must be processed exactly once, even if a worker dies.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from conftest import DEMO
from PIL import Image

ray = pytest.importorskip("ray")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.extras

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from ray.exceptions import RayError  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

import wgvae  # noqa: E402
from wgvae.ray import decode_dataset, encode_dataset  # noqa: E402
from wgvae.ray import _actors  # noqa: E402
from wgvae.ray._actors import Encoder, _may_be_on_cores  # noqa: E402
from wgvae.ray._sources import list_shards, pictures_of  # noqa: E402

GPU = {"wgpu": 1.0}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[Any]:
    """A cluster of a head without a GPU and two nodes that claim to have one."""
    from ray.cluster_utils import Cluster

    started = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(2):
        started.add_node(num_cpus=1, resources=GPU)
    started.connect()
    yield started
    ray.shutdown()
    started.shutdown()


def picture(number: int, height: int = 16, width: int = 24) -> Image.Image:
    return Image.fromarray(np.random.default_rng(number).integers(0, 256, (height, width, 3), dtype=np.uint8))


def as_png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with fifty pictures in three folders."""
    for number in range(50):
        path = tmp_path / "pictures" / f"{number % 3}" / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(number).save(path)
    return tmp_path / "pictures"


def rows(output: Path) -> dict[str, Any]:
    """Returns the latents of all shards by id, and checks that no id occurs twice."""
    found: dict[str, Any] = {}
    for path in sorted(output.glob("*.parquet")):
        for item in pq.read_table(path).to_pylist():
            assert item["id"] not in found
            found[item["id"]] = np.frombuffer(item["latents"], item["dtype"]).reshape(item["shape"])
    return found


def test_a_worker_is_killed(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "latents"
    killed: list[int] = []
    ended = threading.Event()

    def kill() -> None:
        """Kills the worker that writes the first record, while most shards are unfinished."""
        while not ended.wait(0.01):
            for record in (output / "records").glob("*.json"):
                killed.append(json.loads(record.read_text())["actor"]["pid"])
                os.kill(killed[0], signal.SIGKILL)
                return

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        report = encode_dataset(folder, output, model=DEMO, shard_rows=2, workers=2, resources=GPU)
    finally:
        ended.set()
        killer.join()
    assert killed and (report.images, report.errors, report.shards) == (50, [], 25)
    found = rows(output)
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.png"))
    assert sorted(found) == names
    assert len(list(output.glob("*.parquet"))) == 25 and not list(output.rglob(".*"))
    assert len(report.actors) >= 2 and sum(actor.images for actor in report.actors) == 50
    assert all(actor.images_per_second > 0 and actor.gpu_bytes > 0 and actor.host_bytes > 0 for actor in report.actors)
    with wgvae.Vae.from_pretrained(DEMO) as vae:
        for name in names[::10]:
            assert np.array_equal(found[name], vae.encode(Image.open(folder / name))[0])


def test_goes_on_where_it_ended(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "latents"
    first = encode_dataset(folder, output, model=DEMO, shard_rows=20, workers=1, resources=GPU)
    assert (first.shards, first.resumed) == (3, 0)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in output.glob("*.parquet")}
    # The state after a job that died before it wrote the record of the second shard.
    (output / "records" / "shard-000001.json").unlink()
    (output / "manifest.json").unlink()
    again = encode_dataset(folder, output, model=DEMO, shard_rows=20, workers=1, resources=GPU)
    assert (again.images, again.resumed) == (50, 2)
    after = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in output.glob("*.parquet")}
    assert {name: content for name, (content, _) in before.items()} == {name: content for name, (content, _) in after.items()}
    assert [name for name in sorted(before) if before[name][1] != after[name][1]] == ["shard-000001.parquet"]
    with pytest.raises(wgvae.errors.InputError, match="settings"):
        encode_dataset(folder, output, model=DEMO, shard_rows=20, dtype="float16", resources=GPU)
    picture(99).save(folder / "new.png")
    with pytest.raises(wgvae.errors.InputError, match="there, shards is 3 with the hash"):
        encode_dataset(folder, output, model=DEMO, shard_rows=20, resources=GPU)
    with pytest.raises(wgvae.errors.InputError, match=f"there, source is {folder}"):
        encode_dataset(folder / "0", output, model=DEMO, shard_rows=20, resources=GPU)


def test_a_source_is_named_from_the_callers_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = encode_dataset(folder.name, "latents", model=DEMO, shard_rows=50, device="cpu", resources=GPU)
    assert (report.images, report.errors) == (50, [])
    monkeypatch.chdir(folder)
    assert encode_dataset(".", "../latents", model=DEMO, shard_rows=50, device="cpu", resources=GPU).resumed == 1


def test_pictures_are_read_in_batches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shard,) = list_shards(str(folder / "0"), 100, latents=False)
    (folder / "0" / shard.members[3]).write_bytes(b"no picture")
    actor = Encoder.__new__(Encoder)
    actor.job = {"size": None, "image_column": "", "id_column": None}
    # A step of two latents, as in FIBO 2.
    actor.vae = SimpleNamespace(facts={"latent_factor": [8, 8], "image_step": [16, 8]}, config={"in_channels": 3})  # type: ignore[assignment]
    monkeypatch.setattr(_actors, "_BATCH_BYTES", 3 * 16 * 16 * 3)
    errors: list[dict[str, Any]] = []
    batches = [list(batch) for batch in actor.batches(shard, errors)]
    assert [len(batch) for batch in batches] == [3, 3, 3, 3, 3, 1]
    read = [row["id"] for batch in batches for row, _ in batch]
    assert read == [name for name in shard.members if name != shard.members[3]]
    assert [error["id"] for error in errors] == [shard.members[3]]
    assert {image.shape for batch in batches for _, image in batch} == {(16, 16, 3)}


def test_a_bad_row_does_not_end_a_decode(tmp_path: Path) -> None:
    latents = np.zeros((16, 2, 3), "<f4")
    names = ["/absolute", "short", "flat", "good", None]
    shapes = [[16, 2, 3], [16, 2, 3], [96], [16, 2, 3], [16, 2, 3]]
    stored = [latents.tobytes(), b"1234", latents.tobytes(), latents.tobytes(), latents.tobytes()]
    (tmp_path / "latents").mkdir()
    table = pa.table({"id": names, "latents": stored, "shape": shapes, "dtype": ["<f4"] * 5})
    pq.write_table(table, tmp_path / "latents" / "all.parquet")
    report = decode_dataset(tmp_path / "latents", tmp_path / "pictures", model=DEMO, format="folder", device="cpu", resources=GPU)
    assert [path.name for path in (tmp_path / "pictures").glob("*.png")] == ["good.png"]
    assert sorted(error["id"] for error in report.errors) == ["/absolute", "None", "flat", "short"]
    # A table has ids of any form.
    report = decode_dataset(tmp_path / "latents", tmp_path / "table", model=DEMO, format="parquet", device="cpu", resources=GPU)
    assert sorted(error["id"] for error in report.errors) == ["None", "flat", "short"]


@pytest.mark.parametrize("device", ["gpu", "cpu"])
def test_actors_take_the_device(folder: Path, tmp_path: Path, device: Literal["gpu", "cpu"]) -> None:
    report = encode_dataset(folder, tmp_path / "latents", model=DEMO, shard_rows=50, device=device, resources=GPU)
    assert report.images == 50
    assert [actor.adapter.startswith("CPU (1 thread,") for actor in report.actors] == [device == "cpu"]


def test_bad_pictures_are_set_aside(folder: Path, tmp_path: Path) -> None:
    (folder / "text.png").write_bytes(b"no picture")
    (folder / "half.png").write_bytes((folder / "0" / "00.png").read_bytes()[:200])
    (folder / "empty.jpg").write_bytes(b"")
    picture(1, 4, 4).save(folder / "small.png")
    picture(2, 17, 31).convert("RGBA").save(folder / "odd.png")
    greys = np.arange(16 * 16, dtype=np.uint16).reshape(16, 16)
    Image.fromarray(greys * 257).save(folder / "grey16.png")
    Image.fromarray(greys.astype(np.uint8)).save(folder / "grey8.png")
    Image.fromarray(greys.astype(np.int32)).save(folder / "grey32.tiff")
    report = encode_dataset(folder, tmp_path / "latents", model=DEMO, workers=2, shard_rows=30, resources=GPU)
    assert sorted(error["id"] for error in report.errors) == ["empty.jpg", "grey32.tiff", "half.png", "small.png", "text.png"]
    assert all(error["error"] for error in report.errors) and report.images == 53
    latents = rows(tmp_path / "latents")
    assert np.array_equal(latents["grey16.png"], latents["grey8.png"])
    manifest = json.loads(Path(report.manifest).read_text())
    (odd,) = [image for image in manifest["images"] if image["id"] == "odd.png"]
    assert odd["mode"] == "RGBA" and odd["size"] == [17, 31] and odd["crop"] == [0, 3, 16, 24] and len(odd["sha256"]) == 64
    assert list(manifest["model"]["files"]) == ["diffusion_pytorch_model.safetensors"]
    assert latents["odd.png"].shape == (16, 2, 3)


def test_what_is_wrong_for_all_pictures_ends_the_job(folder: Path, tmp_path: Path, taehv: Path) -> None:
    with pytest.raises(wgvae.errors.InputError, match="^family of .*: expected a family or a config.json"):
        encode_dataset(folder, tmp_path / "latents", model=taehv, resources=GPU)
    with pytest.raises(wgvae.errors.InputError, match=r"^size: expected height and width, multiples of 8, found \(60, 64\)$"):
        encode_dataset(folder, tmp_path / "latents", model=DEMO, size=(60, 64), resources=GPU)
    # Only an actor finds that it has too little.
    with pytest.raises(RayError, match="memory budget"):
        encode_dataset(folder, tmp_path / "latents", model=DEMO, memory_budget="1KiB", resources=GPU)
    assert not (tmp_path / "latents" / "records").exists()
    # The same folder with better arguments.
    assert encode_dataset(folder, tmp_path / "latents", model=DEMO, size=(16, 16), resources=GPU).images == 50


def test_formats_and_back(tmp_path: Path) -> None:
    images = {f"{number}.png": as_png(picture(number, 40, 40)) for number in range(6)}
    (tmp_path / "tar").mkdir()
    for part in range(2):
        with tarfile.open(tmp_path / "tar" / f"{part}.tar", "w") as archive:
            for name, content in list(images.items())[part * 3 : part * 3 + 3]:
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    (tmp_path / "table").mkdir()
    table = pa.table({"name": list(images), "picture": [{"bytes": content, "path": None} for content in images.values()]})
    pq.write_table(table, tmp_path / "table" / "all.parquet", row_group_size=4)

    of_tar = encode_dataset(tmp_path / "tar", tmp_path / "a", model=DEMO, size=(32, 24), seed=3, resources=GPU)
    options: dict[str, Any] = {"size": (32, 24), "seed": 3, "image_column": "picture", "id_column": "name", "format": "safetensors", "resources": GPU}
    of_table = encode_dataset(tmp_path / "table", tmp_path / "b", model=DEMO, **options)
    assert (of_tar.images, of_tar.shards, of_table.images, of_table.shards) == (6, 2, 6, 2)
    tensors = {name: value for path in (tmp_path / "b").glob("*.safetensors") for name, value in load_file(path).items()}
    found = rows(tmp_path / "a")
    # Samples do not depend on the format of the source.
    assert all(np.array_equal(found[f"{number // 3}.tar/{number}.png"], tensors[f"{number}.png"]) for number in range(6))
    assert found["0.tar/0.png"].shape == (16, 4, 3)

    decode_dataset(tmp_path / "b", tmp_path / "c", model=DEMO, format="folder", resources=GPU)
    decode_dataset(tmp_path / "a", tmp_path / "d", model=DEMO, format="webdataset", workers=2, resources=GPU)
    with wgvae.Vae.from_pretrained(DEMO) as vae:
        expected = vae.decode(tensors["4.png"])[0]
    assert np.array_equal(np.asarray(Image.open(tmp_path / "c" / "4.png.png")), expected)
    shards = list_shards(str(tmp_path / "d"), 1, latents=False)
    again = {name: read for shard in shards for name, read in pictures_of(shard, "", None)}
    png = again["shard-000001.tar/1.tar/4.png.png"]
    assert isinstance(png, bytes) and np.array_equal(np.asarray(Image.open(io.BytesIO(png))), expected)


def test_opacity(tmp_path: Path, layered: Path) -> None:
    (tmp_path / "pictures").mkdir()
    levels = np.random.default_rng(5).integers(0, 256, (16, 24, 4), dtype=np.uint8)
    Image.fromarray(levels).save(tmp_path / "pictures" / "clear.png")
    picture(6).save(tmp_path / "pictures" / "opaque.png")
    options: dict[str, Any] = {"model": layered, "device": "cpu", "resources": GPU}
    encoded = encode_dataset(tmp_path / "pictures", tmp_path / "latents", format="safetensors", **options)
    assert (encoded.images, encoded.errors) == (2, [])
    latents = load_file(tmp_path / "latents" / "shard-000000.safetensors")
    decode_dataset(tmp_path / "latents", tmp_path / "back", format="folder", **options)
    with wgvae.Vae.from_pretrained(layered, device="cpu") as vae:
        assert np.array_equal(latents["clear.png"], vae.encode(levels)[0])
        assert np.array_equal(latents["opaque.png"], vae.encode(picture(6))[0])
        with Image.open(tmp_path / "back" / "clear.png.png") as back:
            assert back.mode == "RGBA" and np.array_equal(np.asarray(back), vae.decode(latents["clear.png"])[0])


def test_bad_sources(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "no rows").mkdir()
    pq.ParquetWriter(tmp_path / "no rows" / "a.parquet", pa.schema([("image", pa.binary())])).close()
    with pytest.raises(wgvae.errors.InputError, match="source: expected at least one row, found none in"):
        encode_dataset(tmp_path / "no rows", tmp_path / "out", model=DEMO)
    for source, says in ((tmp_path / "nothing", "nothing"), (tmp_path / "empty", "none")):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(wgvae.errors.InputError, match=says):
            encode_dataset(source, tmp_path / "out", model=DEMO)
    bad: list[dict[str, Any]] = [{"workers": 0}, {"shard_rows": 0}, {"format": "zip"}, {"dtype": "int8"}]
    bad += [{"memory_budget": limit} for limit in ("much", 1.5, -1)] + [{"size": size} for size in (16, (16,), (16, 8.0), (True, 8))]
    bad += [{"device": "tpu"}, {"precision": "f8"}, {"seed": 1.5}, {"adapter": -1}, {"workers": True}, {"image_column": 3}, {"family": 3}]
    for options in bad:
        with pytest.raises(wgvae.errors.InputError, match=f"^{next(iter(options))}"):
            encode_dataset(folder, tmp_path / "out", model=DEMO, **options)
    with pytest.raises(wgvae.errors.InputError, match="that all nodes see"):
        encode_dataset(folder, tmp_path / "out", model="hf:someone/a-vae")
    with pytest.raises(wgvae.errors.FileError):
        encode_dataset(folder, tmp_path / "out", model=tmp_path / "no model")
    assert not (tmp_path / "out").exists()


def test_tables_are_checked_before_the_work(tmp_path: Path) -> None:
    content = as_png(picture(1))
    (tmp_path / "pictures").mkdir()
    table = pa.table({"name": ["a", "b", "a"], "image": [content] * 3})
    pq.write_table(table, tmp_path / "pictures" / "all.parquet", row_group_size=2)

    def says(message: str, call: Any, **options: Any) -> None:
        with pytest.raises(wgvae.errors.InputError, match=message):
            call(tmp_path / "pictures", tmp_path / "out", model=DEMO, resources=GPU, **options)
        assert not (tmp_path / "out").exists()

    says("^ids: expected each once in the source, found 'a' several times", encode_dataset, id_column="name")
    says("^source: expected the columns picture in all.parquet, found name, image", encode_dataset, image_column="picture")
    says("^source: expected the columns id, latents, shape, dtype in", decode_dataset)
    seed: Any = np.int64(3)
    assert encode_dataset(tmp_path / "pictures", tmp_path / "out", model=DEMO, resources=GPU, seed=seed).images == 3


def test_pictures_of_one_name_keep_their_latents(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        for number in range(2):
            entry = tarfile.TarInfo("one.png")
            entry.size = len(as_png(picture(number)))
            archive.addfile(entry, io.BytesIO(as_png(picture(number))))
    with pytest.raises(wgvae.errors.InputError, match="^ids: expected each once"):
        encode_dataset(tmp_path / "all.tar", tmp_path / "out", model=DEMO, resources=GPU)
    stored = pq.read_table(tmp_path / "out" / "shard-000000.parquet")["latents"].to_pylist()
    assert len(set(stored)) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text on this system")
def test_a_name_that_is_no_text_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    for name in (b"bad\xff.png", b"good.png"):
        picture(1).save(tmp_path / "pictures" / os.fsdecode(name))
    report = encode_dataset(tmp_path / "pictures", tmp_path / "out", model=DEMO, resources=GPU)
    assert report.images == 1 and [error["id"] for error in report.errors] == ["bad\\udcff.png"]
    assert "UnicodeEncodeError" in report.errors[0]["error"]


def test_cores_get_the_number_of_threads_unless_an_argument_asks_for_a_gpu() -> None:
    def found(device: str, precision: str, adapter: str | None = None) -> bool:
        return _may_be_on_cores({"device": device, "precision": precision}, adapter)

    assert all(found("auto", precision) for precision in ("auto", "f32", "f16"))
    assert found("cpu", "f16")
    assert not any([found("auto", "fast"), found("gpu", "f16"), found("auto", "f16", "NVIDIA")])
