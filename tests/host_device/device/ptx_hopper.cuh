// In place of src/device/ptx_hopper.cuh: a test on the host has instructions of its own.
#pragma once
