"""What Python adds to the command line, and Ray to a loop: python overhead.py [decode|ray]

Times of one machine, for comparison within one run. No test asserts them.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

import wgvae

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "assets" / "demo" / "model"
REPEATS = 9


def decode(folder: Path) -> None:
    """Decodes to 512x512, by turns, without loading: each side keeps its model for all repeats."""
    latents = np.random.default_rng(0).standard_normal((1, 16, 64, 64)).astype(np.float32)
    np.save(folder / "latents.npy", latents)
    command = [ROOT / "target/release/wgvae", "decode", "--model", MODEL, "--latents", folder / "latents.npy", "-o", folder / "a.png", "--json"]
    ours, theirs = [], []
    with wgvae.Vae.from_pretrained(MODEL) as vae:
        vae.decode(latents)
        for _ in range(3):
            for _ in range(REPEATS):
                start = time.perf_counter()
                vae.decode(latents)
                ours.append(time.perf_counter() - start)
            told = subprocess.run([*command, "--repeat", str(REPEATS + 1)], check=True, capture_output=True).stdout
            theirs += [run["seconds"] for run in json.loads(told)["runs"][1:]]
    print(f"decode 512x512: Python {statistics.median(ours):.4f} s, command line {statistics.median(theirs):.4f} s (median of {len(ours)} each)")


def by_ray(folder: Path) -> None:
    """Encodes 200 pictures of 128x128 in a loop and by one actor, which both read, crop, encode and write."""
    import ray
    from wgvae.ray import encode_dataset
    from wgvae.ray._files import put_latents, sha256
    from wgvae.ray._pictures import opened

    pictures = folder / "pictures"
    pictures.mkdir()
    for number in range(200):
        levels = np.random.default_rng(number).integers(0, 256, (128, 128, 3), dtype=np.uint8)
        Image.fromarray(levels).save(pictures / f"{number:03}.png")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    with wgvae.Vae.from_pretrained(MODEL) as vae:
        vae.encode(np.zeros((128, 128, 3), np.uint8))
        start = time.perf_counter()
        rows = []
        for path in sorted(pictures.iterdir()):
            content = path.read_bytes()
            sha256(content)
            rows.append((path.name, vae.encode(opened(content, None, 8)[0])[0]))
        put_latents(folder / "loop", "all", "parquet", rows)
        loop = (time.perf_counter() - start) / len(rows)
    report = encode_dataset(pictures, folder / "latents", model=MODEL, shard_rows=25)
    (actor,) = report.actors
    inside = actor.seconds / actor.images
    print(f"encode 128x128: loop {loop * 1e3:.1f} ms, by Ray {inside * 1e3:.1f} ms an image in its actor, first load included; job of 200: {report.seconds:.1f} s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        {"decode": decode, "ray": by_ray}[sys.argv[1]](Path(temporary))
