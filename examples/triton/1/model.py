"""A model of Triton's Python backend that runs model.onnx, beside this file, by RedFuser.

The environment of the backend needs the package redfuser (docs/serving.md).
"""

import os
import pathlib

import numpy as np
import triton_python_backend_utils as triton

import redfuser

MODEL = pathlib.Path(__file__).with_name("model.onnx")
TYPES = {"float32": "TYPE_FP32", "float64": "TYPE_FP64", "float16": "TYPE_FP16", "bfloat16": "TYPE_BF16",
         "string": "TYPE_STRING"}  # the others have their own name in capitals


def described(infos, batched):
    """Inputs or outputs as Triton declares them; with batches, without the first dimension."""
    for info in infos:
        dims = [size if isinstance(size, int) else -1 for size in info.shape][1 if batched else 0:]
        yield {"name": info.name, "data_type": TYPES.get(info.dtype, f"TYPE_{info.dtype.upper()}"), "dims": dims}


def together(session, requests):
    """The outputs of each request, which are rows of one run."""
    inputs = {name: np.concatenate([request[name] for request in requests]) for name in requests[0]}
    ends = np.cumsum([len(next(iter(request.values()))) for request in requests])[:-1]
    parts = {name: np.split(tensor.numpy(), ends) for name, tensor in session.run(inputs).items()}
    return [{name: arrays[i] for name, arrays in parts.items()} for i in range(len(requests))]


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        model = redfuser.load(MODEL)
        batched = config.as_dict()["max_batch_size"] > 0
        for info in described(model.inputs, batched):
            config.add_input(info)
        for info in described(model.outputs, batched):
            config.add_output(info)
        return config

    def initialize(self, arguments):
        on_gpu = arguments["model_instance_kind"] == "GPU"
        if on_gpu:  # an instance is a process of its own, and sees one GPU
            visible = [text for text in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if text]
            device = arguments["model_instance_device_id"]
            os.environ["CUDA_VISIBLE_DEVICES"] = visible[int(device)] if visible else device
        self.session = redfuser.Session(redfuser.compile(MODEL), device="cuda" if on_gpu else "cpu")

    def execute(self, requests):
        inputs = [{tensor.name(): tensor.as_numpy() for tensor in request.inputs()} for request in requests]
        try:
            # Triton gives several where the configuration allows batches.
            return [self._response(request, outputs) for request, outputs in
                    zip(requests, together(self.session, inputs) if len(inputs) > 1 else [self._run(inputs[0])])]
        except (redfuser.Error, ValueError):
            return [self._own(request, one) for request, one in zip(requests, inputs)]

    def _run(self, inputs):
        return {name: tensor.numpy() for name, tensor in self.session.run(inputs).items()}

    def _own(self, request, inputs):
        """The response of a run of its own, so that an error is that of the request which caused it."""
        try:
            return self._response(request, self._run(inputs))
        except redfuser.Error as error:
            return triton.InferenceResponse(error=triton.TritonError(str(error)))

    def _response(self, request, outputs):
        wanted = request.requested_output_names()
        return triton.InferenceResponse([triton.Tensor(name, outputs[name]) for name in wanted])
