"""Typed code of a user, for types_test.py. It is not run."""

from __future__ import annotations

import numpy as np
import onnx

import redfuser


def as_onnxruntime(path: str) -> list[float]:
    options = redfuser.SessionOptions()
    options.intra_op_num_threads = 2
    options.graph_optimization_level = redfuser.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = redfuser.InferenceSession(path, sess_options=options, providers=["CPUExecutionProvider"])
    options.add_initializer("w", np.zeros(3, np.float32))
    options.add_free_dimension_override_by_name("n", 3)
    shape: list[int | str | None] = session.get_inputs()[0].shape
    names: dict[str, str] = session.get_modelmeta().custom_metadata_map
    run = redfuser.RunOptions()
    run.terminate = False
    y = session.run(None, {"x": np.zeros(len(shape) + len(names), np.float32)}, run)[0]
    binding = session.io_binding()
    binding.bind_cpu_input("x", y)
    binding.bind_output("y", "cpu", element_type=np.float32, shape=(3,), buffer_ptr=0)
    return [float(value) for value in y]


def own(path: str) -> np.ndarray:
    program = redfuser.compile(redfuser.load(path))
    session = redfuser.Session(program, device="cpu")
    outputs: dict[str, redfuser.Tensor] = session.run(x=np.zeros(3, np.float32))
    y = outputs["y"]
    sizes: tuple[int, ...] = y.shape
    memoryview(y)
    np.from_dlpack(y)
    session.run({"x": y}, into={"y": np.zeros(sizes, np.float32)})
    report: dict[str, object] = program.explain("sm_90a")
    model: onnx.ModelProto = redfuser.optimize(path)
    print(report, model.ir_version)
    return np.asarray(y)


def tokens(path: str) -> list[int]:
    generator = redfuser.Generator(redfuser.Session(path), capacity=64)
    whole: redfuser.Generation = generator.generate([[1, 2]], max_tokens=3, on_token=lambda row, token: token != 2)
    try:
        return [token for row, token in generator.stream([1, 2], max_tokens=3) if row == 0]
    except redfuser.UserError:
        return whole.tokens[0]
