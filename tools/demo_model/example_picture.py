"""Draws the picture of the page's second example, a lake between green hills, into assets/demo/landscape.jpg."""

from pathlib import Path

import numpy as np
from PIL import Image

import images

ROOT = Path(__file__).resolve().parents[2]
# The training drew from other seeds.
SEED, WIDTH, HEIGHT = 102, 384, 256


def main():
    rng = np.random.default_rng(SEED)
    drawn = images._tone(rng, np.asarray(images.landscape(rng, WIDTH), np.float32) / 255)
    top = (WIDTH - HEIGHT) // 2
    Image.fromarray(drawn[top : top + HEIGHT]).save(ROOT / "assets/demo/landscape.jpg", quality=92)


if __name__ == "__main__":
    main()
