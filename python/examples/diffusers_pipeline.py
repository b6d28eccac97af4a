"""Runs a pipeline of diffusers with the VAE of wgvae.

    python diffusers_pipeline.py PIPELINE "a prompt" PICTURE.png

PIPELINE is a folder, or a name on the Hugging Face Hub. While the pipeline works, PICTURE.png is a
preview of the latents. `output_type="latent"` and then `wgvae.Vae.decode` need no swap.
"""

import sys

import diffusers
import wgvae.diffusers

name, prompt, output = sys.argv[1:]
pipe = diffusers.DiffusionPipeline.from_pretrained(name)
print(wgvae.diffusers.swap(pipe, memory_budget="1GiB"))
preview = wgvae.diffusers.preview_callback(pipe, every=5, show=output)
pipe(prompt, num_inference_steps=20, callback_on_step_end=preview).images[0].save(output)
