// Error checks for *_cuda.cu: every CUDA call is checked, and an error names the call and the
// shape.
#pragma once

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <string>

#include "numsim/backend/device.h"
#include "numsim/base/error.h"

namespace numsim::cuda {

// Throws Error "CALL, SHAPE: CUDA's error text" unless `status` is cudaSuccess. Clears the error if
// CUDA can go on after it.
void Check(cudaError_t status, const char* call, const std::string& shape);

// Checks the status of the kernel launch just made.
void CheckLaunch(const char* kernel, const std::string& shape);

inline cudaStream_t Raw(const DeviceStream& stream) {
  return static_cast<cudaStream_t>(stream.handle());
}

}  // namespace numsim::cuda

// NUMSIM_CUDA(cudaMemcpyAsync(...), "{} bytes to the device", n)
// Makes a CUDA call and checks it. The shape is formatted only if the call failed.
#define NUMSIM_CUDA(call, ...)                                                    \
  do {                                                                            \
    if (const cudaError_t numsim_status = (call); numsim_status != cudaSuccess) { \
      ::numsim::cuda::Check(numsim_status, #call, fmt::format(__VA_ARGS__));      \
    }                                                                             \
  } while (false)
