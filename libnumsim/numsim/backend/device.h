// A GPU's memory, streams and clock, without a name of CUDA: everything that numsim runs on a
// device goes through these types.
//
// "On the device" below: in the memory of the one device that this process uses, the first that
// CUDA shows it (CUDA_VISIBLE_DEVICES chooses). Calls that take a DeviceStream run in its order and
// return before they are done; what they read and write must live until then. Functions whose
// header does not say otherwise throw Error when the device refuses: the message names the call and
// the shape. A failed kernel shows at the next call that waits.
//
// Built only with NUMSIM_WITH_CUDA; without it DeviceUnavailable() alone is there, and says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "numsim/base/error.h"

namespace numsim {

// Why no device can be used here: empty if one can. One clause without a full stop: "this build has
// no CUDA kernels", "no CUDA device: CUDA driver version is insufficient for CUDA runtime version",
// "the device is sm_80, and this build has code for 90a".
const std::string& DeviceUnavailable();
inline bool DeviceAvailable() { return DeviceUnavailable().empty(); }

struct DeviceInfo {
  std::string name;            // "NVIDIA H200"
  int compute_capability = 0;  // 10 major + minor: 90
  int multiprocessors = 0;
  size_t memory_bytes = 0;
  size_t l2_bytes = 0;
  std::string driver, runtime;  // versions of CUDA: "13.0"
  std::string code;             // architectures this build has code for: "90a"

  bool IsHopper() const { return compute_capability == 90; }
};
// Requires DeviceAvailable().
const DeviceInfo& Device();

// An array on the device that somebody else owns. T is a plain number type.
template <typename T>
class DeviceSpan {
 public:
  DeviceSpan() = default;
  DeviceSpan(T* data, size_t size) : data_(data), size_(size) {}
  // A view to read of one to write.
  template <typename U>
  requires std::is_same_v<const U, T> DeviceSpan(const DeviceSpan<U>& other)
      : data_(other.data()), size_(other.size()) {}

  T* data() const { return data_; }  // not to be read on the host
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  DeviceSpan subspan(size_t begin, size_t count) const { return {data_ + begin, count}; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// A queue of work. Streams do not wait for one another.
class DeviceStream {
 public:
  DeviceStream();
  ~DeviceStream();  // waits
  DeviceStream(DeviceStream&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  DeviceStream& operator=(DeviceStream&&) = delete;

  // Until everything is done. Throws Error with what went wrong since the last Wait.
  void Wait();

  void* handle() const { return handle_; }  // of CUDA

 private:
  void* handle_ = nullptr;
};

// The calling thread's own stream, for calls that wait for what they began.
DeviceStream& ThreadStream();

namespace device_memory {
// Plain device memory, not managed; 256-byte aligned, not cleared. `bytes` may be 0.
void* Allocate(size_t bytes);
void Free(void* memory) noexcept;
void CopyIn(const void* host, void* device, size_t bytes, DeviceStream& stream);
void CopyOut(const void* device, void* host, size_t bytes, DeviceStream& stream);
void CopyWithin(const void* from, void* to, size_t bytes, DeviceStream& stream);
void FillBytes(void* device, uint8_t byte, size_t bytes, DeviceStream& stream);
}  // namespace device_memory

// An array on the device. Freed at the end, which waits for the whole device.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(size_t size)
      : data_(static_cast<T*>(device_memory::Allocate(size * sizeof(T)))), size_(size) {}
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~DeviceArray() { device_memory::Free(data_); }

  // Room for at least `size` elements; the old content is lost when it must grow.
  void Reserve(size_t size) {
    if (size <= size_) return;
    *this = DeviceArray();  // the old memory may be needed for the new
    *this = DeviceArray(size);
  }

  T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  DeviceSpan<T> span() { return {data_, size_}; }
  DeviceSpan<const T> span() const { return {data_, size_}; }
  DeviceSpan<T> first(size_t count) { return {data_, count}; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// Copies. Requires equal sizes. To the host: waits until the values are there.
template <typename T>
void CopyToDevice(std::span<const T> from, DeviceSpan<T> to, DeviceStream& stream) {
  NUMSIM_CHECK(from.size() == to.size(), "{} to {} elements", from.size(), to.size());
  device_memory::CopyIn(from.data(), to.data(), from.size_bytes(), stream);
}
template <typename T>
void CopyToHost(DeviceSpan<const T> from, std::span<T> to, DeviceStream& stream) {
  NUMSIM_CHECK(from.size() == to.size(), "{} to {} elements", from.size(), to.size());
  device_memory::CopyOut(from.data(), to.data(), to.size_bytes(), stream);
  stream.Wait();
}
// Conveniences for tests and tools: a new array, and all of one.
template <typename T>
DeviceArray<T> OnDevice(std::span<const T> values, DeviceStream& stream) {
  DeviceArray<T> array(values.size());
  CopyToDevice(values, array.span(), stream);
  return array;
}
template <typename T>
DeviceArray<T> OnDevice(const std::vector<T>& values, DeviceStream& stream) {
  return OnDevice(std::span<const T>(values), stream);
}
template <typename T>
std::vector<T> OnHost(DeviceSpan<const T> values, DeviceStream& stream) {
  std::vector<T> host(values.size());
  CopyToHost(values, std::span(host), stream);
  return host;
}
template <typename T>
std::vector<T> OnHost(const DeviceArray<T>& array, DeviceStream& stream) {
  return OnHost(array.span(), stream);
}

// A moment in the order of a stream, by the device's clock.
class DeviceEvent {
 public:
  DeviceEvent();
  ~DeviceEvent();
  DeviceEvent(DeviceEvent&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  DeviceEvent& operator=(DeviceEvent&&) = delete;

  void Record(DeviceStream& stream);
  // Seconds between two recorded events; waits for `end`.
  static double Seconds(const DeviceEvent& begin, const DeviceEvent& end);

 private:
  void* handle_ = nullptr;
};

}  // namespace numsim
