"""Runs a pipeline of diffusers with the VAE of wgvae.

    python diffusers_pipeline.py PIPELINE_FOLDER "a prompt" PICTURE.png

The pipeline never loads a VAE of its own. `output_type="latent"` and then `wgvae.Vae.decode` do the
same without the line that sets `pipe.vae`.
"""

import sys

import diffusers
import wgvae.diffusers

folder, prompt, output = sys.argv[1:]
pipe = diffusers.DiffusionPipeline.from_pretrained(folder, vae=None)
pipe.vae = wgvae.diffusers.AutoencoderKL.from_pretrained(folder, memory_budget="1GiB")
pipe(prompt, num_inference_steps=20).images[0].save(output)
