"""What the tables of com.microsoft operators are made of."""

import dataclasses
from typing import Callable, Optional

import numpy as np

RANDOM = np.random.default_rng(0)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


# Weights of int8 have seven bits: two of their products with uint8 fit in 16 bits, to which ONNX
# Runtime saturates their sum on processors without dot products of bytes.
WEIGHTS = (-64, 64)


def integers(dtype, low, high, *shape):
    return RANDOM.integers(low, high, shape).astype(dtype)


def packed(*shape):
    return integers(np.uint8, 0, 256, *shape)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def last(*positions):
    return np.array(positions, np.int32)


@dataclasses.dataclass
class Case:
    """A node, and what its outputs are compared with: ONNX Runtime's of the same node.

    inputs: None is an absent one. outputs: "" is an absent one.
    """

    op: str
    inputs: list
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: list = dataclasses.field(default_factory=lambda: ["y"])
    compared: Optional[list] = None  # of the outputs; None: all
    types: dict = dataclasses.field(default_factory=dict)  # of outputs, where ORT cannot infer them
    constants: tuple = ()  # numbers of the inputs that are initializers
    fused: str = ""  # class of a region that must be found
    like: Optional["Case"] = None  # a node that ONNX Runtime runs instead, where it cannot run this one
    expected: Optional[Callable] = None  # the outputs from the inputs, where it has no such node
    refused: str = ""  # what the error says; nothing is compared
    domain: str = "com.microsoft"
    opset: int = 20
    tolerance: float = 1e-4
