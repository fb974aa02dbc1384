"""Claims that a GPU computes, on the driver of tests/fake_cuda: its memory is the host's, and kernels do not run.

    REDFUSER_CUDA_LIBRARIES=FAKES python gpu_test.py LIBRARY
"""

import unittest

import numpy as np
from provider import session_of

GRAPH = """g (float[n, 8] x) => (float[n, 8] y, float[n] s) {
             y = Exp(x) axes = Constant<value_ints = [1]>() s = ReduceSum<keepdims = 0>(y, axes) }"""
X = np.ones((4, 8), np.float32)


class Gpu(unittest.TestCase):
    def test_a_run_copies_its_tensors(self):
        session = session_of(GRAPH, {"device": "cuda", "kernel_cache": "off"}, whole=True)
        for rows in (4, 2, 4):
            self.assertEqual([value.shape for value in session.run(None, {"x": X[:rows]})], [(rows, 8), (rows,)])

    def test_a_session_that_has_no_room_on_the_gpu_is_refused(self):
        with self.assertRaisesRegex(Exception, "limit"):
            session_of(GRAPH, {"device": "cuda", "kernel_cache": "off", "memory_limit": "1"}, whole=True).run(
                None, {"x": X})


if __name__ == "__main__":
    unittest.main()
