"""Encodes a folder of pictures to latents in Parquet files, by Ray.

    python folder_to_parquet.py PICTURES MODEL LATENTS WORKERS

On a cluster, count the GPUs of each node as the Ray resource "wgpu":
ray start --resources='{"wgpu": 4}'
"""

import sys

import ray

from wgvae.ray import encode_dataset

pictures, model, latents, workers = sys.argv[1:]
ray.init()
resources = {"wgpu": 1.0} if "wgpu" in ray.cluster_resources() else None
report = encode_dataset(pictures, latents, model=model, size=(512, 512), dtype="float16", workers=int(workers), resources=resources)
print(f"{report.images} images in {report.seconds:.0f} s, {report.resumed} of {report.shards} shards were there; {report.manifest}")
for actor in report.actors:
    print(f"{actor.node[:8]} {actor.adapter}: {actor.images_per_second:.1f} images/s, {actor.gpu_bytes / 2**20:.0f} MiB of GPU memory")
for error in report.errors:
    print(f"left out: {error['id']}: {error['error']}")
