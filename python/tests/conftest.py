"""Fixtures of the tests: models, latents, pictures and the command line."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

import wgvae

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "assets" / "demo" / "model"

Floats = NDArray[np.float32]


@pytest.fixture(scope="session")
def cli() -> Callable[..., None]:
    """Returns a function that runs the command line and raises if it fails."""
    program = os.environ.get("WGVAE_CLI", str(ROOT / "target" / "release" / "wgvae"))

    def run(*arguments: object) -> None:
        subprocess.run([program, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)

    return run


@pytest.fixture(scope="session", params=["gpu", "cpu"])
def vae(request: pytest.FixtureRequest) -> Iterator[wgvae.Vae]:
    """The demo's model on each kind of device."""
    with wgvae.Vae.from_pretrained(DEMO, device=request.param) as opened:
        yield opened


@pytest.fixture(scope="session")
def latents() -> Floats:
    """Two latents in the scale of a diffusion model, [2, 16, 6, 5]."""
    return normal(1, 2, 16, 6, 5)


@pytest.fixture(scope="session")
def pictures() -> NDArray[np.uint8]:
    """Two pictures, [2, 48, 40, 3]."""
    return np.random.default_rng(2).integers(0, 256, (2, 48, 40, 3), dtype=np.uint8)


@pytest.fixture(scope="session")
def wan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model for video: Wan 2.1 with a sixth of its channels and random weights."""
    return toy(tmp_path_factory.mktemp("wan"), "wan21.original", "wan21", 96, 16, {"base_dim": 16})


@pytest.fixture(scope="session")
def wan_vae(wan: Path) -> Iterator[wgvae.Vae]:
    with wgvae.Vae.from_pretrained(wan, device="gpu") as opened:
        yield opened


@pytest.fixture(scope="session")
def layered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with opacity: Qwen-Image-Layered with a sixth of its channels and random weights."""
    changes = {"base_dim": 16, "input_channels": 4}
    return toy(tmp_path_factory.mktemp("layered"), "qwen_image.diffusers", "qwen_image", 96, 16, changes)


@pytest.fixture(scope="session", params=["gpu", "cpu"])
def layered_vae(request: pytest.FixtureRequest, layered: Path) -> Iterator[wgvae.Vae]:
    with wgvae.Vae.from_pretrained(layered, device=request.param, precision="f32") as opened:
        yield opened


@pytest.fixture(scope="session")
def sd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The VAE of Stable Diffusion with a quarter of its channels and random weights."""
    channels = {"block_out_channels": [32, 64, 128, 128]}
    return toy(tmp_path_factory.mktemp("sd"), "sd15.diffusers", "sd15", 128, 32, channels)


@pytest.fixture(scope="session")
def seedvr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The video model of SeedVR2 with a quarter of its channels and random weights.

    It has no config.json, as diffusers has no class for it.
    """
    folder = toy(tmp_path_factory.mktemp("seedvr"), "seedvr2.original", "seedvr2", 128, 32, {})
    (folder / "config.json").unlink()
    return folder


@pytest.fixture(scope="session")
def taesd3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that may be TAESD3 or TAEF1, with a quarter of the channels and random weights.

    No file tells which of the two it is.
    """
    channels = {f"{half}_block_out_channels": [16] * 4 for half in ("encoder", "decoder")}
    return toy(tmp_path_factory.mktemp("tiny"), "taef1.diffusers", "taesd3", 64, 16, channels)


@pytest.fixture(scope="session")
def hunyuan_video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The VAE of HunyuanVideo 1.5 with a sixteenth of its channels and random weights."""
    changes = {"latent_channels": 2, "block_out_channels": [8, 16, 32, 64, 64]}
    return toy(tmp_path_factory.mktemp("hunyuan"), "hunyuan_video15.diffusers", "hunyuan_video15", 32, 2, changes)


@pytest.fixture(scope="session")
def taehv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of TAEHV's network with an eighth of the channels and random weights.

    The file does not tell whose latents it takes.
    """
    return small_taehv(tmp_path_factory.mktemp("taehv"), "taew2_1")


@pytest.fixture(scope="session")
def taeh3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny autoencoder of MiniMax-H3 with an eighth of the channels and random weights."""
    return small_taehv(tmp_path_factory.mktemp("taeh3"), "taeh3")


def small_taehv(folder: Path, keys: str) -> Path:
    chance, weights = np.random.default_rng(4), {}
    fixture = ROOT / "tests" / "fixtures" / "keys" / f"{keys}.upstream.json"
    for name, shape in json.loads(fixture.read_text()).items():
        extents = [extent // 64 * 8 if extent % 64 == 0 else extent for extent in shape]
        scale = 1 / np.sqrt(np.prod(extents[1:])) if len(shape) > 1 else 0.1
        weights[name] = (scale * chance.standard_normal(extents)).astype(np.float32)
    save_file(weights, folder / "model.safetensors")
    return folder / "model.safetensors"


def toy(folder: Path, keys: str, config: str, base: int, toy_base: int, changes: Mapping[str, Any]) -> Path:
    """Writes a published model with fewer channels and random weights, and returns its folder.

    The shapes are those of tests/fixtures. ``n * base`` channels become ``n * toy_base``, and images
    get the ``input_channels`` of ``changes``.
    """
    image = {"encoder.conv_in.weight": 1, "decoder.conv_out.weight": 0, "decoder.conv_out.bias": 0}
    fixtures = ROOT / "tests" / "fixtures"
    settings = json.loads((fixtures / "configs" / f"{config}.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, **changes}))
    chance, weights = np.random.default_rng(3), {}
    for name, shape in json.loads((fixtures / "keys" / f"{keys}.json").read_text()).items():
        extents = [extent // base * toy_base if extent % base == 0 else extent for extent in shape]
        if name in image and "input_channels" in changes:
            extents[image[name]] = changes["input_channels"]
        scale = 1 / np.sqrt(np.prod(extents[1:])) if len(shape) > 1 and "gamma" not in name else 0.1
        middle = 1 if "gamma" in name or ("norm" in name and name.endswith("weight")) else 0
        weights[name] = (middle + scale * chance.standard_normal(extents)).astype(np.float32)
    save_file(weights, folder / "diffusion_pytorch_model.safetensors")
    return folder


def normal(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
