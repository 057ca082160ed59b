// For *_cuda.cu: every call of CUDA is checked, and an error names the call and the shape.
#pragma once

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <string>

#include "numsim/backend/device.h"
#include "numsim/base/error.h"

namespace numsim::cuda {

// Throws Error "CALL, SHAPE: what CUDA says" unless status is success; forgets the error where CUDA
// can go on.
void Check(cudaError_t status, const char* call, const std::string& shape);

// After a launch: Check of what it returned.
void CheckLaunch(const char* kernel, const std::string& shape);

inline cudaStream_t Raw(const DeviceStream& stream) {
  return static_cast<cudaStream_t>(stream.handle());
}

}  // namespace numsim::cuda

// NUMSIM_CUDA(cudaMemcpyAsync(...), "{} bytes to the device", n)
// Check of a call; the shape is put into words only when it has failed.
#define NUMSIM_CUDA(call, ...)                                                    \
  do {                                                                            \
    if (const cudaError_t numsim_status = (call); numsim_status != cudaSuccess) { \
      ::numsim::cuda::Check(numsim_status, #call, fmt::format(__VA_ARGS__));      \
    }                                                                             \
  } while (false)
