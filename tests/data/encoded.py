#!/usr/bin/python3
"""Writes encoded.hpp: small images as Pillow encodes them, and the pixels that Pillow reads back.

    tests/data/encoded.py >tests/data/encoded.hpp      (Debian: python3-pil, python3-numpy)
"""
import io
import numpy as np
from PIL import Image, __version__

random = np.random.default_rng(1)


def smooth(height, width, channels):
    """Soft colours and a little noise, which every codec has something to do with."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 100 * np.sin(x / (2 + c) + c) * np.cos(y / (3 + c)) + random.integers(-9, 10, (height, width))
              for c in range(channels)]
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8).squeeze()


def entry(name, image, mode, **how):
    file = io.BytesIO()
    image.save(file, **how)
    bytes_ = file.getvalue()
    pixels = np.asarray(Image.open(io.BytesIO(bytes_)).convert(mode))
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    height, width, channels = pixels.shape
    planes = pixels.transpose(2, 0, 1).tobytes()
    lines = lambda data: "\n     ".join('"%s"' % data[i:i + 50].hex() for i in range(0, len(data), 50))
    return "    {\"%s\", {%d, %d, %d},\n     %s,\n     %s}" % (name, channels, height, width, lines(bytes_), lines(planes))


grey, colour = Image.fromarray(smooth(7, 9, 1)), Image.fromarray(smooth(9, 7, 3))
sixteen = Image.fromarray((smooth(3, 5, 1).astype(np.uint16) * 257))  # both bytes equal: 16 bits to 8 loses nothing
alpha = colour.copy()
alpha.putalpha(Image.fromarray(smooth(9, 7, 1)))
large = Image.fromarray(smooth(18, 21, 3))
entries = [
    entry("grey PNG", grey, "L", format="PNG"),
    entry("colour PNG", colour, "RGB", format="PNG"),
    entry("PNG with a palette", colour.quantize(12), "RGB", format="PNG"),
    entry("PNG of one bit", grey.convert("1"), "L", format="PNG"),
    entry("PNG with transparency", alpha, "RGB", format="PNG"),
    entry("grey JPEG", grey, "L", format="JPEG", quality=90),
    entry("colour JPEG", large, "RGB", format="JPEG", quality=80),
    entry("progressive JPEG", large, "RGB", format="JPEG", quality=80, progressive=True, subsampling=0),
    entry("WebP", large, "RGB", format="WEBP", quality=80),
    entry("lossless WebP", colour, "RGB", format="WEBP", lossless=True),
]
file = io.BytesIO()
sixteen.save(file, format="PNG")
planes = (np.asarray(sixteen) >> 8).astype(np.uint8).tobytes()
entries.append("    {\"PNG of 16 bits\", {1, 3, 5},\n     \"%s\",\n     \"%s\"}" % (file.getvalue().hex(), planes.hex()))

print("""// Made by encoded.py with Pillow %s; do not edit.
#pragma once

#include "implicit_diffusion/data/image.hpp"

namespace implicit_diffusion::data {

// clang-format off
struct Encoded {
  const char* name;
  ImageShape shape;
  const char* file;    // hexadecimal
  const char* values;  // of the image, C x H x W
};

inline const Encoded encoded[] = {
%s};
// clang-format on

}  // namespace implicit_diffusion::data""" % (__version__, ",\n".join(entries)))
