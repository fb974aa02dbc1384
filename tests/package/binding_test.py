"""ONNX Runtime's values and bindings, and the notebook display, of the installed package.

    python binding_test.py MODELS
"""

import shutil
import sys
import unittest

import numpy as np

import redfuser

sys.argv.pop(1)
ADD = '<ir_version: 9, opset_import: ["" : 20]> g (float[n] a, float[n] b) => (float[n] s, float[n] d) ' \
      "{ s = Add(a, b)  d = Sub(a, b) }"
A, B = np.array([5, 7], np.float32), np.array([1, 2], np.float32)


def session():
    return redfuser.InferenceSession(redfuser.Model.parse(ADD), providers=["cpu"])


class Values(unittest.TestCase):
    def test_ort_values(self):
        a = redfuser.OrtValue.ortvalue_from_numpy(A)
        self.assertEqual((a.shape(), a.data_type(), a.device_name()), ([2], "tensor(float)", "cpu"))
        self.assertTrue(a.is_tensor() and a.has_value())
        self.assertEqual((a.element_type(), a.tensor_size_in_bytes()), (1, 8))
        self.assertFalse(a.is_sparse_tensor() or a.is_tensor_sequence())
        b = redfuser.OrtValue.from_dlpack(B)
        self.assertEqual(b.data_ptr(), B.ctypes.data)
        a.update_inplace(A)
        with self.assertRaisesRegex(redfuser.UserError, "is given memory for"):
            a.update_inplace(np.zeros(3, np.float32))
        difference, total = session().run_with_ort_values(["d", "s"], {"a": a, "b": b})
        np.testing.assert_array_equal(difference.numpy(), A - B)
        np.testing.assert_array_equal(np.from_dlpack(total), A + B)

    def test_new_values_by_shape(self):
        for kind in (np.float32, "float32", 1):
            value = redfuser.OrtValue.ortvalue_from_shape_and_type([2, 3], kind)
            self.assertEqual((value.shape(), value.data_type()), ([2, 3], "tensor(float)"))
        codes = np.array([0x3f80, 0x4000], np.uint16)
        value = redfuser.OrtValue.ortvalue_from_numpy_with_onnx_type(codes, 16)
        self.assertEqual((value.data_type(), value.data_ptr()), ("tensor(bfloat16)", codes.ctypes.data))
        np.testing.assert_array_equal(value.numpy().astype(np.float32), [1, 2])
        with self.assertRaisesRegex(redfuser.UserError, "another size"):
            redfuser.OrtValue.ortvalue_from_numpy_with_onnx_type(codes, 1)
        with self.assertRaisesRegex(redfuser.UserError, "ONNX's type 99"):
            redfuser.OrtValue.ortvalue_from_numpy_with_onnx_type(codes, 99)
        with self.assertRaisesRegex(redfuser.UserError, "not on tpu 0"):
            redfuser.OrtValue.ortvalue_from_numpy(A, "tpu")


class Bindings(unittest.TestCase):
    def test_binds_host_memory(self):
        run, target = session(), np.zeros(2, np.float32)
        binding = run.io_binding()
        binding.bind_cpu_input("a", A)
        binding.bind_input("b", "cpu", 0, np.float32, [2], B.ctypes.data)
        binding.bind_output("d", "cpu", 0, np.float32, [2], target.ctypes.data)
        binding.bind_output("s")
        run.run_with_iobinding(binding)
        np.testing.assert_array_equal(target, A - B)
        difference, total = binding.copy_outputs_to_cpu()
        np.testing.assert_array_equal(total, A + B)
        np.testing.assert_array_equal(difference, target)
        self.assertEqual(binding.get_outputs()[1].shape(), [2])

    def test_binds_values(self):
        run, target = session(), redfuser.OrtValue.ortvalue_from_numpy(np.zeros(2, np.float32))
        binding = run.io_binding()
        binding.bind_ortvalue_input("a", redfuser.OrtValue.ortvalue_from_numpy(A))
        binding.bind_ortvalue_input("b", redfuser.OrtValue.ortvalue_from_numpy(B))
        binding.bind_ortvalue_output("s", target)
        run.run_with_iobinding(binding)
        np.testing.assert_array_equal(target.numpy(), A + B)
        binding.clear_binding_outputs()
        self.assertEqual(binding.get_outputs(), [])
        binding.clear_binding_inputs()
        with self.assertRaisesRegex(redfuser.UserError, 'input "a" is missing'):
            run.run_with_iobinding(binding)

    def test_refuses_what_is_not_there(self):
        run = session()
        binding = run.io_binding()
        binding.bind_output("s", "cuda")
        with self.assertRaisesRegex(redfuser.UserError, 'output "s" is bound to cuda, but the session runs on cpu'):
            run.run_with_iobinding(binding)
        for bind, role in ((lambda name: binding.bind_cpu_input(name, A), "input"),
                           (lambda name: binding.bind_ortvalue_input(name, redfuser.OrtValue.ortvalue_from_numpy(A)), "input"),
                           (binding.bind_output, "output"),
                           (lambda name: binding.bind_ortvalue_output(name, redfuser.OrtValue.ortvalue_from_numpy(A)), "output")):
            with self.assertRaisesRegex(redfuser.UserError, f'no {role} "nowhere"'):
                bind("nowhere")
        with self.assertRaisesRegex(redfuser.UserError, "not on tpu"):
            binding.bind_input("a", "tpu", 0, np.float32, [2], 1)


class Display(unittest.TestCase):
    def test_draws_the_fused_graph(self):
        program = redfuser.compile(redfuser.Model.parse(ADD))
        self.assertIn("digraph", program.dot())
        self.assertIn("<html", program.page("sums", "sm_90a").lower())
        self.assertTrue(program.text())
        if shutil.which("dot"):
            self.assertIn("<svg", program._repr_svg_())
        else:
            self.assertIsNone(program._repr_svg_())


if __name__ == "__main__":
    unittest.main()
