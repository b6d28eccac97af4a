"""Measures what Python costs over the command line, and Ray over a loop.

    python overhead.py [decode|ray]

Compare times within one run on one machine only. No test asserts them.
"""

from __future__ import annotations

import resource
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
REPEATS = 5


def decode(folder: Path) -> None:
    """Prints CPU seconds of a decode to 512x512, without loading the model.

    They are summed over all cores. On a CPU driver they include the GPU work, and a busy machine
    does not change them.
    """
    latents = np.random.default_rng(0).standard_normal((1, 16, 64, 64)).astype(np.float32)
    np.save(folder / "latents.npy", latents)
    command = [ROOT / "target/release/wgvae", "decode", "--model", MODEL, "--latents", folder / "latents.npy", "-o", folder / "a.png"]

    def of_command_line(repeats: int) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, "--repeat", str(repeats)], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    ours, theirs = [], []
    with wgvae.Vae.from_pretrained(MODEL) as vae:
        vae.decode(latents)
        for _ in range(3):
            start = time.process_time()
            for _ in range(REPEATS):
                vae.decode(latents)
            ours.append((time.process_time() - start) / REPEATS)
            theirs.append((of_command_line(REPEATS + 1) - of_command_line(1)) / REPEATS)
    python, cli = min(ours), min(theirs)
    print(f"decode 512x512: Python {python:.3f} s, command line {cli:.3f} s of CPU time: {100 * (python / cli - 1):+.1f} %")


def by_ray(folder: Path) -> None:
    """Prints the time of encoding 200 pictures of 128x128 in a loop and by one actor.

    Both load the model, read, crop, hash, encode and write.
    """
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
    start, rows = time.perf_counter(), []
    with wgvae.Vae.from_pretrained(MODEL) as vae:
        for path in sorted(pictures.iterdir()):
            content = path.read_bytes()
            sha256(content)
            rows.append((path.name, vae.encode(opened(content, None, 8, 3)[0])[0]))
        put_latents(folder / "loop", "all", "parquet", rows)
        loop = (time.perf_counter() - start) / len(rows)
    report = encode_dataset(pictures, folder / "latents", model=MODEL, shard_rows=25)
    (actor,) = report.actors
    inside = actor.seconds / actor.images
    print(f"encode 128x128: loop {loop * 1e3:.1f} ms, by Ray {inside * 1e3:.1f} ms an image in its actor ({100 * (inside / loop - 1):+.1f} %); job of 200: {report.seconds:.1f} s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        {"decode": decode, "ray": by_ray}[sys.argv[1]](Path(temporary))
