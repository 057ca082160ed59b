// Limits of the device itself: copying, reading and writing its memory, and a bf16 GEMM of the
// library with the shape of the layer for which speed goals are set. Reference values for other
// benchmarks and `numsim run linear-speed`.
#include <benchmark/benchmark.h>

#include <memory>

#include "bench/device_clock.h"
#include "bench/report.h"
#include "numsim/backend/device_context.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/quantize/quantize_device.h"

namespace numsim::bench {
namespace {

constexpr size_t kBytes = size_t{1} << 30;  // bytes per buffer, far larger than the caches
constexpr double kGiga = 1e-9, kTera = 1e-12;

// Returns `count` random bf16 codes: the benchmarks' Input(), repeated with rotation.
DeviceArray<uint16_t> RandomCodes(size_t count, DeviceStream& stream) {
  std::vector<uint16_t> codes(kElements);
  Encode(MakeEncodePlan(ParseFormat("bf16").spec, {}, Overflow::kNonsaturate),
         std::span(Input()),
         std::span(codes));
  const DeviceArray<uint16_t> tile = OnDevice(std::span<const uint16_t>(codes), stream);
  DeviceArray<uint16_t> out(count);
  size_t offset = 0;
  for (size_t begin = 0; begin < count;) {
    const size_t piece = std::min(count - begin, kElements - offset);
    device_memory::CopyWithin(
        tile.data() + offset, out.data() + begin, piece * sizeof(uint16_t), stream);
    begin += piece;
    offset = (offset + piece + 999983) % kElements;
  }
  stream.Wait();
  return out;
}

struct Buffers {
  DeviceArray<uint16_t> a = RandomCodes(kBytes / 2, ThreadStream());
  DeviceArray<uint16_t> b = RandomCodes(kBytes / 2, ThreadStream());
  DeviceArray<float> absmax = DeviceArray<float>(1);
};

void AddMemory() {
  RegisterOnDevice("copy",
                   [] {
                     auto on = std::make_shared<Buffers>();
                     return [on](int i, DeviceStream& stream) {
                       const bool forth = i % 2 == 0;
                       device_memory::CopyWithin(forth ? on->a.data() : on->b.data(),
                                                 forth ? on->b.data() : on->a.data(),
                                                 kBytes,
                                                 stream);
                     };
                   },
                   {"GB/s", 2.0 * kBytes * kGiga});
  RegisterOnDevice("write",
                   [] {
                     auto on = std::make_shared<Buffers>();
                     return [on](int i, DeviceStream& stream) {
                       device_memory::FillBytes(
                           (i % 2 == 0 ? on->a : on->b).data(), 1, kBytes, stream);
                     };
                   },
                   {"GB/s", 1.0 * kBytes * kGiga});
  RegisterOnDevice("read/absmax_of_bf16",
                   [] {
                     auto on = std::make_shared<Buffers>();
                     return [on](int i, DeviceStream&) {
                       const In<float> in = FloatMatrix((i % 2 == 0 ? on->a : on->b).data(),
                                                        Element::kBfloat16,
                                                        {1, kBytes / sizeof(uint16_t)},
                                                        ThreadPlace());
                       AbsmaxOfAll(in, on->absmax.span());
                     };
                   },
                   {"GB/s", 1.0 * kBytes * kGiga});
}

// X W^T of 65,536 tokens from dimension 4096 to 16384.
struct Product {
  static constexpr size_t kTokens = 65536, kIn = 4096, kOut = 16384;

  DeviceArray<uint16_t> x = RandomCodes(kTokens * kIn, ThreadStream());
  DeviceArray<uint16_t> w = RandomCodes(kOut * kIn, ThreadStream());
  DeviceArray<uint16_t> y = DeviceArray<uint16_t>(kTokens * kOut);
};

void AddProduct() {
  RegisterOnDevice(
      "product/bf16/library",
      [] {
        auto on = std::make_shared<Product>();
        const FormatSpec bf16 = ParseFormat("bf16").spec;
        return [on, bf16](int, DeviceStream&) {
          Gemm(
              {.format = bf16,
               .codes = on->x.data(),
               .rows = Product::kTokens,
               .inner = Product::kIn},
              {.format = bf16, .codes = on->w.data(), .rows = Product::kOut, .inner = Product::kIn},
              {.kind = AccumulationKind::kLibrary},
              FloatMatrix(on->y.data(),
                          Element::kBfloat16,
                          {Product::kTokens, Product::kOut},
                          ThreadPlace()));
        };
      },
      {"TOP/s", 2.0 * Product::kTokens * Product::kOut * Product::kIn * kTera});
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  return numsim::bench::DeviceMain(argc, argv, [] {
    numsim::bench::AddMemory();
    numsim::bench::AddProduct();
  });
}
