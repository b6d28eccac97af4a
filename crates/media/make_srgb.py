"""Makes src/image_file/srgb.icc: the sRGB profile that Little CMS builds in, without its date.

    pip install pillow==13.0.0
    python make_srgb.py
"""

from pathlib import Path

from PIL import ImageCms

profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
# Year, month, day, hour, minute and second: 1 January 2000.
profile[24:36] = b"\x07\xd0\x00\x01\x00\x01" + bytes(6)
# Little CMS stores its checksum of the date, too, or none.
profile[84:100] = bytes(16)
(Path(__file__).parent / "src" / "image_file" / "srgb.icc").write_bytes(profile)
print(len(profile), "bytes")
