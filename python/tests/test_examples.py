"""Tests that run the examples."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import DEMO, ROOT, Floats
from numpy.typing import NDArray
from PIL import Image
from toy_unet import toy_unet

import wgvae

EXAMPLES = ROOT / "python" / "examples"


def run(name: str, *arguments: object) -> str:
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_decode(vae: wgvae.Vae, latents: Floats, tmp_path: Path) -> None:
    np.save(tmp_path / "latents.npy", latents)
    run("decode.py", DEMO, tmp_path / "latents.npy", tmp_path / "picture.png")
    assert np.array_equal(np.asarray(Image.open(tmp_path / "picture.png")), vae.decode(latents)[0])


@pytest.mark.extras
def test_folder_to_parquet(pictures: NDArray[np.uint8], tmp_path: Path) -> None:
    pytest.importorskip("ray")
    import pyarrow.parquet as pq

    (tmp_path / "pictures").mkdir()
    Image.fromarray(pictures[0]).save(tmp_path / "pictures" / "one.png")
    (tmp_path / "pictures" / "two.png").write_bytes(b"no picture")
    said = run("folder_to_parquet.py", tmp_path / "pictures", DEMO, tmp_path / "latents", 1)
    assert "1 images" in said and "left out: two.png" in said
    (row,) = pq.read_table(tmp_path / "latents" / "shard-000000.parquet").to_pylist()
    assert (row["id"], row["shape"], row["dtype"]) == ("one.png", [16, 64, 64], "<f2")


@pytest.mark.extras
def test_diffusers_pipeline(sd: Path, tmp_path: Path) -> None:
    """The example runs a whole pipeline: with a text encoder and a tokenizer of single letters."""
    torch = pytest.importorskip("torch")
    diffusers, transformers = pytest.importorskip("diffusers"), pytest.importorskip("transformers")
    torch.manual_seed(0)
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    tokens = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{letter}</w>" for letter in letters)]
    tokenizer = transformers.CLIPTokenizer(vocab={token: index for index, token in enumerate(tokens)}, merges=[], model_max_length=16)
    settings = transformers.CLIPTextConfig(
        vocab_size=len(tokens),
        hidden_size=32,
        intermediate_size=37,
        num_hidden_layers=1,
        num_attention_heads=4,
        max_position_embeddings=16,
        bos_token_id=0,
        eos_token_id=1,
    )
    pipe = diffusers.StableDiffusionPipeline(
        diffusers.AutoencoderKL.from_pretrained(sd),
        transformers.CLIPTextModel(settings),
        tokenizer,
        toy_unet(),
        diffusers.DDIMScheduler(clip_sample=False, steps_offset=1),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipe.save_pretrained(tmp_path / "pipeline")
    run("diffusers_pipeline.py", tmp_path / "pipeline", "a cat", tmp_path / "picture.png")
    with Image.open(tmp_path / "picture.png") as picture:
        assert picture.size == (64, 64) and np.asarray(picture).std() > 5
