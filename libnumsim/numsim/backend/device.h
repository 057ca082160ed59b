// The memory, streams and clock of a GPU, without any CUDA names in the interface. Everything that
// numsim runs on a device goes through these types.
//
// "On the device" below means in the memory of the one device that this process uses: the first
// one that CUDA shows it (set CUDA_VISIBLE_DEVICES to choose). Calls that take a DeviceStream run
// in the order of that stream and return before they are done; the memory that they read and write
// must live until then. Unless its header says otherwise, a function throws Error if the device
// reports an error; the message names the call and the shape. The failure of a kernel is reported
// by the next call that waits.
//
// A build without CUDA (NUMSIM_WITH_CUDA) defines only DeviceUnavailable(), which says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "numsim/base/require.h"

namespace numsim {

// Returns the reason why no device can be used here, or an empty string if one can. The reason is
// one clause without a full stop: "this build has no CUDA kernels", "no CUDA device: CUDA driver
// version is insufficient for CUDA runtime version", "the device is sm_80, and this build has code
// for 90a".
const std::string& DeviceUnavailable();
inline bool DeviceAvailable() { return DeviceUnavailable().empty(); }

struct DeviceInfo {
  std::string name;            // "NVIDIA H200"
  int compute_capability = 0;  // 10 * major + minor: 90
  int multiprocessors = 0;
  size_t memory_bytes = 0;
  size_t l2_bytes = 0;
  std::string driver, runtime;  // CUDA versions: "13.0"
  std::string code;             // architectures that this build has code for: "90a"

  bool IsHopper() const { return compute_capability == 90; }
};
// Returns the properties of the device. Requires DeviceAvailable().
const DeviceInfo& Device();
// Returns the bytes of device memory that this process holds by device_memory::Allocate. What CUDA's
// libraries hold of their own is not among them.
size_t AllocatedDeviceBytes() noexcept;

// A non-owning view of an array on the device. T is a plain number type.
template <typename T>
class DeviceSpan {
 public:
  DeviceSpan() = default;
  DeviceSpan(T* data, size_t size) : data_(data), size_(size) {}
  // Converts a writable view to a read-only one.
  template <typename U>
  requires std::is_same_v<const U, T> DeviceSpan(const DeviceSpan<U>& other)
      : data_(other.data()), size_(other.size()) {}

  T* data() const { return data_; }  // a device address: not for use on the host
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  DeviceSpan subspan(size_t begin, size_t count) const { return {data_ + begin, count}; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// A queue of device work. Streams do not wait for one another.
class DeviceStream {
 public:
  DeviceStream();
  // Works in a stream of another library, given as its cudaStream_t (null: the default stream). It
  // must exist as long as this object.
  explicit DeviceStream(void* handle) : handle_(handle), owned_(false) {}
  ~DeviceStream();  // waits for the stream's work, unless the stream is another library's
  DeviceStream(DeviceStream&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), owned_(other.owned_) {}
  DeviceStream& operator=(DeviceStream&&) = delete;

  // Waits until all work of the stream is done. Throws Error if any of it failed since the last
  // Wait.
  void Wait();

  void* handle() const { return handle_; }  // the cudaStream_t

 private:
  void* handle_ = nullptr;
  bool owned_ = true;
};

// Returns the calling thread's own stream, for calls that wait for the work they start.
DeviceStream& ThreadStream();

namespace device_memory {
// Raw device memory. Allocate returns memory that is not managed, is aligned to 256 bytes and is
// not cleared; Free takes the number of bytes again. The copies and FillBytes run in the order of
// `stream`. `bytes` may be 0.
void* Allocate(size_t bytes);
void Free(void* memory, size_t bytes) noexcept;
void CopyIn(const void* host, void* device, size_t bytes, DeviceStream& stream);
void CopyOut(const void* device, void* host, size_t bytes, DeviceStream& stream);
void CopyWithin(const void* from, void* to, size_t bytes, DeviceStream& stream);
void FillBytes(void* device, uint8_t byte, size_t bytes, DeviceStream& stream);
}  // namespace device_memory

// An array that owns its device memory. The destructor frees the memory, which waits for all work
// on the device.
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
  ~DeviceArray() { device_memory::Free(data_, size_ * sizeof(T)); }

  // Makes room for at least `size` elements. If the array must grow, its content is lost.
  void Reserve(size_t size) {
    if (size <= size_) return;
    *this = DeviceArray();  // frees first: the device may not have room for both
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

// CopyToDevice and CopyToHost copy between the host and the device. Both require equal sizes.
// CopyToHost waits until the values have arrived.
template <typename T>
void CopyToDevice(std::span<const T> from, DeviceSpan<T> to, DeviceStream& stream) {
  RequireSize(to.size(), from.size(), "CopyToDevice", "to");
  device_memory::CopyIn(from.data(), to.data(), from.size_bytes(), stream);
}
template <typename T>
void CopyToHost(DeviceSpan<const T> from, std::span<T> to, DeviceStream& stream) {
  RequireSize(to.size(), from.size(), "CopyToHost", "to");
  device_memory::CopyOut(from.data(), to.data(), to.size_bytes(), stream);
  stream.Wait();
}
// OnDevice returns a new device array with a copy of `values`; OnHost waits and returns a host copy
// of a device array. For tests and tools.
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

// A point in the order of a stream, timed by the device's clock.
class DeviceEvent {
 public:
  DeviceEvent();
  ~DeviceEvent();
  DeviceEvent(DeviceEvent&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  DeviceEvent& operator=(DeviceEvent&&) = delete;

  void Record(DeviceStream& stream);
  // Returns the seconds between two recorded events. Waits for `end`.
  static double Seconds(const DeviceEvent& begin, const DeviceEvent& end);

 private:
  void* handle_ = nullptr;
};

}  // namespace numsim
