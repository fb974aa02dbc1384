// In place of src/device/product/ptx_integer_product.cuh: a test on the host has instructions of
// its own.
#pragma once
