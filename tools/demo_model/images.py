"""Draws the procedural pictures that train and test the demo model.

Nothing is downloaded: numpy and PIL's own font are enough. The interface is `picture(rng, size)`.
It draws one RGB picture, `[size, size, 3]` u8, from `rng` only, so that a seed determines it.
"""

import colorsys
import math
import string

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont


def picture(rng, size):
    """Returns one picture of a random kind, `[size, size, 3]` u8."""
    kind = rng.choice(len(KINDS), p=WEIGHTS)
    image = KINDS[kind](rng, size)
    return _tone(rng, np.asarray(image, np.float32) / 255)


def dead_leaves(rng, size):
    """Draws opaque leaves that hide each other.

    Their sizes follow a power law, which gives the statistics of natural edges.
    """
    s = 2 * size
    canvas = _fill(rng, s)
    colours = _palette(rng)
    n = int(rng.integers(40, 160))
    smallest = rng.uniform(0.008, 0.04) * s
    radii = np.minimum(smallest / np.sqrt(rng.random(n) + 1e-3), 0.35 * s)
    textures = [_fill(rng, s, colours) for _ in range(4)]
    for radius in radii if rng.random() < 0.5 else sorted(radii, reverse=True):
        outline = _outline(rng, rng.random(2) * s, radius)
        if radius > 0.06 * s and rng.random() < 0.5:
            mask = Image.new("1", (s, s))
            ImageDraw.Draw(mask).polygon(outline, fill=1)
            canvas.paste(textures[rng.integers(4)], (0, 0), mask)
        else:
            ImageDraw.Draw(canvas).polygon(outline, fill=_rgb(_pick(rng, colours)))
    return canvas.resize((size, size), Image.BOX)


def shapes(rng, size):
    """Draws strokes, rings and outlines over a quiet ground."""
    s = 2 * size
    canvas = _gradient(rng, s) if rng.random() < 0.7 else _fill(rng, s)
    draw = ImageDraw.Draw(canvas)
    colours = _palette(rng)
    for _ in range(int(rng.integers(5, 40))):
        colour, width = _rgb(_pick(rng, colours)), int(rng.integers(2, max(3, s // 25)))
        x, y, r = *(rng.random(2) * s), rng.uniform(0.02, 0.3) * s
        match rng.integers(5):
            case 0:
                draw.ellipse((x - r, y - r, x + r, y + r), outline=colour, width=width)
            case 1:
                draw.line([tuple(p) for p in rng.random((2, 2)) * s], fill=colour, width=width)
            case 2:
                draw.line(_curve(rng, s), fill=colour, width=width, joint="curve")
            case 3:
                draw.polygon(_outline(rng, (x, y), r), outline=colour, width=width)
            case _:
                draw.polygon(_outline(rng, (x, y), r), fill=colour)
    return canvas.resize((size, size), Image.BOX)


def text(rng, size):
    """Draws words at several sizes and angles."""
    canvas = (_gradient(rng, size) if rng.random() < 0.6 else _fill(rng, size)).convert("RGB")
    letters = np.array(list(string.ascii_letters + string.digits + ".,:;!?&%()-+"))
    colours = _palette(rng)
    for _ in range(int(rng.integers(3, 14))):
        points = int(np.exp(rng.uniform(np.log(12), np.log(size / 3))))
        font = ImageFont.load_default(2 * points)
        n = max(1, int(rng.integers(2, 3 + size // points)))
        word = "".join(rng.choice(letters, n))
        _, _, w, h = font.getbbox(word)
        mask = Image.new("L", (w + 8, h + 8))
        ImageDraw.Draw(mask).text((4, 4), word, fill=255, font=font)
        angle = 0 if rng.random() < 0.5 else rng.uniform(-90, 90)
        mask = mask.rotate(angle, Image.BICUBIC, expand=True)
        mask = mask.resize((max(1, mask.width // 2), max(1, mask.height // 2)), Image.BOX)
        x, y = rng.uniform(-0.2, 0.8, 2) * size
        canvas.paste(_rgb(_pick(rng, colours)), (int(x), int(y)), mask)
    return canvas


def texture(rng, size):
    """Draws one texture over the whole picture."""
    return _fill(rng, size)


def gradient(rng, size):
    """Draws smooth ramps and glows."""
    return _gradient(rng, size)


def landscape(rng, size):
    """Draws sky, a sun or moon, ridges behind ridges, and sometimes water."""
    s = 2 * size
    sky = _mix_colours(_hsv(rng), _hsv(rng), (np.linspace(0, 1, s) ** rng.uniform(0.5, 2))[:, None])
    image = np.repeat(sky[:, None], s, axis=1)
    y, x = np.mgrid[:s, :s] / s
    cx, cy, r = *rng.uniform(0.1, 0.9, 2) * (1, 0.6), rng.uniform(0.03, 0.12)
    distance = np.hypot(x - cx, y - cy)
    glow = np.exp(-distance / rng.uniform(0.1, 0.5)) * rng.uniform(0.2, 0.7)
    image = image * (1 - glow[..., None]) + glow[..., None] * np.array(_hsv(rng, light=True))
    image[distance < r] = _hsv(rng, light=True)
    if rng.random() < 0.4:
        stars = rng.random((s // 2, s // 2)) > 0.999
        image = np.where(stars.repeat(2, 0).repeat(2, 1)[..., None], 1.0, image)
    near, far = np.array(_hsv(rng)) * rng.uniform(0.1, 0.6), sky[-1]
    n = int(rng.integers(2, 7))
    horizon = rng.uniform(0.35, 0.7)
    for i in range(n):
        t = (i + 1) / n
        ridge = horizon + (1.05 - horizon) * (i / n) ** 1.5 + _ridge(rng, s, rng.uniform(0.5, 1.1)) * 0.12
        colour = _mix_colours(far, near, np.array([t]))
        below = y > ridge[None, :]
        shade = 1 - 0.5 * np.clip((y - ridge[None, :]) / 0.3, 0, 1)
        image = np.where(below[..., None], colour * shade[..., None], image)
    if rng.random() < 0.4:
        shore = int(rng.uniform(0.55, 0.8) * s)
        rows = np.arange(s - shore)
        ripple = (np.sin(rows ** 0.8 * rng.uniform(0.5, 1.5)) * rows * 0.05).astype(int)
        for row in rows:
            image[shore + row] = np.roll(image[max(shore - 1 - row, 0)], ripple[row], 0) * 0.8
    return _image(image).resize((size, size), Image.BOX)


def mixture(rng, size):
    """Draws two pictures of other kinds, joined by a hard or a soft mask."""
    kinds = [dead_leaves, shapes, text, texture, gradient, landscape]
    a, b = (kinds[rng.integers(len(kinds))](rng, size).convert("RGB") for _ in range(2))
    field = _noise(rng, size, rng.uniform(0.8, 1.5))
    mask = np.clip((field - np.median(field)) * np.exp(rng.uniform(0, 5)) + 0.5, 0, 1)
    return Image.composite(a, b, Image.fromarray((mask * 255).astype(np.uint8)))


KINDS = [dead_leaves, shapes, text, texture, gradient, landscape, mixture]
WEIGHTS = [0.28, 0.12, 0.14, 0.10, 0.06, 0.16, 0.14]


def _tone(rng, image):
    """Changes exposure, contrast, tint and saturation, and sometimes blurs.

    Takes `[h, w, 3]` f32 in 0..1 and returns u8.
    """
    image = image ** np.exp(rng.normal(0, 0.25))
    image = (image - 0.5) * rng.uniform(0.6, 1.05) + 0.5 + rng.normal(0, 0.04)
    image = image * (1 + rng.normal(0, 0.04, 3))
    grey = image.mean(-1, keepdims=True)
    image = grey + (image - grey) * (rng.uniform(0, 0.6) if rng.random() < 0.15 else np.exp(rng.normal(0.1, 0.25)))
    image = _image(image)
    if rng.random() < 0.25:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.4, 2)))
    return np.asarray(image)


def _fill(rng, size, colours=None):
    """Draws a texture by one of a few recipes."""
    a, b = (_pick(rng, colours) if colours else _hsv(rng) for _ in range(2))
    y, x = np.mgrid[:size, :size].astype(np.float32)
    angle = rng.uniform(0, math.pi)
    u, v = x * math.cos(angle) + y * math.sin(angle), y * math.cos(angle) - x * math.sin(angle)
    period = size * np.exp(rng.uniform(np.log(0.03), np.log(0.25)))
    match rng.integers(7):
        case 0:
            t = _noise(rng, size, rng.uniform(0.6, 1.6))
        case 1:
            t = 0.5 + 0.5 * np.sin(u / period * 2 * math.pi)
        case 2:
            t = ((u / period).astype(int) % 2).astype(np.float32)
        case 3:
            t = ((np.floor(u / period) + np.floor(v / period)) % 2).astype(np.float32)
        case 4:
            t = 0.5 + 0.5 * np.sin(u / period * 2 * math.pi + 6 * _noise(rng, size, 1.4))
        case 5:
            t = _noise(rng, size, 1.2)
            t = 0.5 + 0.5 * np.cos(t * rng.uniform(6, 30))
        case _:
            return _gradient(rng, size)
    return _image(_mix_colours(a, b, t[..., None]))


def _gradient(rng, size):
    y, x = np.mgrid[:size, :size].astype(np.float32) / size
    image = np.broadcast_to(np.array(_hsv(rng)), (size, size, 3))
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.5:
            angle = rng.uniform(0, 2 * math.pi)
            t = (x - 0.5) * math.cos(angle) + (y - 0.5) * math.sin(angle) + 0.5
        else:
            cx, cy = rng.uniform(-0.2, 1.2, 2)
            t = np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / rng.uniform(0.02, 0.6))
        image = _mix_colours(image, np.array(_hsv(rng)), np.clip(t, 0, 1)[..., None])
    return _image(image)


def _noise(rng, size, roughness):
    """Returns octaves of smooth noise, `[size, size]` f32 spread over 0..1.

    A higher `roughness` gives a smoother field.
    """
    field = np.zeros((size, size), np.float32)
    cells, gain = int(rng.integers(2, 6)), 1.0
    while cells < size / 2:
        grid = Image.fromarray(rng.standard_normal((cells + 1, cells + 1)).astype(np.float32))
        field += gain * np.asarray(grid.resize((size, size), Image.BICUBIC))
        cells, gain = cells * 2, gain / 2 ** roughness
    low, high = np.percentile(field, (1, 99))
    return np.clip((field - low) / (high - low), 0, 1)


def _ridge(rng, size, roughness):
    """Returns a mountain line, `[size]`, about -1..1."""
    line, n, gain = np.zeros(size), int(rng.integers(2, 5)), 1.0
    while n < size / 8:
        line += gain * np.interp(np.linspace(0, n, size), np.arange(n + 1), rng.uniform(-1, 1, n + 1))
        n, gain = n * 2, gain / 2 ** roughness
    return line


def _outline(rng, centre, radius):
    """Returns a disc, a polygon, a ragged polygon or a turned rectangle, as a list of points."""
    x, y = centre
    turn = rng.uniform(0, 2 * math.pi)
    match rng.integers(4):
        case 0:
            n, radii = 48, None
        case 1:
            n, radii = int(rng.integers(3, 9)), None
        case 2:
            n = int(rng.integers(5, 12))
            radii = rng.uniform(0.4, 1, n)
        case _:
            w, h = radius, radius * rng.uniform(0.1, 1)
            c, s = math.cos(turn), math.sin(turn)
            return [(x + u * w * c - v * h * s, y + u * w * s + v * h * c) for u, v in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    radii = np.ones(n) if radii is None else radii
    angles = turn + np.arange(n) * 2 * math.pi / n
    return [(x + radius * r * math.cos(a), y + radius * r * math.sin(a)) for r, a in zip(radii, angles)]


def _curve(rng, size):
    """Returns a cubic Bezier curve as a list of points."""
    p = rng.uniform(-0.1, 1.1, (4, 2)) * size
    t = np.linspace(0, 1, 40)[:, None]
    points = (1 - t) ** 3 * p[0] + 3 * t * (1 - t) ** 2 * p[1] + 3 * t ** 2 * (1 - t) * p[2] + t ** 3 * p[3]
    return [tuple(q) for q in points]


def _palette(rng):
    """Returns a few colours of one hue range, of one saturation range, or of neither."""
    if rng.random() < 0.3:
        return [_hsv(rng) for _ in range(6)]
    hue, spread, saturation = rng.random(), rng.uniform(0.02, 0.3), rng.uniform(0.1, 0.9)
    return [
        colorsys.hsv_to_rgb((hue + rng.normal(0, spread)) % 1, np.clip(saturation + rng.normal(0, 0.2), 0, 1), rng.uniform(0.05, 1))
        for _ in range(8)
    ]


def _pick(rng, colours):
    return colours[rng.integers(len(colours))]


def _hsv(rng, light=False):
    return colorsys.hsv_to_rgb(rng.random(), rng.random() ** 1.3, rng.uniform(0.8, 1) if light else rng.uniform(0.03, 1))


def _mix_colours(a, b, t):
    return np.asarray(a) * (1 - t) + np.asarray(b) * t


def _rgb(colour):
    return tuple(int(255 * c + 0.5) for c in colour)


def _image(array):
    """Converts `[h, w, 3]` in 0..1 to a PIL image."""
    return Image.fromarray((np.clip(array, 0, 1) * 255 + 0.5).astype(np.uint8))
