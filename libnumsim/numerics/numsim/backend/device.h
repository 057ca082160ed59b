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
#include <string>
#include <utility>
#include <vector>

namespace numsim {

// Returns the reason why no device can be used here, or an empty string if one can. The reason is
// one clause without a full stop: "this build has no CUDA kernels", "no CUDA device: CUDA driver
// version is insufficient for CUDA runtime version", "the device is sm_80, and this build has code
// for 90a".
const std::string& DeviceUnavailable();
inline bool DeviceAvailable() { return DeviceUnavailable().empty(); }

// The properties of a device.
struct DeviceInfo {
  std::string name;            // "NVIDIA H200"
  int compute_capability = 0;  // 10 * major + minor: 90
  int multiprocessors = 0;
  size_t memory_bytes = 0;
  size_t l2_bytes = 0;
  std::string driver, runtime;  // CUDA versions: "13.0"
  std::string code;             // architectures that this build has code for: "90a"

  // Returns true for sm_90, whose tensor cores the Hopper kernels are for.
  bool IsHopper() const { return compute_capability == 90; }
};
// Returns the properties of the device. Requires DeviceAvailable().
const DeviceInfo& Device();
// Returns the bytes of device memory that this process holds by device_memory::Allocate. What CUDA's
// libraries hold of their own is not among them.
size_t AllocatedDeviceBytes() noexcept;

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
// Waits, and returns `count` elements of device memory.
template <typename T>
std::vector<T> Fetch(const T* device, size_t count, DeviceStream& stream) {
  std::vector<T> host(count);
  CopyOut(device, host.data(), count * sizeof(T), stream);
  stream.Wait();
  return host;
}
}  // namespace device_memory

// A point in the order of a stream, timed by the device's clock.
class DeviceEvent {
 public:
  DeviceEvent();
  ~DeviceEvent();
  DeviceEvent(DeviceEvent&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  DeviceEvent& operator=(DeviceEvent&&) = delete;

  // Records the event in the stream, after the work that is already in it.
  void Record(DeviceStream& stream);
  // Returns the seconds between two recorded events. Waits for `end`.
  static double Seconds(const DeviceEvent& begin, const DeviceEvent& end);

 private:
  void* handle_ = nullptr;
};

}  // namespace numsim
