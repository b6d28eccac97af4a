"""Decodes latents to PNG: python decode.py MODEL LATENTS.npy PICTURE.png"""

import sys

import numpy as np
from PIL import Image

import wgvae

model, latents, output = sys.argv[1:]
with wgvae.Vae.from_pretrained(model) as vae:
    Image.fromarray(vae.decode(np.load(latents))[0]).save(output)
