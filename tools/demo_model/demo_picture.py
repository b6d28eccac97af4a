"""Draws the picture of the demo, a lake at dusk.

Numpy draws it at four times its size. The interface is `demo_picture()`.
"""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

SIZE, OVERSAMPLE, SEED = 512, 4, 20
HORIZON = 0.665
SKY = [(0.00, 0x1B1B4B), (0.22, 0x3B2A73), (0.40, 0x8A3F86), (0.54, 0xE0687A), (0.63, 0xFBA86B), (0.70, 0xFFDFA0)]
SUN, SUN_RADIUS = (0.62, 0.475), 0.088
# Ridges from far to near: height of the base line, height of the peaks, roughness, colour, and
# colour of the mist at the foot.
RIDGES = [
    (0.565, 0.085, 0.95, 0xC9708F, 0xF3A487),
    (0.605, 0.080, 0.90, 0x94568C, 0xD98088),
    (0.640, 0.060, 0.90, 0x5D4080, 0xA2608A),
    (0.668, 0.040, 0.85, 0x342C62, 0x5A407C),
]


def demo_picture():
    """Returns the picture, `[512, 512, 3]` u8."""
    rng = np.random.default_rng(SEED)
    n = SIZE * OVERSAMPLE
    y, x = (np.mgrid[:n, :n].astype(np.float32) + 0.5) / n

    above = sky(rng, x, y)
    for base, height, roughness, top, foot in RIDGES:
        line = base - height * ridge(rng, n, roughness)
        depth = np.clip((y - line) / 0.10, 0, 1)
        above = over(above, blend(colour(top), colour(foot), depth[..., None]), edge(y - line, n))
    picture = over(above, water(above, x, y), edge(y - HORIZON, n))
    picture = shore(rng, picture, x, y)
    picture = wordmark(picture)
    small = (np.clip(picture, 0, 1) * 255).astype(np.uint8)
    return np.asarray(Image.fromarray(small).resize((SIZE, SIZE), Image.LANCZOS))


def sky(rng, x, y):
    """Draws the sky: a ramp of dusk, a sun with its glow, long clouds and the first stars."""
    stops, colours = zip(*SKY)
    ramp = np.stack([np.interp(y[:, 0], stops, [colour(c)[i] for c in colours]) for i in range(3)], axis=-1)
    image = np.repeat(ramp[:, None], x.shape[1], axis=1).astype(np.float32)
    distance = np.hypot(x - SUN[0], y - SUN[1])
    glow = 0.55 * np.exp(-np.maximum(distance - SUN_RADIUS, 0) / 0.10) + 0.25 * np.exp(-distance / 0.35)
    image = blend(image, colour(0xFFD9A0), np.clip(glow, 0, 1)[..., None])

    for _ in range(16):
        sx, sy, size = rng.random(), rng.uniform(0.02, 0.30), rng.uniform(0.0022, 0.0042)
        star = np.exp(-((x - sx) ** 2 + (y - sy) ** 2) / size**2)
        image = blend(image, colour(0xFFF4E0), np.clip(star * 1.2, 0, 1)[..., None])

    disc = blend(colour(0xFFF6D8), colour(0xFFC37A), np.clip((y - SUN[1]) / SUN_RADIUS * 0.5 + 0.5, 0, 1)[..., None])
    image = over(image, disc, edge(SUN_RADIUS - distance, x.shape[0]))

    for cy, cx, width, height, tint in (
        (0.335, 0.26, 0.30, 0.016, 0xE58A92),
        (0.372, 0.36, 0.24, 0.012, 0xF3A08C),
        (0.405, 0.83, 0.22, 0.013, 0xFFB98C),
        (0.455, 0.13, 0.20, 0.011, 0xFFB68A),
        (0.502, 0.62, 0.17, 0.008, 0xFFA878),
    ):
        wave = 0.010 * np.sin(x * 17 + cy * 90) + 0.004 * np.sin(x * 41 + cy * 50)
        taper = np.clip(1 - ((x - cx) / width) ** 2, 0, 1) ** 0.7
        inside = height * taper - np.abs(y - cy - wave * 0.8)
        image = blend(image, colour(tint), 0.85 * np.clip(inside / 0.006, 0, 1)[..., None])
    return image


def ridge(rng, n, roughness):
    """Returns a mountain line, `[n]`, from 0 to 1: a sum of ragged lines at several scales."""
    line, cells, gain = np.zeros(n), 4, 1.0
    while cells <= 128:
        knots = rng.uniform(0, 1, cells + 2)
        at = np.linspace(0, cells, n) + rng.random() * 0.9
        line += gain * np.interp(at, np.arange(cells + 2), knots)
        cells, gain = cells * 2, gain * 0.5**roughness
    return (line - line.min()) / (line.max() - line.min())


def water(above, x, y):
    """Draws the water: the mirrored scene, darker with depth, with the path of the sun.

    Waves that widen towards the viewer shift it sideways.
    """
    n = x.shape[0]
    depth = np.clip(y - HORIZON, 0, None)
    phase = 90 * np.sqrt(depth + 1e-4)
    sway = (0.002 + 0.035 * depth) * np.sin(phase * 2.1 + 5 * x + 0.8 * np.sin(x * 9))
    rise = 0.006 * np.sin(phase * 2.1 + 1.5 + 5 * x) * np.clip(depth * 8, 0, 1)
    row = np.clip(((HORIZON - depth * 1.25 + rise) * n).astype(int), 0, n - 1)
    column = np.clip(((x + sway) * n).astype(int), 0, n - 1)
    image = above[row, column]
    image = blend(image, colour(0x241F55), np.clip(0.12 + depth * 1.5, 0, 0.72)[..., None])
    path = np.abs(x + sway * 2.2 - SUN[0]) / (0.030 + 0.16 * depth)
    glints = np.exp(-(path**2)) * np.clip(0.55 + 0.75 * np.sin(phase * 2.1 + 5 * x), 0, 1)
    return blend(image, colour(0xFFD596), (0.85 * glints * np.exp(-depth * 2.5))[..., None])


def shore(rng, picture, x, y):
    """Draws a dark bank with pines in the left corner, and a smaller one on the right."""
    n = x.shape[0]
    bank = np.maximum(0.17 * np.clip(1 - x / 0.62, 0, 1) ** 1.3, 0.11 * np.clip((x - 0.74) / 0.26, 0, 1) ** 1.4)
    bank = 1.0 - bank - 0.012 * ridge(rng, n, 0.9)[None, :] * (bank > 0)
    mask = edge(y - bank, n)
    for trunk, top, foot, half in (
        (0.055, 0.33, 0.90, 0.075),
        (0.155, 0.47, 0.92, 0.060),
        (0.235, 0.59, 0.93, 0.048),
        (0.955, 0.54, 0.95, 0.052),
        (0.875, 0.66, 0.96, 0.042),
    ):
        t = np.clip((y - top) / (foot - top), 0, 1)
        tier = (t * 8.0) % 1.0
        reach = half * (0.10 + 0.90 * t) * (0.42 + 0.58 * tier) * np.clip(t * 40, 0, 1)
        lean = np.where(x > trunk, 1.0, 0.93)
        inside = np.where((y > top) & (y < foot + 0.05), reach * lean - np.abs(x - trunk), -1.0)
        mask = np.maximum(mask, edge(inside, n))
    dark = blend(colour(0x1A1740), colour(0x0D0B24), np.clip((y - 0.4) / 0.6, 0, 1)[..., None])
    return over(picture, dark, mask)


def wordmark(picture):
    """Writes "wgvae" in the quiet part of the sky."""
    n = picture.shape[0]
    font = ImageFont.load_default(int(0.150 * n))
    mask = Image.new("L", (n, n))
    ImageDraw.Draw(mask).text((0.5 * n, 0.205 * n), "wgvae", fill=255, font=font, anchor="ms", stroke_width=int(0.004 * n))
    return over(picture, colour(0xFFF1DC), np.asarray(mask, np.float32) / 255)


def colour(code):
    return np.array([code >> 16 & 255, code >> 8 & 255, code & 255], np.float32) / 255


def blend(a, b, t):
    return a * (1 - t) + b * t


def over(picture, layer, mask):
    return blend(picture, layer, mask[..., None])


def edge(inside, n):
    """Returns coverage, 0..1, from a signed distance in units of the picture's side.

    The edge is a ramp of two drawn pixels.
    """
    return np.clip(inside * n / 2 + 0.5, 0, 1)


if __name__ == "__main__":
    Image.fromarray(demo_picture()).save("demo_picture.png")
