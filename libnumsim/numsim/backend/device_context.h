// A device's stream, and what operations keep there between calls.
#pragma once

#include <memory>
#include <typeindex>
#include <unordered_map>

#include "numsim/backend/device.h"
#include "numsim/backend/matrix.h"

namespace numsim {

// One stream of work on the device, with the memory, handles and plans that operations in it share:
// there is one of each, however many layers use them. Not for use by two threads at a time.
class DeviceContext {
 public:
  // Throws Error unless DeviceAvailable().
  DeviceContext();
  // Works in a stream of another library, as DeviceStream(handle) does. Throws Error
  // unless DeviceAvailable().
  explicit DeviceContext(void* stream);
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  DeviceStream& stream() { return *stream_; }

  // Returns the one object of type T that belongs to this context, made at the first call. Memory
  // in it belongs to one operation at a time: the next one may overwrite it.
  template <typename T>
  T& Get() {
    std::shared_ptr<void>& kept = kept_[std::type_index(typeid(T))];
    if (kept == nullptr) kept = std::make_shared<T>();
    return *static_cast<T*>(kept.get());
  }

 private:
  std::shared_ptr<DeviceStream> stream_;  // shared: a build without CUDA has no destructor of it
  std::unordered_map<std::type_index, std::shared_ptr<void>> kept_;  // freed before the stream
};

// Returns the calling thread's own context, and its place. ThreadStream() is its stream.
DeviceContext& ThreadContext();
inline Place ThreadPlace() { return Place(ThreadContext()); }

}  // namespace numsim
