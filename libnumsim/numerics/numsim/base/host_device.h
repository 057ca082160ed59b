// NUMSIM_HOST_DEVICE marks a function that nvcc also compiles for the device.
// Only this header and the *_cuda.cu and *_cuda.cuh files contain CUDA names.
#pragma once

#ifdef __CUDACC__
// Marks a function that nvcc also compiles for the device.
#define NUMSIM_HOST_DEVICE __host__ __device__
#else
#define NUMSIM_HOST_DEVICE
#endif

#if defined(__GNUC__) || defined(__clang__)
// Marks a function for host and device that is always inlined.
#define NUMSIM_INLINE NUMSIM_HOST_DEVICE inline __attribute__((always_inline))
#else
#define NUMSIM_INLINE NUMSIM_HOST_DEVICE inline
#endif
