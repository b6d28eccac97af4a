"""A pipeline of diffusers whose VAE is wgvae's: python diffusers_pipeline.py PIPELINE_FOLDER "a prompt" PICTURE.png

The pipeline never loads a VAE of its own. Without the line about `pipe.vae`, `output_type="latent"` and `wgvae.Vae.decode` do the same.
"""

import sys

import diffusers
import wgvae.diffusers

folder, prompt, output = sys.argv[1:]
pipe = diffusers.DiffusionPipeline.from_pretrained(folder, vae=None)
pipe.vae = wgvae.diffusers.AutoencoderKL.from_pretrained(folder, memory_budget="1GiB")
pipe(prompt, num_inference_steps=20).images[0].save(output)
