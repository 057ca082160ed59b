// Calls with arrays of the host that run on the device, under the backend cuda. Only in builds with
// CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "numsim/backend/backend.h"
#include "numsim/backend/device_context.h"
#include "numsim/backend/matrix.h"

namespace numsim {

// Returns true if the backend cuda is active and the arguments of a call are on the host.
inline bool Offloads(Place place) { return NUMSIM_HAVE_CUDA && place.IsHost() && UsesDevice(); }

// The arguments of one such call, in memory that the calling thread's context keeps for the next.
// The destructor does nothing: results reach the host in Finish.
class OffloadedCall {
 public:
  OffloadedCall() : memory_(ThreadContext().Get<Memory>()) {}

  Place place() const { return ThreadPlace(); }

  // Returns a copy of a contiguous matrix on the device.
  template <typename T>
  MatrixSpan<const T> In(MatrixSpan<const T> host) {
    const MatrixSpan<T> there = Room<T>(host.Shape());
    CopyMatrix<T>(host, there);
    return there;
  }
  // Returns uninitialised room on the device for a result of that shape.
  template <typename T>
  MatrixSpan<T> Room(MatrixShape shape) {
    if (used_ == memory_.buffers.size()) memory_.buffers.emplace_back(place());
    Buffer<uint8_t>& buffer = memory_.buffers[used_++];
    buffer.Renew(shape.rows, shape.cols * sizeof(T));
    return {reinterpret_cast<T*>(buffer.View().data), shape, place()};
  }
  // Copies a result to the host. Waits for it.
  template <typename T>
  void Out(MatrixSpan<T> there, MatrixSpan<T> host) {
    CopyMatrix<T>(there, host);
  }

 private:
  struct Memory {
    std::deque<Buffer<uint8_t>> buffers;
  };

  Memory& memory_;
  size_t used_ = 0;
};

}  // namespace numsim
