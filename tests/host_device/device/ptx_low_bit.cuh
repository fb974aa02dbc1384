// In place of src/device/ptx_low_bit.cuh: a test on the host has instructions of its own.
#pragma once
