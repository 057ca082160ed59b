// GEMM A B^T of n x n matrices, and of the shapes of a linear layer in training. Counters: GFLOP/s
// (2 operations per product of elements, also for integers), and the ratio to the rate of a peer
// with the same number of threads, measured in this process. of_float32 is relative to the
// accumulation mode `library`, of_int8 to oneDNN's int8 GEMM. The peer of square matrices has the
// same size. The peer of a layer is `library` at 1024 x 1024, the float32 limit of the machine for
// any shape.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "bench/peers.h"
#include "bench/report.h"
#include "numsim/base/parallel.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/gemm/internal/gemm_paths_int8.h"
#include "numsim/gemm/internal/gemm_tiles.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim::bench {
namespace {

struct Size {
  size_t n;
  int threads;

  size_t Elements() const { return n * n; }
  double Operations() const { return 2.0 * static_cast<double>(n) * static_cast<double>(n * n); }
  std::string Text() const {
    return "/" + std::to_string(n) + "/threads:" + std::to_string(threads);
  }
};

std::span<const float> Left(const Size& size) { return std::span(Input()).first(size.Elements()); }
std::span<const float> Right(const Size& size) {
  return std::span(Input()).subspan(size.Elements(), size.Elements());
}

GemmOperand Float32Operand(std::span<const float> values, const Size& size) {
  GemmOperand operand;
  operand.format = kFp32;
  operand.values = values;
  operand.rows = operand.inner = size.n;
  return operand;
}

QuantizedMatrix Quantized(std::span<const float> values,
                          const Size& size,
                          const std::string& format,
                          Granularity granularity) {
  QuantizeOptions options;
  options.format = ParseFormat(format).spec;
  options.layout.granularity = granularity;
  return Quantize(HostMatrix(values, {size.n, size.n}), options);
}

std::span<const int8_t> AsIntegers(const QuantizedMatrix& matrix) {
  return {reinterpret_cast<const int8_t*>(matrix.Codes8().data()), matrix.Codes8().size()};
}

// Returns operations per second: the best of several calls.
double Rate(const Size& size, const std::function<void()>& product) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(200);
  double best = 0;
  for (int calls = 0; calls < 4 || Clock::now() < end; ++calls) {
    const Clock::time_point start = Clock::now();
    product();
    const std::chrono::duration<double> seconds = Clock::now() - start;
    best = std::max(best, size.Operations() / seconds.count());
  }
  return best;
}

enum class Peer { kFloat32, kInt8 };

double MeasurePeer(Peer peer, const Size& size) {
  double rate = 0;
  if (peer == Peer::kFloat32) {
    const GemmOperand a = Float32Operand(Left(size), size);
    const GemmOperand b = Float32Operand(Right(size), size);
    const AccumulationMode library = ParseAccumulationMode("library");
    std::vector<float> out(size.Elements());
    return Rate(size, [&] { Gemm(a, b, library, out); });
  }
  const QuantizedMatrix a = Quantized(Left(size), size, "int8", Granularity::kTensor);
  const QuantizedMatrix b = Quantized(Right(size), size, "int8", Granularity::kTensor);
  std::vector<int32_t> out(size.Elements());
  CallLibrary([&](int) {
    const auto product =
        OneDnnInt8Product(AsIntegers(a).data(), AsIntegers(b).data(), size.n, out.data());
    if (product) rate = Rate(size, product);
  });
  return rate;
}

// Returns operations per second, or 0 if the peer is not available.
double PeerRate(Peer peer, const Size& size) {
  static std::map<std::tuple<Peer, size_t, int>, double> measured;
  const std::tuple key(peer, size.n, size.threads);
  if (!measured.contains(key)) measured[key] = MeasurePeer(peer, size);
  return measured[key];
}

// Times `product` on size.threads threads.
void Run(benchmark::State& state,
         const Size& size,
         Peer peer,
         const std::function<void()>& product) {
  const double rate = PeerRate(peer, size);
  for (auto _ : state) {
    product();
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  const double operations = static_cast<double>(state.iterations()) * size.Operations();
  state.counters["GFLOP/s"] = Counter(operations / 1e9, Counter::kIsRate);
  if (rate > 0) {
    state.counters[peer == Peer::kInt8 ? "of_int8" : "of_float32"] =
        Counter(operations / rate, Counter::kIsRate);
  }
}

void BM_Float32(benchmark::State& state, const Size& size, const std::string& mode_text) {
  SetThreadCount(size.threads);
  const GemmOperand a = Float32Operand(Left(size), size), b = Float32Operand(Right(size), size);
  const AccumulationMode mode = ParseAccumulationMode(mode_text);
  std::vector<float> out(size.Elements());
  Run(state, size, Peer::kFloat32, [&] { Gemm(a, b, mode, out); });
}

void BM_Eigen(benchmark::State& state, const Size& size) {
  SetThreadCount(size.threads);
  std::vector<float> out(size.Elements());
  Run(state, size, Peer::kFloat32, [&] {
    CallLibrary(
        [&](int) { EigenProduct(Left(size).data(), Right(size).data(), size.n, out.data()); });
  });
}

// Multiplies codes to scaled float32 with one scale per row of A and one scale for B.
void BM_Codes(benchmark::State& state,
              const Size& size,
              const std::string& format,
              const std::string& mode_text) {
  SetThreadCount(size.threads);
  const QuantizedMatrix a = Quantized(Left(size), size, format, Granularity::kRow);
  const QuantizedMatrix b = Quantized(Right(size), size, format, Granularity::kTensor);
  const GemmOperand left = AsOperand(a, false), right = AsOperand(b, false);
  const AccumulationMode mode = ParseAccumulationMode(mode_text);
  std::vector<float> out(size.Elements());
  Run(state, size, format == "int8" ? Peer::kInt8 : Peer::kFloat32, [&] {
    Gemm(left, right, mode, out);
  });
}

// Multiplies codes whose scales of blocks enter the sum.
void BM_Blocks(benchmark::State& state,
               const Size& size,
               const std::string& format,
               const std::string& mode_text) {
  SetThreadCount(size.threads);
  const bool nvfp4 = mode_text == "mxf4nvf4";
  QuantizeOptions options;
  options.format = ParseFormat(format).spec;
  options.layout = ParseScaleLayout(nvfp4 ? "block:16" : "block:32");
  options.scale_rule = nvfp4 ? ScaleRule::kNvfp4 : ScaleRule::kE8m0;
  const QuantizedMatrix a = Quantize(HostMatrix(Left(size), {size.n, size.n}), options);
  const QuantizedMatrix b = Quantize(HostMatrix(Right(size), {size.n, size.n}), options);
  const GemmOperand left = AsOperand(a, false), right = AsOperand(b, false);
  const AccumulationMode mode = ParseAccumulationMode(mode_text);
  std::vector<float> out(size.Elements());
  Run(state, size, Peer::kFloat32, [&] { Gemm(left, right, mode, out); });
}

// Computes scales and codes of both float32 operands and then the float32 GEMM.
void BM_QuantizeAndMultiply(benchmark::State& state, const Size& size, const std::string& format) {
  SetThreadCount(size.threads);
  const AccumulationMode mode = ParseAccumulationMode(format == "int8" ? "exact" : "fp32");
  std::vector<float> out(size.Elements());
  Run(state, size, Peer::kFloat32, [&] {
    const QuantizedMatrix a = Quantized(Left(size), size, format, Granularity::kRow);
    const QuantizedMatrix b = Quantized(Right(size), size, format, Granularity::kTensor);
    Gemm(AsOperand(a, false), AsOperand(b, false), mode, out);
  });
}

// int8/exact as on a processor without AMX.
void BM_Vnni(benchmark::State& state, const Size& size) {
  if (!HasVnniTile()) return state.SkipWithError("this processor has no AVX-512 VNNI");
  SetThreadCount(size.threads);
  const QuantizedMatrix a = Quantized(Left(size), size, "int8", Granularity::kRow);
  const QuantizedMatrix b = Quantized(Right(size), size, "int8", Granularity::kTensor);
  const GemmOperand left = AsOperand(a, false), right = AsOperand(b, false);
  std::vector<float> out(size.Elements());
  const auto store = [&](const TilePlace& at, const int32_t* sums) {
    const TileScales scales{
        left.scales.data.data + at.row, right.scales.data.data, 1, 0, true, false, 0};
    const StoredTile tile{out.data() + at.row * size.n + at.col, size.n, at.rows, at.cols};
    StoreScaled(sums, at.stride, scales, tile);
  };
  Run(state, size, Peer::kInt8, [&] {
    VnniPath<int32_t> path(left, right);
    MultiplyTiles(path, size.n, size.n, {0, size.n}, store);
  });
}

void BM_OneDnnInt8(benchmark::State& state, const Size& size) {
  SetThreadCount(size.threads);
  const QuantizedMatrix a = Quantized(Left(size), size, "int8", Granularity::kTensor);
  const QuantizedMatrix b = Quantized(Right(size), size, "int8", Granularity::kTensor);
  std::vector<int32_t> out(size.Elements());
  std::function<void()> product;
  const auto prepare = [&](int) {
    product = OneDnnInt8Product(AsIntegers(a).data(), AsIntegers(b).data(), size.n, out.data());
  };
  CallLibrary(prepare);
  if (!product) return state.SkipWithError("numsim is built without oneDNN");
  Run(state, size, Peer::kInt8, [&] { CallLibrary([&](int) { product(); }); });
}

// The three GEMMs of a linear layer from `in` to `out` features over `tokens` tokens.
enum class LayerProduct { kForward, kInputGradient, kWeightGradient };

struct Layer {
  LayerProduct product;
  size_t tokens, in, out;

  size_t Rows() const { return product == LayerProduct::kWeightGradient ? out : tokens; }
  size_t Cols() const { return product == LayerProduct::kForward ? out : in; }
  size_t Inner() const {
    const bool forward = product == LayerProduct::kForward;
    return product == LayerProduct::kWeightGradient ? tokens : forward ? in : out;
  }
  double Operations() const {
    return 2.0 * static_cast<double>(tokens) * static_cast<double>(in * out);
  }
};

// Quantises a tensor as a layer stores it. A row of the tensor is a row of the GEMM operand, or a
// column if `transposed`; the scales are per row of the operand (none for bf16).
QuantizedMatrix LayerCodes(MatrixShape shape, bool transposed, const std::string& format) {
  QuantizeOptions options;
  options.format = ParseFormat(format).spec;
  options.layout.granularity = transposed ? Granularity::kColumn : Granularity::kRow;
  if (format == "bf16") {
    options.layout.granularity = Granularity::kTensor;
    options.scale_rule = ScaleRule::kNone;
  }
  return Quantize(HostMatrix(std::span(Input()).first(shape.Elements()), shape), options);
}

// Multiplies bf16 without scales, and other formats with one scale per row of each operand.
void BM_Layer(benchmark::State& state, const Layer& layer, int threads, const std::string& format) {
  SetThreadCount(threads);
  const bool transpose_a = layer.product == LayerProduct::kWeightGradient;
  const bool transpose_b = layer.product != LayerProduct::kForward;
  const MatrixShape a{layer.Rows(), layer.Inner()}, b{layer.Cols(), layer.Inner()};
  const auto stored = [](MatrixShape s, bool transposed) {
    return transposed ? MatrixShape{s.cols, s.rows} : s;
  };
  const QuantizedMatrix left = LayerCodes(stored(a, transpose_a), transpose_a, format);
  const QuantizedMatrix right = LayerCodes(stored(b, transpose_b), transpose_b, format);
  const GemmOperand left_operand = AsOperand(left, transpose_a);
  const GemmOperand right_operand = AsOperand(right, transpose_b);
  const AccumulationMode mode = ParseAccumulationMode(format == "int8" ? "exact" : "fp32");
  std::vector<float> out(a.rows * b.rows);
  const double limit = PeerRate(Peer::kFloat32, {1024, threads});
  for (auto _ : state) {
    Gemm(left_operand, right_operand, mode, out);
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  const double operations = static_cast<double>(state.iterations()) * layer.Operations();
  state.counters["GFLOP/s"] = Counter(operations / 1e9, Counter::kIsRate);
  state.counters["of_float32"] = Counter(operations / limit, Counter::kIsRate);
}

// Registers the layers of a small transformer: 256 images of 65 tokens, width 64.
void RegisterLayers(int threads) {
  constexpr struct {
    LayerProduct product;
    const char* name;
  } kProducts[] = {{LayerProduct::kForward, "forward"},
                   {LayerProduct::kInputGradient, "input_gradient"},
                   {LayerProduct::kWeightGradient, "weight_gradient"}};
  constexpr struct { size_t in, out; } kLayers[] = {{64, 64}, {64, 192}, {64, 256}, {256, 64}};
  for (const auto& product : kProducts) {
    for (const auto& of : kLayers) {
      const Layer layer{product.product, 16640, of.in, of.out};
      const std::string suffix = std::string("/") + product.name + "/16640x" +
                                 std::to_string(of.in) + "x" + std::to_string(of.out) +
                                 "/threads:" + std::to_string(threads);
      for (const char* const format : {"bf16", "int8", "e4m3fn"}) {
        Register("layer/" + std::string(format) + suffix,
                 [=](benchmark::State& state) { BM_Layer(state, layer, threads, format); });
      }
    }
  }
}

struct CodesRow {
  const char* format;
  const char* mode;
  size_t largest;
};

constexpr CodesRow kCodesRows[] = {{"int8", "exact", 2048},
                                   {"e4m3fn", "fp32", 1024},
                                   {"e4m3fn", "hopper-fp8-fast", 1024},
                                   {"e4m3fn", "hopper-fp8", 1024},
                                   {"e4m3fn", "hopper-mma-fp8", 1024},
                                   {"e4m3fn", "blackwell-fp8", 1024},
                                   {"e4m3fn", "mxf8f6f4", 1024},
                                   {"e2m1fn", "mxf4", 1024},
                                   {"e2m1fn", "mxf4nvf4", 1024},
                                   {"bf16", "hopper-bf16", 1024},
                                   {"fp16", "hopper-fp16", 1024},
                                   {"e4m3fn", "library", 1024},
                                   {"bf16", "library", 1024},
                                   {"e4m3fn", "exact", 1024},
                                   {"e5m2", "exact", 1024},
                                   {"bf16", "exact", 1024},
                                   {"e4m3fn", "fp64", 1024},
                                   {"e4m3fn", "fp16", 256}};

void RegisterSize(const Size& size) {
  const std::string suffix = size.Text();
  for (const char* const mode : {"fp32", "library", "fp64"}) {
    if (size.n > 1024 && std::string(mode) == "fp64") continue;
    Register("float32/" + std::string(mode) + suffix,
             [=](benchmark::State& state) { BM_Float32(state, size, mode); });
  }
  Register("float32/eigen" + suffix, [=](benchmark::State& state) { BM_Eigen(state, size); });
  Register("int8/onednn" + suffix, [=](benchmark::State& state) { BM_OneDnnInt8(state, size); });
  Register("int8/vnni" + suffix, [=](benchmark::State& state) { BM_Vnni(state, size); });
  for (const CodesRow& row : kCodesRows) {
    if (size.n > row.largest) continue;
    const bool blocks = IsBlockScaled(ParseAccumulationMode(row.mode));
    const auto run = blocks ? &BM_Blocks : &BM_Codes;
    Register(std::string(row.format) + "/" + row.mode + suffix,
             [=](benchmark::State& state) { run(state, size, row.format, row.mode); });
  }
  for (const char* const format : {"int8", "e4m3fn"}) {
    Register(std::string(format) + "/quantize_and_multiply" + suffix,
             [=](benchmark::State& state) { BM_QuantizeAndMultiply(state, size, format); });
  }
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  benchmark::AddCustomContext("library", numsim::GemmLibrary());
  benchmark::AddCustomContext("eigen", numsim::bench::EigenName());
  return numsim::bench::Main(argc, argv, [](int threads) {
    for (const size_t n : {256, 1024, 2048}) numsim::bench::RegisterSize({n, threads});
    numsim::bench::RegisterLayers(threads);
  });
}
