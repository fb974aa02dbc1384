"""Batch work by Ray Data gives what a direct session gives."""

import logging
import unittest

import numpy as np
import ray
import ray.data

import redfuser
from redfuser import serve
from serve_inference import TOLERANCE

ROWS = 150


class Data(unittest.TestCase):
    server = None

    @classmethod
    def setUpClass(cls):
        ray.init(address="local", num_cpus=2, object_store_memory=200_000_000, include_dashboard=False,
                 logging_level=logging.ERROR, log_to_driver=False)
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        ray.data.DataContext.get_current().enable_progress_bars = False

    @classmethod
    def tearDownClass(cls):
        ray.shutdown()

    def predicted(self, dataset, **arguments):
        model = self.server.folder / "bert" / "model.onnx"
        batches = dataset.map_batches(serve.Predictor, batch_size=32, concurrency=1,
                                      fn_constructor_kwargs={"model": str(model), "device": "cpu", **arguments})
        return sorted(batches.take_all(), key=lambda row: row["row"])

    def test_rows_are_those_of_a_direct_session(self):
        generator = np.random.default_rng(1)
        ids, mask = generator.integers(1, 90, [ROWS, 16]), np.ones([ROWS, 16], np.int32)
        dataset = ray.data.from_items([{"row": i, "input_ids": ids[i], "seen": mask[i]} for i in range(ROWS)])
        rows = self.predicted(dataset, columns={"attention_mask": "seen"})
        self.assertEqual([row["row"] for row in rows], list(range(ROWS)))
        direct = redfuser.Session(self.server.folder / "bert" / "model.onnx", device="cpu")
        wanted = np.array(direct.run(input_ids=ids, attention_mask=mask.astype(np.int64))["out"])
        np.testing.assert_allclose(np.stack([row["out"] for row in rows]), wanted, **TOLERANCE)

    def test_errors_name_the_input(self):
        dataset = ray.data.from_items([{"row": i, "input_ids": np.ones(4, np.int64)} for i in range(2)])
        with self.assertRaisesRegex(Exception, "attention_mask"):
            self.predicted(dataset)
        with self.assertRaisesRegex(redfuser.UserError, "nowhere"):
            serve.Predictor("nowhere.onnx")
        with self.assertRaisesRegex(redfuser.UserError, 'did you mean "attention_mask"'):
            serve.Predictor(self.server.folder / "bert" / "model.onnx", columns={"attention_masks": "seen"})
