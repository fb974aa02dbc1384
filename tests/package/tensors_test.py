"""Tensors of the installed package: NumPy, buffers, DLPack capsules, strings, lists, narrow types.

    python tensors_test.py MODELS
"""

import array
import gc
import sys
import unittest
import weakref

import ml_dtypes
import numpy as np

import redfuser

sys.argv.pop(1)
HEADER = '<ir_version: 12, opset_import: ["" : 25]> '
NARROW = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2,
          ml_dtypes.float8_e5m2fnuz, ml_dtypes.int4, ml_dtypes.uint4]


def session(graph):
    return redfuser.Session(redfuser.Model.parse(HEADER + graph), device="cpu")


def doubling():
    return session("g (float[n, m] x) => (float[n, m] y) { y = Add(x, x) }")


class Foreign:
    """A library with DLPack, of a given version, that has not NumPy's protocols."""

    def __init__(self, values, versioned=True):
        self.array, self.versioned, self.asked = values, versioned, []

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        self.asked.append(options)
        if options and not self.versioned:
            raise TypeError("no such argument")
        return self.array.__dlpack__(**options)


class Memory(unittest.TestCase):
    def test_reads_arrays_in_place(self):
        values = np.ones((2, 3), np.float32)
        tensor = redfuser.as_tensor(values)
        self.assertEqual(tensor.data_ptr, values.ctypes.data)
        watch = weakref.ref(values)
        del values
        gc.collect()
        self.assertIsNotNone(watch())
        del tensor
        self.assertIsNone(watch())

    def test_takes_other_layouts_by_a_copy(self):
        values = np.arange(6, dtype=np.float32).reshape(3, 2)
        for other in (values.T, values[:, ::-1].T, values.T.astype(">f4")):
            np.testing.assert_array_equal(doubling().run(x=other)["y"], 2 * np.asarray(other, np.float32))
        unaligned = np.frombuffer(b"\0" + values.tobytes(), np.float32, offset=1).reshape(3, 2)
        np.testing.assert_array_equal(doubling().run(x=unaligned)["y"], 2 * values)

    def test_takes_buffers_lists_and_numbers(self):
        one = session("g (float[n] x) => (float[n] y) { y = Add(x, x) }")
        for x in (array.array("f", [1, 2]), [1, 2], memoryview(array.array("f", [1, 2]))):
            np.testing.assert_array_equal(one.run(x=x)["y"], [2, 4])
        np.testing.assert_array_equal(session("g (double x) => (double y) { y = Neg(x) }").run(x=3)["y"], -3)

    def test_gives_outputs_in_place(self):
        y = doubling().run(x=np.ones((2, 2), np.float32))["y"]
        first, second = np.asarray(y), np.from_dlpack(y)
        first[0, 0] = 9
        self.assertEqual(second[0, 0], 9)
        self.assertEqual(first.ctypes.data, y.data_ptr)
        pointer = y.data_ptr
        del y, first
        self.assertEqual(second[0, 0], 9)
        self.assertEqual(second.ctypes.data, pointer)
        if sys.version_info >= (3, 12):
            self.assertEqual(memoryview(redfuser.as_tensor(second)).shape, (2, 2))

    def test_empty_tensors(self):
        self.assertEqual(np.asarray(doubling().run(x=np.zeros((0, 3), np.float32))["y"]).shape, (0, 3))

    def test_outputs_into_the_callers_memory(self):
        target = np.zeros((2, 2), np.float32)
        doubling().run({"x": np.ones((2, 2), np.float32)}, into={"y": target})
        self.assertEqual(target.sum(), 8)
        with self.assertRaisesRegex(redfuser.UserError, "is given memory for"):
            doubling().run({"x": np.ones((2, 3), np.float32)}, into={"y": target})
        target.flags.writeable = False
        with self.assertRaisesRegex(redfuser.UserError, "read-only"):
            doubling().run({"x": np.ones((2, 2), np.float32)}, into={"y": target})


class Dlpack(unittest.TestCase):
    def test_both_versions_in_place(self):
        for versioned in (True, False):
            values = np.ones((2, 2), np.float32)
            foreign = Foreign(values, versioned)
            self.assertEqual(redfuser.as_tensor(foreign).data_ptr, values.ctypes.data)
            self.assertEqual(foreign.asked[0], {"max_version": (1, 1)})
            np.testing.assert_array_equal(doubling().run(x=foreign)["y"], 2)

    def test_exports_both_versions(self):
        tensor = redfuser.as_tensor(np.ones(3, np.float32))
        self.assertIn("dltensor_versioned", repr(tensor.__dlpack__(max_version=(1, 0))))
        self.assertIn('"dltensor"', repr(tensor.__dlpack__()))
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))
        with self.assertRaises(BufferError):
            tensor.__dlpack__(dl_device=(2, 0))
        with self.assertRaises(BufferError):
            tensor.__dlpack__(copy=True)

    def test_a_capsule_is_taken_once(self):
        capsule = redfuser.as_tensor(np.ones(3, np.float32)).__dlpack__()
        redfuser.Tensor.from_capsule(capsule)
        for wrong in (capsule, 3):
            with self.assertRaisesRegex(redfuser.UserError, "used before"):
                redfuser.Tensor.from_capsule(wrong)
        given = np.ones((2, 2), np.float32).__dlpack__()
        np.testing.assert_array_equal(doubling().run(x=given)["y"], 2)
        with self.assertRaisesRegex(redfuser.UserError, 'input "x": .*used before'):
            doubling().run(x=given)

    def test_the_reason_is_the_producers(self):
        class Refusing(Foreign):
            def __dlpack__(self, **options):
                raise BufferError("it requires gradients")

            def __array__(self, dtype=None, copy=None):
                raise TypeError("of NumPy")

        with self.assertRaisesRegex(redfuser.UserError, 'input "x": it requires gradients'):
            doubling().run(x=Refusing(np.ones((2, 2), np.float32)))

    def test_a_capsule_that_nobody_takes_frees_the_tensor(self):
        values = np.ones(3, np.float32)
        watch = weakref.ref(values)
        capsule = redfuser.as_tensor(values).__dlpack__(max_version=(1, 0))
        del values
        self.assertIsNotNone(watch())
        del capsule
        self.assertIsNone(watch())

    def test_read_only_memory_stays_so(self):
        values = np.ones(3, np.float32)
        values.flags.writeable = False
        tensor = redfuser.as_tensor(values)
        self.assertFalse(np.from_dlpack(tensor).flags.writeable)
        self.assertFalse(np.asarray(tensor).flags.writeable)
        with self.assertRaises(BufferError):
            tensor.__dlpack__()

    def test_narrow_types_both_ways(self):
        for dtype in NARROW:
            values = np.array([0, 1, 2, 3], np.float32).astype(dtype)
            tensor = redfuser.as_tensor(values)
            back = redfuser.Tensor.from_capsule(tensor.__dlpack__(max_version=(1, 1)))
            self.assertEqual(back.dtype, tensor.dtype)
            self.assertEqual(back.numpy().dtype, np.dtype(dtype))
            np.testing.assert_array_equal(back.numpy().astype(np.float32), [0, 1, 2, 3])


class Kinds(unittest.TestCase):
    def test_narrow_types_run(self):
        for name, dtype in (("bfloat16", ml_dtypes.bfloat16), ("float8e4m3fn", ml_dtypes.float8_e4m3fn),
                            ("int4", ml_dtypes.int4)):
            values = np.array([-3, 0, 1, 5], np.float32).astype(dtype)
            twice = session(f"g ({name}[n] x) => (float[n] y, {name}[n] z) "
                            "{ y = Cast<to = 1>(x)  z = Identity(x) }").run(x=values)
            np.testing.assert_array_equal(twice["y"], [-3, 0, 1, 5])
            self.assertEqual(twice["z"].numpy().dtype, np.dtype(dtype))
            np.testing.assert_array_equal(twice["z"].numpy().astype(np.float32), [-3, 0, 1, 5])

    def test_strings(self):
        given = np.array([["a", "bc"], ["", "é"]], dtype=object)
        got = session("g (string[n, m] x) => (string[n, m] y) { y = Identity(x) }").run(x=given)["y"].numpy()
        self.assertEqual(got.tolist(), given.tolist())

    def test_objects_are_not_strings(self):
        run = session("g (string[n] x) => (string[n] y) { y = Identity(x) }").run
        self.assertEqual(run(x=np.array(["a", 3, b"b"], object))["y"].texts(), ["a", "3", "b"])
        for wrong in (None, {}, object()):
            with self.assertRaisesRegex(redfuser.UserError, f'input "x": .*type {type(wrong).__name__}'):
                run(x=np.array(["a", wrong], object))

    def test_sequences_and_optionals(self):
        joined = session("g (seq(float[n]) x) => (float[m] y, seq(float[n]) z) "
                         "{ y = ConcatFromSequence<axis = 0>(x)  z = Identity(x) }")
        got = joined.run(x=[np.ones(2, np.float32), np.zeros(1, np.float32)])
        self.assertEqual(got["y"].numpy().tolist(), [1, 1, 0])
        self.assertEqual([part.tolist() for part in got["z"].numpy()], [[1, 1], [0]])
        present = session("g (optional(float[n]) x) => (bool y) { y = OptionalHasElement(x) }")
        self.assertFalse(present.run(x=None)["y"].numpy())
        self.assertTrue(present.run(x=np.ones(2, np.float32))["y"].numpy())


if __name__ == "__main__":
    unittest.main()
