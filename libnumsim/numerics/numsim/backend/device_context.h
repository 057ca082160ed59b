// A device's stream, and what operations keep there between calls.
#pragma once

#include <memory>
#include <type_traits>
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

  // Returns the stream in which the context works.
  DeviceStream& stream() { return *stream_; }

  // Returns the one object of type T that belongs to this context, made at the first call, with the
  // place of this context if T takes one. Memory in it belongs to one operation at a time: the next
  // one may overwrite it.
  template <typename T>
  T& Get() {
    std::shared_ptr<void>& kept = kept_[std::type_index(typeid(T))];
    if (kept == nullptr) kept = Make<T>();
    return *static_cast<T*>(kept.get());
  }

 private:
  template <typename T>
  std::shared_ptr<T> Make() {
    if constexpr (std::is_constructible_v<T, Place>) {
      return std::make_shared<T>(Place(*this));
    } else {
      return std::make_shared<T>();
    }
  }

  std::shared_ptr<DeviceStream> stream_;  // shared: a build without CUDA has no destructor of it
  std::unordered_map<std::type_index, std::shared_ptr<void>> kept_;  // freed before the stream
};

// Returns the calling thread's own context, and its place. ThreadStream() is its stream.
DeviceContext& ThreadContext();
inline Place ThreadPlace() { return Place(ThreadContext()); }

}  // namespace numsim
