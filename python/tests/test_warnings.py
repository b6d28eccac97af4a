"""Tests of warnings: what the command line says on stderr about models and images."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DEMO, normal
from numpy.typing import NDArray

import wgvae


def alone(folder: Path, name: str, tmp_path: Path) -> Path:
    """Copies the weights of ``folder`` to a file without a config.json beside it."""
    path = tmp_path / name
    path.write_bytes((folder / "diffusion_pytorch_model.safetensors").read_bytes())
    return path


def test_assumed_groups_are_told_once(sd: Path, tmp_path: Path) -> None:
    model = alone(sd, "model.safetensors", tmp_path)
    with pytest.warns(UserWarning, match="model.safetensors: .*norm_num_groups: 32 are assumed") as caught:
        vae = wgvae.Vae.from_pretrained(model, device="cpu")
    assert [warning.filename for warning in caught] == [__file__]
    with vae, warnings.catch_warnings():
        warnings.simplefilter("error")
        vae.plan(16, 16, unscaled=True)
        vae.decode(normal(1, 1, 4, 2, 2), unscaled=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="are assumed"):
            wgvae.Vae.from_pretrained(model, device="cpu")
        # A config.json tells the groups.
        wgvae.Vae.from_pretrained(sd, device="cpu").close()


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("{", "EOF"),
        ((DEMO / "config.json").read_text(), "it describes another model"),
    ],
)
def test_a_config_that_is_not_used_is_told(sd: Path, tmp_path: Path, config: str, says: str) -> None:
    model = alone(sd, "model.safetensors", tmp_path)
    (tmp_path / "config.json").write_text(config)
    with pytest.warns(UserWarning) as caught:
        wgvae.Vae.from_pretrained(model, family="sd15", device="cpu").close()
    texts = [str(warning.message) for warning in caught]
    assert any("config.json beside it is not used" in text and says in text for text in texts), texts


def test_warnings_come_before_an_error(sd: Path, tmp_path: Path) -> None:
    """A config.json that is not used may be the reason for the error."""
    model = alone(sd, "model.safetensors", tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.warns(UserWarning, match="config.json beside it is not used"), pytest.raises(wgvae.errors.InputError):
        wgvae.Vae.from_pretrained(model, family="flux1", device="cpu")


def test_a_script_shows_its_own_line(sd: Path, tmp_path: Path) -> None:
    model = alone(sd, "model.safetensors", tmp_path)
    script = tmp_path / "script.py"
    script.write_text(f"import wgvae\n\nwgvae.Vae.from_pretrained({str(model)!r}, device='cpu')\n")
    said = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True).stderr
    assert said.startswith(f"{script}:3: UserWarning: ") and said.count("are assumed") == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_values_that_no_picture_has(vae: wgvae.Vae, pictures: NDArray[np.uint8], dtype: type) -> None:
    floats: NDArray[Any] = pictures.transpose(0, 3, 1, 2).astype(dtype)
    with pytest.warns(UserWarning, match=r"images\[0\]: values range from 0 to 255, but floats of pictures have -1 to 1") as caught:
        vae.encode(floats)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="values range"):
            vae.encode(floats)
        vae.encode(pictures)
        # A decode that is not clamped, or a sharp filter, leaves -1 to 1 by less.
        vae.encode(floats / 255 * 3 - 1.5)


def test_values_that_no_frame_has(wan_vae: wgvae.Vae) -> None:
    frames = np.zeros((1, 3, 5, 16, 16), np.float32)
    frames[:, :, 4] = 255
    with pytest.warns(UserWarning, match=r"frames\[1:5\]: values range from 0 to 255, but floats of pictures have -1 to 1"):
        wan_vae.clip().encode(frames)
