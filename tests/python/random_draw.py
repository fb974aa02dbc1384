"""What random graphs are made of: seeded arrays of every type, shape and edge, and a graph that grows node by node."""

import dataclasses

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSET = 23
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SIGNED = [np.dtype(t) for t in ("int8", "int16", "int32", "int64")]
UNSIGNED = [np.dtype(t) for t in ("uint8", "uint16", "uint32", "uint64")]
INTEGERS = SIGNED + UNSIGNED
FLOATS = [np.dtype(t) for t in ("float32", "float32", "float32", "float64", "float16")] + [BFLOAT16]
NUMBERS = FLOATS + INTEGERS
BOOL = [np.dtype(bool)]
SIZES = (1, 2, 3, 4, 5, 7)


def is_wild(array):
    with np.errstate(all="ignore"):
        return array.dtype in FLOATS and not np.all(np.abs(array.astype(np.float64)) < 1e4)


# Of the sum of an element and the median of its tensor. 16-bit types also round between the nodes of a graph in the peers.
TOLERANCE = {np.dtype("float64"): 1e-9, np.dtype("float32"): 1e-4, np.dtype("float16"): 2e-2, BFLOAT16: 1e-1}


def difference(ours, theirs):
    """How two tensors differ, or None."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype}{list(ours.shape)}, not {theirs.dtype}{list(theirs.shape)}"
    if theirs.dtype not in TOLERANCE:
        wrong = np.asarray(ours != theirs)
    else:
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        with np.errstate(all="ignore"):
            scale = np.median(np.abs(b[finite])) if finite.any() else 0.0
            far = np.abs(a - b) > TOLERANCE[theirs.dtype] * (np.abs(b) + scale)
            wrong = np.where(finite, far, ~((np.isnan(a) & np.isnan(b)) | (a == b)))
    if not wrong.any():
        return None
    at = tuple(np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {wrong.size} differ: {ours[at]!r}, not {theirs[at]!r} at {[int(i) for i in at]}"


@dataclasses.dataclass
class Value:
    """A tensor of the graph by what its first peer computes."""

    name: str
    array: np.ndarray

    @property
    def rank(self):
        return self.array.ndim

    @property
    def shape(self):
        return self.array.shape


class Rejected(Exception):
    """A node that no peer computes."""


def reference(model, feed):
    with np.errstate(all="ignore"):
        return [np.asarray(result) for result in ReferenceEvaluator(model).run(None, feed)]


def onnx_runtime(model, feed):
    def given(array):
        array = np.asarray(array, order="C")
        if array.dtype == BFLOAT16:
            return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, helper.np_dtype_to_tensor_dtype(array.dtype))
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    outputs = session.run_with_ort_values([output.name for output in session.get_outputs()], {name: given(array) for name, array in feed.items()})
    return [output.numpy() for output in outputs]


PEERS = {"reference": reference, "ONNX Runtime": onnx_runtime}


def evaluate(model, feed):
    """The peers' results by name of the peer; a peer that fails is left out."""
    results = {}
    for name, peer in PEERS.items():
        try:
            results[name] = peer(model, feed)
        except Exception:
            continue
    return results


class Graph:
    """Grows by nodes that the peers compute at once: later nodes see real shapes and types, and read what all peers agree on."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.values, self.nodes, self.inputs, self.weights, self.expected = [], [], [], [], {}
        self.names = 0
        self.empty = self.rng.random() < 0.12
        self.wild = self.rng.random() < 0.4

    def chance(self, probability):
        return self.rng.random() < probability

    def one_of(self, items):
        return items[self.rng.integers(len(items))]

    def shape(self, rank=None):
        rank = int(self.rng.integers(0, 6)) if rank is None else rank
        sizes = [int(self.one_of(SIZES if rank < 4 else SIZES[:4])) for _ in range(rank)]
        if self.empty and rank and self.chance(0.4):
            sizes[self.rng.integers(rank)] = 0
        return tuple(sizes)

    def array(self, dtype, shape, edges=True):
        """Random numbers; of a wild graph, edges of the type among them."""
        wild = self.wild and edges
        if dtype == np.dtype(bool):
            return self.rng.random(shape) < 0.5
        if dtype in INTEGERS:
            limits = np.iinfo(dtype)
            drawn = self.rng.integers(max(limits.min, -9), 10, shape).astype(dtype)
            edges = np.array([limits.min, limits.max, limits.min + 1, limits.max - 1, limits.max // 2 + 1, 0], dtype)
            return np.where(self.rng.random(shape) < 0.3, self.one_of_each(edges, shape), drawn) if wild else drawn
        drawn = (self.rng.integers(-24, 25, shape) / 8 if self.chance(0.4) else self.rng.normal(0, 1.5, shape))
        drawn = np.asarray(drawn).astype(dtype)
        if not wild or dtype.itemsize == 2:
            return drawn
        limits = np.finfo(dtype)
        edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, limits.max, -limits.max, limits.tiny], dtype)
        return np.where(self.rng.random(shape) < 0.12, self.one_of_each(edges, shape), drawn).astype(dtype)

    def one_of_each(self, items, shape):
        return items[self.rng.integers(len(items), size=shape)]

    def fresh(self, array, known=False):
        """A new input, or a constant."""
        value = Value(f"x{self.names}", np.asarray(array))
        self.names += 1
        self.values.append(value)
        (self.weights if known else self.inputs).append(value)
        return value

    def known(self, items, dtype=np.int64):
        return self.fresh(np.asarray(items, dtype), known=True)

    def value(self, dtypes=NUMBERS, shape=None, rank=None, calm=False, new=False):
        """A value of the graph of one of the types (and this shape or rank), else a new one. A calm one is finite and small."""
        ranks = None if rank is None else (rank,) if isinstance(rank, int) else tuple(rank)
        if not new and self.chance(0.75):
            found = [v for v in self.values if v.array.dtype in dtypes and (shape is None or v.shape == tuple(shape))
                     and (ranks is None or v.rank in ranks) and not (calm and is_wild(v.array))]
            if found:
                return self.one_of(found[-4:])
        if shape is None:
            shape = self.shape(None if ranks is None else int(self.one_of(ranks)))
        return self.fresh(self.array(self.one_of(list(dtypes)), shape, not calm), known=self.chance(0.2))

    def add(self, op, inputs, outputs=1, **attributes):
        names = [f"y{self.names + index}" for index in range(outputs)]
        self.names += outputs
        node = helper.make_node(op, [v.name if v is not None else "" for v in inputs], names, name=f"{op}_{len(self.nodes)}",
                                **{key: item for key, item in attributes.items() if not isinstance(item, list) or item})
        feed = {v.name: v.array for v in inputs if v is not None}
        model = model_of([node], feed, names)
        types = [helper.tensor_dtype_to_np_dtype(output.type.tensor_type.elem_type) for output in model.graph.output]
        results = {peer: arrays for peer, arrays in evaluate(model, feed).items() if [a.dtype for a in arrays] == types}
        if not results or any(a.dtype.kind in "OUS" or a.size > 4000 for arrays in results.values() for a in arrays):
            raise Rejected(op)
        self.nodes.append(node)
        for index, name in enumerate(names):
            self.expected[name] = found = {peer: arrays[index] for peer, arrays in results.items()}
            first, *others = found.values()
            if not any(difference(other, first) for other in others):
                self.values.append(Value(name, first))

    def model(self):
        """The model, and the inputs to run it with; its outputs are what no node reads, and one value more."""
        read = {name for node in self.nodes for name in node.input}
        given = [name for name in self.expected if name not in read or self.chance(0.15)]
        weights = [numpy_helper.from_array(v.array, v.name) for v in self.weights if v.name in read]
        feed = {v.name: v.array for v in self.inputs if v.name in read}
        return model_of(self.nodes, feed, given, weights), feed


def model_of(nodes, feed, outputs, weights=()):
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in feed.items()]
    graph = helper.make_graph(nodes, "drawn", infos, [onnx.ValueInfoProto(name=name) for name in outputs], list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    try:
        inferred = {v.name: v for v in onnx.shape_inference.infer_shapes(model, data_prop=True).graph.output}
    except Exception as error:
        raise Rejected(str(error)) from error
    for output in model.graph.output:
        output.CopyFrom(inferred[output.name])
        if output.type.tensor_type.elem_type == 0:
            raise Rejected("an output without a type")
    return model
