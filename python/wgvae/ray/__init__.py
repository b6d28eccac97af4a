"""Data sets of pictures to latents and back, on many machines, by Ray Data.

>>> from wgvae.ray import encode_dataset
>>> report = encode_dataset("pictures/", "latents/", model="sd-vae-ft-mse", size=(512, 512), workers=8)    # doctest: +SKIP

Work is cut into shards, known before the first is begun. Each becomes one file, put into its place when it is whole, and then a record that says what is in it:
what is run again, after an actor or a whole job has died, ends as the same files. Bad pictures are rows of the record, with the reason, and stop nothing.
"""

from wgvae.ray._job import ActorReport, Report, decode_dataset, encode_dataset

__all__ = ["ActorReport", "Report", "decode_dataset", "encode_dataset"]
