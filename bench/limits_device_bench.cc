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
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize/quantize.h"

namespace numsim::bench {
namespace {

constexpr size_t kBytes = size_t{1} << 30;  // bytes per buffer, far larger than the caches
constexpr double kGiga = 1e-9, kTera = 1e-12;

// Returns a matrix of random bf16 codes: the benchmarks' Input(), repeated with rotation.
FloatBuffer RandomMatrix(size_t rows, size_t cols) {
  std::vector<uint16_t> codes(kElements);
  Encode(MakeEncodePlan(ParseFormat("bf16").spec, {}, Overflow::kNonsaturate), Input(), codes);
  const Buffer<uint16_t> tile = CopyAt(codes, ThreadPlace());
  FloatBuffer matrix(ThreadPlace(), Element::kBfloat16);
  const size_t count = rows * cols;
  const MatrixSpan<uint16_t> out = matrix.Renew(rows, cols).Bf16().As(1, count);
  size_t offset = 0;
  for (size_t begin = 0; begin < count;) {
    const size_t piece = std::min(count - begin, kElements - offset);
    CopyMatrix<uint16_t>(tile.View().Columns(offset, piece), out.Columns(begin, piece));
    begin += piece;
    offset = (offset + piece + 999983) % kElements;
  }
  return matrix;
}

struct Buffers {
  FloatBuffer a = RandomMatrix(1, kBytes / sizeof(uint16_t));
  FloatBuffer b = RandomMatrix(1, kBytes / sizeof(uint16_t));
  Buffer<float> absmax = Buffer<float>(ThreadPlace(), 1);

  FloatSpan In(int i) { return (i % 2 == 0 ? a : b).View(); }
};

void AddMemory() {
  const auto add = [](const char* name, double moved, void (*launch)(Buffers&, int)) {
    const auto prepare = [=] {
      auto on = std::make_shared<Buffers>();
      return [=](int i) { launch(*on, i); };
    };
    RegisterOnDevice(name, prepare, {"GB/s", moved * kBytes * kGiga});
  };
  add("copy", 2, [](Buffers& on, int i) { CopyFloats(on.In(i), on.In(i + 1)); });
  add("write", 1, [](Buffers& on, int i) {
    device_memory::FillBytes(on.In(i).data, 1, kBytes, ThreadStream());
  });
  add("read/absmax_of_bf16", 1, [](Buffers& on, int i) {
    AbsmaxOfAll(on.In(i), on.absmax.View());
  });
}

// X W^T of 65,536 tokens from dimension 4096 to 16384.
struct Product {
  static constexpr size_t kTokens = 65536, kIn = 4096, kOut = 16384;

  FloatBuffer x = RandomMatrix(kTokens, kIn);
  FloatBuffer w = RandomMatrix(kOut, kIn);
  FloatBuffer y{ThreadPlace(), Element::kBfloat16};
};

void AddProduct() {
  RegisterOnDevice("product/bf16/library",
                   [] {
                     auto on = std::make_shared<Product>();
                     on->y.Renew(Product::kTokens, Product::kOut);
                     return [on](int) {
                       Gemm(AsOperand(on->x.View(), false),
                            AsOperand(on->w.View(), false),
                            {.kind = AccumulationKind::kLibrary},
                            on->y.View());
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
