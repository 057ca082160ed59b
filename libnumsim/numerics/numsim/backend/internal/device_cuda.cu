#include <fmt/format.h>

#include <atomic>
#include <string_view>

#include "numsim/backend/device.h"
#include "numsim/backend/shared/device_call_cuda.cuh"

namespace numsim {
namespace cuda {

// Returns the text of a call without its argument list.
static std::string_view CallName(std::string_view call) { return call.substr(0, call.find('(')); }

void Check(cudaError_t status, const char* call, const std::string& shape) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error, so that the next launch does not report it
  throw Error::Format("{}, {}: {}", CallName(call), shape, cudaGetErrorString(status));
}

void CheckLaunch(const char* kernel, const std::string& shape) {
  Check(cudaGetLastError(), kernel, shape);
}

}  // namespace cuda

namespace {

std::string Version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

// An empty kernel. If it can be loaded, this build has code for the device.
__global__ void Probe() {}

// Clears CUDA's last error and returns the text of `error`.
const char* Forget(cudaError_t error) {
  cudaGetLastError();
  return cudaGetErrorString(error);
}

struct Found {
  std::string unavailable;
  DeviceInfo info;
};

DeviceInfo Describe(const cudaDeviceProp& device) {
  int driver = 0, runtime = 0;
  NUMSIM_CUDA(cudaDriverGetVersion(&driver), "version");
  NUMSIM_CUDA(cudaRuntimeGetVersion(&runtime), "version");
  return {.name = device.name,
          .compute_capability = 10 * device.major + device.minor,
          .multiprocessors = device.multiProcessorCount,
          .memory_bytes = device.totalGlobalMem,
          .l2_bytes = static_cast<size_t>(device.l2CacheSize),
          .driver = Version(driver),
          .runtime = Version(runtime),
          .code = NUMSIM_CUDA_ARCHITECTURES};
}

Found Find() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess) return {fmt::format("no CUDA device: {}", Forget(counted)), {}};
  if (count == 0) return {"no CUDA device: none is visible", {}};
  int current = 0;  // unless the calling program, such as a process of torchrun, chose another
  NUMSIM_CUDA(cudaGetDevice(&current), "the current device");
  cudaDeviceProp device;
  NUMSIM_CUDA(cudaGetDeviceProperties(&device, current), "device {}", current);
  cudaFuncAttributes attributes;
  const cudaError_t loaded = cudaFuncGetAttributes(&attributes, Probe);
  if (loaded == cudaErrorNoKernelImageForDevice || loaded == cudaErrorInvalidDeviceFunction) {
    Forget(loaded);
    return {fmt::format("the device is sm_{}{}, and this build has code for {}",
                        device.major,
                        device.minor,
                        NUMSIM_CUDA_ARCHITECTURES),
            {}};
  }
  if (loaded != cudaSuccess) {  // for example: another process holds the device or its memory
    return {fmt::format("{} cannot be used: {}", device.name, Forget(loaded)), {}};
  }
  return {"", Describe(device)};
}

Found FindOrSayWhyNot() {
  try {
    return Find();
  } catch (const Error& error) {
    return {fmt::format("no CUDA device: {}", error.what()), {}};
  }
}

const Found& TheDevice() {
  static const Found found = FindOrSayWhyNot();
  return found;
}

std::atomic<size_t> allocated_bytes = 0;

cudaEvent_t RawEvent(void* handle) { return static_cast<cudaEvent_t>(handle); }

}  // namespace

const std::string& DeviceUnavailable() { return TheDevice().unavailable; }

const DeviceInfo& Device() {
  NUMSIM_CHECK(DeviceAvailable(), "{}", DeviceUnavailable());
  return TheDevice().info;
}

size_t AllocatedDeviceBytes() noexcept { return allocated_bytes; }

DeviceStream::DeviceStream() {
  cudaStream_t stream;
  NUMSIM_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  handle_ = stream;
}

DeviceStream::~DeviceStream() {
  if (handle_ == nullptr || !owned_) return;
  cudaStreamSynchronize(cuda::Raw(*this));
  cudaStreamDestroy(cuda::Raw(*this));
}

void DeviceStream::Wait() { NUMSIM_CUDA(cudaStreamSynchronize(cuda::Raw(*this)), "a stream"); }

namespace device_memory {

void* Allocate(size_t bytes) {
  void* memory = nullptr;
  if (bytes == 0) return memory;
  NUMSIM_CUDA(cudaMalloc(&memory, bytes), "{} bytes", bytes);
  allocated_bytes += bytes;
  return memory;
}

void Free(void* memory, size_t bytes) noexcept {
  if (memory == nullptr) return;  // cudaFree(nullptr) would initialise CUDA
  cudaFree(memory);
  allocated_bytes -= bytes;
}

void CopyIn(const void* host, void* device, size_t bytes, DeviceStream& stream) {
  if (bytes == 0) return;
  NUMSIM_CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, cuda::Raw(stream)),
              "{} bytes to the device",
              bytes);
}

void CopyOut(const void* device, void* host, size_t bytes, DeviceStream& stream) {
  if (bytes == 0) return;
  NUMSIM_CUDA(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, cuda::Raw(stream)),
              "{} bytes to the host",
              bytes);
}

void CopyWithin(const void* from, void* to, size_t bytes, DeviceStream& stream) {
  if (bytes == 0) return;
  NUMSIM_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda::Raw(stream)),
              "{} bytes on the device",
              bytes);
}

void FillBytes(void* device, uint8_t byte, size_t bytes, DeviceStream& stream) {
  if (bytes == 0) return;
  NUMSIM_CUDA(cudaMemsetAsync(device, byte, bytes, cuda::Raw(stream)), "{} bytes", bytes);
}

}  // namespace device_memory

DeviceEvent::DeviceEvent() {
  cudaEvent_t event;
  NUMSIM_CUDA(cudaEventCreate(&event), "an event");
  handle_ = event;
}

DeviceEvent::~DeviceEvent() {
  if (handle_ != nullptr) cudaEventDestroy(RawEvent(handle_));
}

void DeviceEvent::Record(DeviceStream& stream) {
  NUMSIM_CUDA(cudaEventRecord(RawEvent(handle_), cuda::Raw(stream)), "an event");
}

double DeviceEvent::Seconds(const DeviceEvent& begin, const DeviceEvent& end) {
  NUMSIM_CUDA(cudaEventSynchronize(RawEvent(end.handle_)), "an event");
  float milliseconds = 0;
  NUMSIM_CUDA(cudaEventElapsedTime(&milliseconds, RawEvent(begin.handle_), RawEvent(end.handle_)),
              "two events");
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace numsim
