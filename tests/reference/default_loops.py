"""The default augmentation of one image in NumPy, step by step: the oracle of the batched one."""

import numpy as np


def finish(image, offset, flip, center, *, padding, cutout, mean, std):
    """Pad with black, crop, flip, normalise, cut: uint8 [C,H,W] in, float64 [C,H,W] out."""
    channels, height, width = image.shape
    padded = np.zeros((channels, height + 2 * padding, width + 2 * padding), dtype=np.uint8)
    padded[:, padding : padding + height, padding : padding + width] = image
    top, left = offset
    view = padded[:, top : top + height, left : left + width]
    if flip:
        view = view[:, :, ::-1]
    value = np.empty(view.shape)
    for c in range(channels):
        value[c] = (view[c] / 255.0 - mean[c]) / std[c]
    if cutout:
        y, x = center
        for row in range(height):
            for column in range(width):
                inside_y = y - cutout // 2 <= row < y - cutout // 2 + cutout
                inside_x = x - cutout // 2 <= column < x - cutout // 2 + cutout
                if inside_y and inside_x:
                    value[:, row, column] = 0.0
    return value
