// CUDA devices: the contexts of calls on their arrays, and their memory.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "libnumsim/python/src/bindings.h"

namespace numsim::python {
namespace {

// Returns memory of the device as an object with __dlpack__, for libraries whose arrays nobody may
// write to.
nb::object Memory(DeviceContext& context, const std::vector<size_t>& shape, std::string_view type) {
  const std::array<std::pair<std::string_view, nb::dlpack::dtype>, 5> names = {
      {{"float32", nb::dtype<float>()},
       {"float64", nb::dtype<double>()},
       {"uint8", nb::dtype<uint8_t>()},
       {"uint16", nb::dtype<uint16_t>()},
       {"uint32", nb::dtype<uint32_t>()}}};
  const auto* const found =
      std::find_if(names.begin(), names.end(), [&](const auto& n) { return n.first == type; });
  if (found == names.end()) RefuseType("device memory");
  size_t bytes = found->second.bits / 8;
  for (const size_t n : shape) bytes *= n;
  auto memory = std::make_unique<Buffer<uint8_t>>(Place(context), std::max<size_t>(bytes, 1));
  void* const data = memory->View().data;
  const nb::capsule owner(memory.release(),
                          [](void* p) noexcept { delete static_cast<Buffer<uint8_t>*>(p); });
  return nb::cast(nb::ndarray<nb::array_api, nb::device::cuda>(
      data, shape.size(), shape.data(), owner, nullptr, found->second, nb::device::cuda::value));
}

}  // namespace

void BindDevice(nb::module_& m) {
  // Returns why no device can be used, or an empty text.
  m.def("device_unavailable", &DeviceUnavailable);
  // The work of one thread in one stream, given by the address of its cudaStream_t; 0 is the
  // default stream.
  nb::class_<DeviceContext>(m, "DeviceContext")
      .def(
          "__init__",
          [](DeviceContext* self, uintptr_t stream) {
            new (self) DeviceContext(reinterpret_cast<void*>(stream));
          },
          nb::arg("stream"));
  m.def("device_memory", &Memory, nb::arg("context"), nb::arg("shape"), nb::arg("dtype"));
  // Returns the bytes of device memory that this library holds.
  m.def("device_bytes", [] {
    if constexpr (NUMSIM_HAVE_CUDA) return AllocatedDeviceBytes();
    return size_t{0};
  });
  m.def(
      "device_wait",
      [](DeviceContext& context) {
        const ArrayCall call;
        if constexpr (NUMSIM_HAVE_CUDA) context.stream().Wait();
      },
      nb::arg("context"));
}

}  // namespace numsim::python
