"""Fits the linear map of the page's first preview: from latents of the demo model to colours.

    python linear.py

Draws pictures that the training never saw, encodes them with `wgvae` from the search path, or from
the variable WGVAE, and writes assets/demo/linear.json from the root of the repository: `bias`, and
red, green and blue of each latent channel. A colour is from -1 to 1: bias + factors * latent.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import images
from demo_picture import demo_picture

ROOT = Path(__file__).resolve().parents[2]
SEED, PICTURES, SIDE = 3000, 32, 256
# Pixels of a picture for one latent, in each direction.
FACTOR = 8


def main():
    rng = np.random.default_rng(SEED)
    drawn = [images.picture(rng, SIDE) for _ in range(PICTURES)]
    latents = encode(drawn)
    rows = np.concatenate([row_of_ones(values) for values in latents])
    colours = np.concatenate([means(picture) for picture in drawn])
    solution, *_ = np.linalg.lstsq(rows, colours, rcond=None)
    bias, factors = solution[-1], solution[:-1]
    rounded = {"bias": bias.round(4).tolist(), "factors": factors.round(4).tolist()}
    (ROOT / "assets/demo/linear.json").write_text(json.dumps(rounded) + "\n")
    [demo] = encode([demo_picture()])
    error = ((row_of_ones(demo) @ solution - means(demo_picture())) ** 2).mean()
    print(f"the demo picture, of which it has seen nothing: {10 * np.log10(4 / error):.1f} dB from its means")


def encode(pictures):
    """Returns the latents of pictures, `[16, h, w]` each, in the diffusion model's scale."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "pictures", Path(folder) / "latents"
        source.mkdir()
        for index, picture in enumerate(pictures):
            Image.fromarray(picture).save(source / f"{index:03}.png")
        command = [os.environ.get("WGVAE", "wgvae"), "encode", "--device", "cpu", "--model", ROOT / "assets/demo/model"]
        subprocess.run([*command, "--image", source, "-o", result / "%s.npy"], check=True)
        return [np.load(path).reshape(-1, *np.load(path).shape[-2:]) for path in sorted(result.iterdir())]


def row_of_ones(latents):
    """Returns a row for each latent: its channels, and 1 for the bias."""
    channels = latents.reshape(len(latents), -1).T
    return np.concatenate([channels, np.ones((len(channels), 1))], axis=1)


def means(picture):
    """Returns the mean colour of the pixels of each latent, from -1 to 1."""
    height, width, _ = picture.shape
    squares = picture.reshape(height // FACTOR, FACTOR, width // FACTOR, FACTOR, 3)
    return (squares.mean((1, 3)) / 127.5 - 1).reshape(-1, 3)


if __name__ == "__main__":
    main()
