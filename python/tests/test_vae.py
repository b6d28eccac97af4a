"""Tests of inputs, outputs, progress, Ctrl-C, threads and closing."""

from __future__ import annotations

import _thread
import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DEMO, Floats, normal
from numpy.typing import NDArray
from PIL import Image

import wgvae
from wgvae import Progress, errors
from wgvae._arrays import Picture


class Dlpack:
    """An object that shares its memory by DLPack only."""

    def __init__(self, array: Floats) -> None:
        self.array = array

    def __dlpack__(self, **keywords: object) -> object:
        return self.array.__dlpack__(**keywords)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class ByArray:
    """An object that converts itself by ``__array__`` only."""

    def __init__(self, array: Floats) -> None:
        self.array = array

    def __array__(self, *args: object, **keywords: object) -> Floats:
        return self.array


def test_config_has_the_numbers_of_the_file(vae: wgvae.Vae) -> None:
    settings = json.loads((DEMO / "config.json").read_text())
    assert settings["scaling_factor"] != float(np.float32(settings["scaling_factor"]))
    for name in ("scaling_factor", "shift_factor", "latent_channels"):
        assert vae.config[name] == settings[name]


def test_config_of_a_family_has_its_published_numbers(sd: Path, tmp_path: Path) -> None:
    weights = tmp_path / "weights.safetensors"
    weights.write_bytes((sd / "diffusion_pytorch_model.safetensors").read_bytes())
    with wgvae.Vae.from_pretrained(weights, family="sd15") as opened:
        assert (opened.config["scaling_factor"], opened.config["shift_factor"]) == (0.18215, None)


def test_whatever_has_latents(vae: wgvae.Vae, latents: Floats) -> None:
    expected = vae.decode(latents)
    backwards = np.ascontiguousarray(latents[::-1, :, ::-1, ::-1])[::-1, :, ::-1, ::-1]
    columns = np.asfortranarray(latents)
    foreign = latents.astype(">f4")
    for given in (Dlpack(latents), ByArray(latents), backwards, columns, foreign):
        assert np.array_equal(vae.decode(given), expected)
    assert np.array_equal(vae.decode(latents[1]), expected[1:])
    frozen = latents.copy()
    frozen.flags.writeable = False
    assert np.array_equal(vae.decode(frozen), expected)


def test_whatever_has_images(vae: wgvae.Vae, pictures: NDArray[np.uint8]) -> None:
    expected = vae.encode(pictures)
    opened = [Image.fromarray(picture) for picture in pictures]
    assert np.array_equal(vae.encode(opened), expected)
    assert np.array_equal(vae.encode(opened[0]), expected[:1])
    assert np.array_equal(vae.encode(list(pictures)), expected)
    grey = Image.fromarray(pictures[0, :, :, 0])
    assert np.array_equal(vae.encode(grey), vae.encode(np.repeat(pictures[0, :, :, :1], 3, axis=2)))


def test_samples(vae: wgvae.Vae, pictures: NDArray[np.uint8]) -> None:
    seven = vae.encode(pictures, sample=True, seed=7)
    assert np.array_equal(seven, vae.encode(pictures, sample=True, seed=7))
    assert not np.array_equal(seven, vae.encode(pictures, sample=True, seed=8))
    assert not np.array_equal(vae.encode(pictures, sample=True), vae.encode(pictures, sample=True))


def test_plan_is_kept(latents: Floats) -> None:
    with wgvae.Vae.from_pretrained(DEMO) as vae:
        plan = vae.plan(48, 40)
        vae.decode(latents)
        assert vae.memory()[1] == plan.peak_bytes
        assert f"peak {plan.peak_bytes / 2**20:.1f} MiB" in str(plan)
    with wgvae.Vae.from_pretrained(DEMO) as vae:
        plan = vae.plan(48, 40, "12MiB")
        assert plan.peak_bytes <= 12 << 20
        vae.decode(latents, memory_budget="12MiB")
        assert vae.memory()[1] == plan.peak_bytes


def test_a_budget_that_cannot_be_kept(vae: wgvae.Vae) -> None:
    with pytest.raises(errors.BudgetError) as caught:
        vae.plan(512, 512, memory_budget="1MiB")
    assert (caught.value.budget, caught.value.width, caught.value.height) == (1 << 20, 512, 512)
    assert vae.plan(512, 512, memory_budget=caught.value.smallest).peak_bytes <= caught.value.smallest


def test_progress(vae: wgvae.Vae, latents: Floats) -> None:
    told: list[Progress] = []
    vae.decode(latents, progress=told.append)
    assert {one.image for one in told} == {0, 1} and {one.images for one in told} == {2}
    fractions = [one.fraction for one in told]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0


def test_a_callback_may_raise(vae: wgvae.Vae, latents: Floats) -> None:
    expected = vae.decode(latents)

    def stop(progress: Progress) -> None:
        raise KeyError(progress.images)

    with pytest.raises(KeyError, match="2"):
        vae.decode(latents, progress=stop)
    assert np.array_equal(vae.decode(latents), expected)


def test_a_callback_may_not_decode(vae: wgvae.Vae, latents: Floats) -> None:
    with pytest.raises(errors.InputError, match="callback"):
        vae.decode(latents, progress=lambda _: vae.decode(latents))
    # Calls that need no turn on the GPU are allowed.
    vae.decode(latents, progress=lambda _: vae.plan(48, 40))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A handler for Ctrl-C.

    Programs that were started in the background ignore Ctrl-C, and so do their children.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c(vae: wgvae.Vae, latents: Floats) -> None:
    expected = vae.decode(latents)
    with pytest.raises(KeyboardInterrupt):
        vae.decode(latents, progress=lambda _: signal.raise_signal(signal.SIGINT))
    assert np.array_equal(vae.decode(latents), expected)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_while_another_thread_decodes(vae: wgvae.Vae, latents: Floats) -> None:
    inside, go_on = threading.Event(), threading.Event()
    results: list[NDArray[np.uint8]] = []

    def hold(progress: Progress) -> None:
        inside.set()
        go_on.wait()

    other = threading.Thread(target=lambda: results.append(vae.decode(latents, progress=hold)))
    other.start()
    inside.wait()
    try:
        with pytest.raises(KeyboardInterrupt):
            threading.Timer(0.2, _thread.interrupt_main).start()
            # The main thread gets the signal while it waits for its turn: the other thread does
            # not end before.
            vae.decode(latents)
    finally:
        go_on.set()
        other.join()
    assert np.array_equal(results[0], vae.decode(latents))


def test_threads_share(vae: wgvae.Vae, latents: Floats, pictures: NDArray[np.uint8]) -> None:
    decoded, encoded = vae.decode(latents), vae.encode(pictures)
    same: list[bool] = []

    def work() -> None:
        for _ in range(3):
            same.append(np.array_equal(vae.decode(latents), decoded))
            same.append(np.array_equal(vae.encode(pictures), encoded))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * 24


def test_others_run_meanwhile(vae: wgvae.Vae) -> None:
    """Another Python thread runs in the middle of a decode that has no callback."""
    ended, ticks = threading.Event(), []

    def tick() -> None:
        while not ended.wait(0.001):
            ticks.append(time.monotonic())

    latents = normal(9, 1, 16, 40, 40)
    other = threading.Thread(target=tick)
    other.start()
    start = time.monotonic()
    vae.decode(latents)
    end = time.monotonic()
    ended.set()
    other.join()
    quarter = (end - start) / 4
    assert any(start + quarter < tick < end - quarter for tick in ticks)


@pytest.mark.extras
def test_a_bar_of_tqdm(vae: wgvae.Vae, latents: Floats, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    vae.decode(latents, progress=True)
    assert "decode: 100%" in capfd.readouterr().err


def test_closed(latents: Floats) -> None:
    vae = wgvae.Vae.from_pretrained(DEMO)
    vae.decode(latents)
    vae.close()
    vae.close()
    assert vae.closed
    for call in (lambda: vae.decode(latents), lambda: vae.plan(48, 40), vae.memory):
        with pytest.raises(errors.InputError, match="closed"):
            call()


def test_no_pickles(vae: wgvae.Vae) -> None:
    for call in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="from_pretrained"):
            call(vae)


def test_errors_pickle(vae: wgvae.Vae) -> None:
    with pytest.raises(errors.BudgetError) as caught:
        vae.plan(512, 512, memory_budget=1000)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is errors.BudgetError and str(again) == str(caught.value) and again.smallest == caught.value.smallest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_of_a_fork() -> None:
    script = f"""
import os, sys, wgvae, numpy as np
vae = wgvae.Vae.from_pretrained({str(DEMO)!r})
vae.decode(np.zeros((1, 16, 4, 4), np.float32))
child = os.fork()
if child == 0:
    try:
        vae.decode(np.zeros((1, 16, 4, 4), np.float32))
    except wgvae.errors.InputError as error:
        assert "fork" in str(error), error
        del vae
        sys.exit(7)
    sys.exit(1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 7, status
vae.decode(np.zeros((1, 16, 4, 4), np.float32))
with vae:
    child = os.fork()
    if child == 0:
        assert vae.closed
        sys.exit(7)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7, status
    assert not vae.closed
assert vae.closed
"""
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", script], check=True)


def test_adapters() -> None:
    found = wgvae.adapters()
    assert [adapter.index for adapter in found] == list(range(len(found)))
    with wgvae.Vae.from_pretrained(DEMO, adapter=0) as vae:
        assert vae.adapter == found[0].name


def test_cores_need_no_driver(latents: Floats, vae: wgvae.Vae) -> None:
    script = f"""
import numpy, sys, wgvae
with wgvae.Vae.from_pretrained({str(DEMO)!r}, threads=2) as vae:
    assert vae.device == "cpu" and "2 threads" in vae.adapter, vae
    latents = numpy.load(sys.argv[1])
    plan = vae.plan(48, 40)
    numpy.save(sys.argv[2], vae.decode(latents, output="float"))
    assert vae.memory()[1] == plan.peak_bytes, (vae.memory(), plan)
try:
    wgvae.Vae.from_pretrained({str(DEMO)!r}, device="gpu")
except wgvae.errors.NoAdapterError:
    sys.exit(0)
sys.exit("a GPU without a driver")
"""
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/latents.npy", f"{folder}/image.npy"]
        np.save(paths[0], latents)
        none = {"VK_DRIVER_FILES": "/nonexistent/driver.json", "VK_ICD_FILENAMES": "/nonexistent/driver.json"}
        subprocess.run([sys.executable, "-c", script, *paths], check=True, env={**os.environ, **none})
        image = np.load(paths[1])
    assert np.abs(image - vae.decode(latents, output="float")).max() < 1e-4


def test_an_option_for_shaders_takes_an_adapter_or_is_refused() -> None:
    with wgvae.Vae.from_pretrained(DEMO, precision="fast") as vae:
        assert (vae.device, vae.facts["storage"]) == ("gpu", "fast_f16")
    for keywords, word in (({"precision": "fast"}, "fast"), ({"adapter": 0}, "adapter")):
        with pytest.raises(errors.InputError, match=f"device cpu.*{word}"):
            wgvae.Vae.from_pretrained(DEMO, device="cpu", **keywords)
    for keywords in ({"device": "gpu"}, {"adapter": 0}, {"precision": "fast"}):
        with pytest.raises(errors.InputError, match="threads"):
            wgvae.Vae.from_pretrained(DEMO, threads=2, **keywords)


def test_precisions(latents: Floats) -> None:
    decoded = {}
    for precision in ("f32", "f16", "fast"):
        with wgvae.Vae.from_pretrained(DEMO, device="gpu", precision=precision) as vae:
            decoded[precision] = vae.decode(latents, output="float")
    with wgvae.Vae.from_pretrained(DEMO, device="cpu", precision="f16") as vae:
        decoded["cores"] = vae.decode(latents, output="float")
    exact = decoded["f32"]
    errors = {name: np.abs(image - exact).max() / np.abs(exact).max() for name, image in decoded.items()}
    assert 0 < errors["f16"] < 0.01, errors
    assert 0 < errors["cores"] < 0.01, errors
    assert 0 < errors["fast"] < 0.03, errors
    assert not np.array_equal(decoded["fast"], decoded["f16"])


def test_a_clip_of_floats_takes_its_size_once(wan_vae: wgvae.Vae) -> None:
    tracemalloc.start()
    frames = wan_vae.clip().decode(normal(1, 1, 16, 3, 8, 8), output="float")
    assert frames.flags.c_contiguous and tracemalloc.get_traced_memory()[1] < 1.5 * frames.nbytes
    tracemalloc.reset_peak()
    wan_vae.clip().encode(frames)
    assert tracemalloc.get_traced_memory()[1] < 1.5 * frames.nbytes
    tracemalloc.stop()


def test_numbers_of_numpy(vae: wgvae.Vae, latents: Floats, pictures: NDArray[np.uint8]) -> None:
    side: Any = np.int32(24)
    options: dict[str, Any] = {"sample": np.True_, "seed": np.uint64(7), "memory_budget": np.int64(64 << 20)}
    assert np.array_equal(vae.decode(latents, max_side=side), vae.decode(latents, max_side=24))
    assert np.array_equal(vae.encode(pictures, **options), vae.encode(pictures, sample=True, seed=7))
    assert vae.plan(side, side) == vae.plan(24, 24)


def test_types_are_there_at_run_time(vae: wgvae.Vae) -> None:
    for call in (wgvae.Vae.from_pretrained, wgvae.Vae.encode, wgvae.Vae.decode, wgvae.Clip.encode, wgvae.Clip.decode):
        assert typing.get_type_hints(call)
    assert isinstance(Image.new("RGB", (8, 8)), Picture)
    assert hash(vae.plan(48, 40)) == hash(vae.plan(48, 40))
    assert len({*wgvae.adapters(), *wgvae.adapters()}) == len(wgvae.adapters())
    vae.facts["config"]["latent_channels"] = vae.facts["image_step"][0] = 0
    vae.config["block_out_channels"].clear()
    assert vae.config["latent_channels"] == 16 and vae.facts["image_step"][0] and vae.config["block_out_channels"]


def test_an_image_model_has_no_clips(vae: wgvae.Vae) -> None:
    with pytest.raises(errors.InputError, match="video"):
        vae.clip()


def test_images_and_clips_in_turn(wan: Path) -> None:
    with wgvae.Vae.from_pretrained(wan) as vae:
        image, clip = normal(6, 1, 16, 2, 3), normal(7, 1, 16, 2, 2, 3)
        first = vae.decode(image), vae.clip().decode(clip)
        second = vae.decode(image), vae.clip().decode(clip)
        for one, other in zip(first, second, strict=True):
            assert np.array_equal(one, other)


def test_plans_count_the_latents_of_a_clip_whose_attention_keeps_them(hunyuan_video: Path) -> None:
    latents = normal(8, 1, 2, 3, 2, 3)
    with wgvae.Vae.from_pretrained(hunyuan_video, device="gpu", precision="f32") as vae:
        clip = vae.clip()
        peaks = [clip.plan(32, 48, output="float", clip_latents=count).peak_bytes for count in (3, 33, 100)]
        assert peaks[0] < peaks[1] < peaks[2]
        assert peaks[1] == clip.plan(32, 48, output="float").peak_bytes
        frames = clip.decode(latents, output="float")
        assert frames.shape == (1, 3, 9, 32, 48)
        assert vae.memory()[1] == peaks[0]
        assert clip.encode(np.clip(frames, -1, 1)).shape == latents.shape
    with wgvae.Vae.from_pretrained(hunyuan_video, device="cpu") as vae:
        close = vae.clip().decode(latents, output="float")
        assert np.abs(close - frames).max() < 1e-4 * np.abs(frames).max()


def test_preview_rate(taehv: Path, wan: Path) -> None:
    latents = normal(9, 1, 16, 3, 2, 3)
    with wgvae.Vae.from_pretrained(taehv, family="taew2_1", preview_rate=True) as vae:
        clip = vae.clip()
        frames = clip.decode(latents)
        assert frames.shape == (3, 16, 24, 3) and clip.temporal_factor == 1
        macs = clip.plan(16, 24).macs
        assert vae.facts["can_decode"] and not vae.facts["can_encode"]
        with pytest.raises(errors.TensorError, match="encoder"):
            clip.encode(frames)
    with wgvae.Vae.from_pretrained(taehv, family="taew2_1") as vae:
        assert macs < vae.clip().plan(16, 24).macs
    with pytest.raises(errors.InputError, match="preview rate: expected a model of TAEHV's family, found AutoencoderKLWan"):
        wgvae.Vae.from_pretrained(wan, preview_rate=True)


def test_tiles(vae: wgvae.Vae) -> None:
    z = normal(3, 1, vae.config["latent_channels"], 24, 16)
    whole = vae.decode(z)
    tiles: dict[str, Any] = {"tile_size": 96, "tile_overlap": 32}
    found = {rule: vae.decode(z, tiling=rule, **tiles) for rule in ("blend", "cosine")}
    found["estimate"] = vae.decode(z, tiling="estimate")
    assert np.array_equal(found["estimate"], whole), "no larger than the small copy"
    assert all(one.shape == whole.shape for one in found.values())
    assert not any(np.array_equal(found[rule], whole) for rule in ("blend", "cosine"))
    assert not np.array_equal(found["blend"], found["cosine"])
    side_by_side = vae.decode(z, tiling="blend", tile_size=96, tile_overlap=0)
    assert np.array_equal(side_by_side[:, :96, :96], vae.decode(z[..., :12, :12]))
    plan, all_at_once = vae.plan(192, 128, tiling="blend", **tiles), vae.plan(192, 128)
    assert plan.peak_bytes < all_at_once.peak_bytes and plan.macs > all_at_once.macs
    assert vae.plan(192, 128, max_side=64).peak_bytes == vae.plan(64, 48).peak_bytes
    for arguments, message in (
        ({"tiling": "linear"}, "tiling: expected one of exact, blend, cosine, estimate, found .linear"),
        ({"tile_size": 96}, "tile_size: expected no value, unless tiling is blend or cosine, found 96 with tiling exact"),
        ({"tiling": "blend", "tile_size": 7}, "tile_size: expected a multiple of 8 pixels"),
        ({"tiling": "blend", "tile_size": -8}, "tile_size: expected 1 to"),
        ({"tiling": "blend", "tile_overlap": -1}, "tile_overlap: expected 0 to"),
        ({"tiling": "blend", "tile_size": 96, "tile_overlap": 96}, "tile_overlap: expected less than"),
    ):
        for call in (vae.decode, lambda _, **given: vae.plan(192, 128, **given)):
            with pytest.raises(errors.InputError, match=message):
                call(z, **arguments)
    with pytest.raises(errors.InputError, match='tiling: expected "exact" for an encode'):
        vae.plan(192, 128, encode=True, tiling="blend")
    of_decodes: list[dict[str, Any]] = [{"max_side": 64}, {"tile_size": 64}, {"tile_overlap": 64}]
    for given in of_decodes:
        with pytest.raises(errors.InputError, match=f"{next(iter(given))}: expected None for an encode, found 64"):
            vae.plan(192, 128, encode=True, **given)


def test_border(sd: Path, wan: Path) -> None:
    latents = normal(3, 1, 4, 4, 3)
    pictures = {}
    for border in (None, "zeros", "reflect", "replicate", "circular"):
        with wgvae.Vae.from_pretrained(sd, family="sd15", device="cpu", border=border) as vae:
            pictures[border] = vae.decode(latents, output="float")
            assert vae.config["padding_mode"] == border or border is None
    assert np.array_equal(pictures[None], pictures["zeros"])
    assert not np.array_equal(pictures["reflect"], pictures["zeros"])
    assert not np.array_equal(pictures["replicate"], pictures["reflect"])
    assert not np.array_equal(pictures["circular"], pictures["replicate"])
    with wgvae.Vae.from_pretrained(sd, family="sd15", device="cpu", border="reflect") as vae:
        with pytest.raises(errors.InputError, match="expected at least 2x2 latents"):
            vae.decode(latents[:, :, :1])
    with pytest.raises(errors.InputError, match="border: expected one of zeros, reflect, replicate"):
        wgvae.Vae.from_pretrained(sd, family="sd15", border="mirror")  # type: ignore[arg-type]
    with pytest.raises(errors.InputError, match="border: expected a word"):
        wgvae.Vae.from_pretrained(sd, family="sd15", border=1)  # type: ignore[arg-type]
    with pytest.raises(errors.InputError, match="border: expected a model of AutoencoderKL's kind, found AutoencoderKLWan"):
        wgvae.Vae.from_pretrained(wan, border="reflect")
