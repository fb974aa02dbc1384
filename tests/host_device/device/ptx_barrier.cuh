// In place of src/device/ptx_barrier.cuh: a test on the host has instructions of its own.
#pragma once
