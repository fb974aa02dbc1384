"""Writes graphs that are drawn at random as folders for `redfuser-bench --suite e2e --models FOLDER`: cascades over any
axes, products with what surrounds them, attention, moves, convolutions and feed-forward layers.

    python tools/bench/drawn/draw.py FOLDER [--seed 0] [--count 108] [--elements 33554432]

The same seed and limit give the same graphs. times.py times them in PyTorch; compare.py puts both beside each other.
"""

import argparse
import pathlib
import random

import onnx

import attention
import cascades
import convolutions
import maps
import products
from drawing import Sizes

# In turn, as often as they stand here.
KINDS = ([cascades.draw] * 9 + [products.draw] * 5 + [attention.draw] * 5 + [maps.draw] * 5 + [convolutions.draw] * 2 +
         [products.draw_feed_forward])


def draw(folder, seed, count, elements):
    """Names of the graphs in `folder`. No tensor of a graph has many more than `elements` elements."""
    source = random.Random(seed)
    names = []
    for number in range(count):
        while True:
            name, graph, outputs = KINDS[number % len(KINDS)](Sizes(source), source, elements)
            try:
                graph.write(pathlib.Path(folder) / f"{number:03d}_{name}", outputs)
                break
            except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
                continue  # such as a window larger than its image
        names.append(f"{number:03d}_{name}")
    return names


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=108)
    parser.add_argument("--elements", type=int, default=1 << 25)
    arguments = parser.parse_args()
    for each in draw(arguments.folder, arguments.seed, arguments.count, arguments.elements):
        print(each)
