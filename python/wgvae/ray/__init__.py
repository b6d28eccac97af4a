"""Encodes data sets of pictures to latents and decodes them, on many machines, by Ray Data.

>>> from wgvae.ray import encode_dataset
>>> report = encode_dataset(                                # doctest: +SKIP
...     "pictures/", "latents/", model="sd-vae-ft-mse", size=(512, 512), workers=8
... )

The driver lists all shards before the first starts. An actor writes one file for each shard,
moves it into place when it is complete, and then writes a record of its content. So a job that runs
again, after an actor or the whole job has died, ends with the same files. Bad pictures become rows
of the record with the reason, and do not stop the job.
"""

from wgvae.ray._job import ActorReport, Report, decode_dataset, encode_dataset

__all__ = ["ActorReport", "Report", "decode_dataset", "encode_dataset"]
