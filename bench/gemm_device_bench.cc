// GEMM A B^T with the shapes of a training step on the device: tokens x inputs times outputs x
// inputs, and weight gradients of narrow layers, whose sums run over 65,536 tokens. The time is the
// device's, measured by events around each launch. Counters: TFLOP/s (2 operations per product, also
// for integers) and of_bf16, the ratio to the rate of cuBLASLt's bf16 GEMM of the same shape,
// measured in this process. Codes are random. Launches rotate through
// several operands, so that no launch finds its operands in the cache.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "numsim/backend/device_context.h"
#include "numsim/base/error.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/random/streams.h"

namespace numsim::bench {
namespace {

constexpr int kWarmUp = 5, kLaunches = 30;

struct Shape {
  size_t tokens, outputs, inputs;
  bool transposed = false;  // both operands are stored with the inner dimension first

  double Operations() const {
    return 2.0 * static_cast<double>(tokens) * static_cast<double>(outputs) *
           static_cast<double>(inputs);
  }
  std::string Text() const {
    return fmt::format("{}x{}x{}{}", tokens, outputs, inputs, transposed ? "/transposed" : "");
  }
  auto operator<=>(const Shape&) const = default;
};

// Returns codes of approximately normally distributed values, scaled to the format; the same in
// every run.
std::vector<uint8_t> RandomCodes(const FormatSpec& format, size_t n, uint64_t seed) {
  constexpr size_t kPeriod = size_t{1} << 22;  // in elements; the codes repeat with period 2^22 - 1
  const size_t distinct = std::min(n, kPeriod - 1);
  std::vector<uint32_t> words(distinct);
  RandomBitsArray({{seed, 0}, 0}, 32, words);
  std::vector<float> values(distinct);
  const float scale = format.sign == Sign::kTwosComplement ? 32.0f
                      : format.StorageBytes() == 1         ? 16.0f
                                                           : 1.0f;
  for (size_t i = 0; i < distinct; ++i) {
    float sum = -510;  // sum of four uniform bytes, minus its mean
    for (int byte = 0; byte < 4; ++byte) sum += static_cast<float>(words[i] >> 8 * byte & 255);
    values[i] = scale * sum / 148.0f;
  }
  const size_t bytes = static_cast<size_t>(format.StorageBytes());
  std::vector<uint8_t> codes(n * bytes);
  const EncodePlan plan = MakeEncodePlan(format, Rounding{}, Overflow::kSaturate);
  if (bytes == 1) {
    Encode(plan, values, std::span(codes).first(distinct));
  } else {
    Encode(plan, values, std::span(reinterpret_cast<uint16_t*>(codes.data()), distinct));
  }
  for (size_t i = distinct * bytes; i < codes.size(); ++i) codes[i] = codes[i - distinct * bytes];
  return codes;
}

// kBlocks: per row and 128 elements of it; kAnyBlocks: the same, not powers of two; kTiles: per 128
// rows and 128 elements.
enum class ScalesFor { kNone, kTensor, kRows, kBlocks, kAnyBlocks, kTiles };
constexpr std::string_view kScalesNames[] = {
    "none", "tensor", "rows", "blocks", "any-blocks", "tiles"};
constexpr size_t kBlock = 128;

bool AreBlocks(ScalesFor kind) { return kind >= ScalesFor::kBlocks; }

// One benchmark: operands, accumulation mode, scales, output and engine.
struct Row {
  const char* format;
  const char* rule;
  ScalesFor scales_a, scales_b;
  Element out;
  DeviceGemmEngine engine;

  std::string Text() const {
    return fmt::format("{}/{}/{}.{}/{}/{}",
                       format,
                       rule,
                       kScalesNames[static_cast<size_t>(scales_a)],
                       kScalesNames[static_cast<size_t>(scales_b)],
                       out == Element::kBfloat16 ? "bf16" : "float32",
                       ToString(engine));
  }
};

// Operands and results of one launch.
struct Buffers {
  Buffer<uint8_t> a, b;
  FloatBuffer out;
};

class Problem {
 public:
  Problem(const Row& row, const Shape& shape) : row_(row), rule_(ParseAccumulationMode(row.rule)) {
    const FormatSpec format = ParseFormat(row.format).spec;
    const Place place = ThreadPlace();
    const std::vector<uint8_t> a = RandomCodes(format, shape.tokens * shape.inputs, 1);
    const std::vector<uint8_t> b = RandomCodes(format, shape.outputs * shape.inputs, 2);
    const size_t results = shape.tokens * shape.outputs * BytesOf(row.out, place);
    // Uses enough sets that the others evict each one from the cache.
    const size_t set = a.size() + b.size() + results;
    const size_t sets = std::clamp<size_t>(1 + 4 * Device().l2_bytes / set, 2, 16);
    for (size_t i = 0; i < sets; ++i) {
      buffers_.push_back({CopyAt(a, place), CopyAt(b, place), FloatBuffer(place, row.out)});
      buffers_.back().out.Renew(shape.tokens, shape.outputs);
    }
    const bool transposed = shape.transposed;
    a_ = {.format = format, .rows = shape.tokens, .inner = shape.inputs, .transposed = transposed};
    b_ = {.format = format, .rows = shape.outputs, .inner = shape.inputs, .transposed = transposed};
    SetScales(row.scales_a, a_, scales_a_);
    SetScales(row.scales_b, b_, scales_b_);
  }

  // Launches in the thread's stream.
  void Launch() {
    Buffers& buffers = buffers_[next_++ % buffers_.size()];
    SetCodes(a_, buffers.a.View());
    SetCodes(b_, buffers.b.View());
    Gemm(a_, b_, rule_, buffers.out.View(), row_.engine);
  }

 private:
  static void SetCodes(GemmOperand& x, MatrixSpan<const uint8_t> bytes) {
    if (x.format.StorageBytes() == 1) {
      x.codes8 = bytes;
    } else {
      const auto* const codes = reinterpret_cast<const uint16_t*>(bytes.data);
      x.codes16 = {codes, x.Stored(), bytes.place};
    }
  }

  static void SetScales(ScalesFor kind, GemmOperand& x, Buffer<float>& memory) {
    if (kind == ScalesFor::kNone) return;
    const size_t rows = x.rows, inner = x.inner;
    const size_t segments = (inner + kBlock - 1) / kBlock;
    const size_t groups = kind == ScalesFor::kTiles ? (rows + kBlock - 1) / kBlock : rows;
    const size_t count = AreBlocks(kind)              ? groups * segments
                         : kind == ScalesFor::kTensor ? 1
                                                      : rows;
    const bool powers = kind == ScalesFor::kBlocks || kind == ScalesFor::kTiles;
    std::vector<float> scales(count);
    for (size_t i = 0; i < scales.size(); ++i) {
      scales[i] = powers ? std::ldexp(1.0f, -static_cast<int>(i % 7))
                         : 1e-2f * (1 + static_cast<float>(i % 97) / 97);
    }
    memory = CopyAt(scales, ThreadPlace());
    x.scales = {.data = memory.View(), .row_stride = kind == ScalesFor::kTensor ? 0u : 1u};
    if (!AreBlocks(kind)) return;
    x.scales.row_group = kind == ScalesFor::kTiles ? kBlock : 1;
    x.scales.row_stride = segments;
    x.scales.segment = kBlock;
    x.scales.segment_stride = 1;
  }

  Row row_;
  AccumulationMode rule_;
  std::vector<Buffers> buffers_;
  Buffer<float> scales_a_, scales_b_;
  GemmOperand a_, b_;
  size_t next_ = 0;
};

// Returns the time of each of kLaunches launches in seconds, after the warm-up.
std::vector<double> Times(const Row& row, const Shape& shape) {
  DeviceStream& stream = ThreadStream();
  Problem problem(row, shape);
  for (int i = 0; i < kWarmUp; ++i) problem.Launch();
  std::vector<std::array<DeviceEvent, 2>> events(kLaunches);
  for (auto& [begin, end] : events) {
    begin.Record(stream);
    problem.Launch();
    end.Record(stream);
  }
  std::vector<double> seconds;
  for (const auto& [begin, end] : events) seconds.push_back(DeviceEvent::Seconds(begin, end));
  return seconds;
}

double Median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

constexpr ScalesFor kNo = ScalesFor::kNone, kTensor = ScalesFor::kTensor, kRows = ScalesFor::kRows;
constexpr ScalesFor kBlocks = ScalesFor::kBlocks, kAnyBlocks = ScalesFor::kAnyBlocks;
constexpr ScalesFor kTiles = ScalesFor::kTiles;
constexpr Element kFloat = Element::kFloat32, kHalf = Element::kBfloat16;
constexpr DeviceGemmEngine kLibrary = DeviceGemmEngine::kLibrary, kOwn = DeviceGemmEngine::kOwn;

constexpr Row kBf16Peer = {"bf16", "library", kNo, kNo, kHalf, kLibrary};
constexpr Row kTable[] = {
    kBf16Peer,
    {"bf16", "hopper-bf16", kNo, kNo, kHalf, kLibrary},
    {"bf16", "hopper-bf16", kNo, kNo, kFloat, kLibrary},
    {"int8", "exact", kRows, kTensor, kHalf, kLibrary},
    {"int8", "exact", kRows, kTensor, kHalf, kOwn},
    {"int8", "exact", kRows, kRows, kHalf, kOwn},
    {"int8", "exact", kTensor, kTensor, kFloat, kOwn},
    {"e4m3fn", "library", kNo, kNo, kHalf, kLibrary},
    {"e4m3fn", "library", kTensor, kTensor, kHalf, kLibrary},
    {"e4m3fn", "library", kRows, kRows, kHalf, kLibrary},
    {"e4m3fn", "hopper-fp8-fast", kNo, kNo, kHalf, kLibrary},
    {"e4m3fn", "hopper-fp8-fast", kTensor, kTensor, kHalf, kLibrary},
    {"e4m3fn", "hopper-fp8-fast", kRows, kTensor, kHalf, kLibrary},
    {"e4m3fn", "hopper-fp8-fast", kNo, kNo, kHalf, kOwn},
    {"e4m3fn", "hopper-fp8-fast", kTensor, kTensor, kHalf, kOwn},
    {"e4m3fn", "hopper-fp8-fast", kRows, kTensor, kHalf, kOwn},
    {"e4m3fn", "hopper-fp8-fast", kRows, kRows, kFloat, kOwn},
    {"e4m3fn", "hopper-fp8", kNo, kNo, kHalf, kLibrary},
    {"e4m3fn", "hopper-fp8-fast", kBlocks, kTiles, kHalf, kOwn},
    {"e4m3fn", "hopper-fp8-fast", kBlocks, kBlocks, kHalf, kOwn},
    {"e4m3fn", "hopper-fp8-fast", kBlocks, kBlocks, kFloat, kOwn},
    {"e4m3fn", "hopper-fp8-fast", kAnyBlocks, kAnyBlocks, kHalf, kOwn},
    {"int8", "exact", kBlocks, kTiles, kHalf, kOwn},
};

constexpr Shape kShapes[] = {{8192, 8192, 8192},
                             {65536, 4096, 4096},
                             {65536, 16384, 4096},
                             {65536, 4096, 16384},
                             {4096, 4096, 65536},
                             {16384, 5120, 1280}};

// Weight gradients G^T X of a Llama of width 768, unsplit and in parts.
constexpr Row kGradientTable[] = {{"bf16", "library", kNo, kNo, kFloat, kLibrary},
                                  {"bf16", "hopper-bf16", kNo, kNo, kFloat, kLibrary},
                                  {"bf16", "trunc:25,16,4096", kNo, kNo, kFloat, kLibrary},
                                  {"bf16", "trunc:25,16,8192", kNo, kNo, kFloat, kLibrary},
                                  {"bf16", "trunc:25,16,16384", kNo, kNo, kFloat, kLibrary},
                                  {"bf16", "trunc:25,16,8192", kNo, kNo, kHalf, kLibrary}};
constexpr Shape kGradientShapes[] = {{768, 768, 65536, true},
                                     {768, 2304, 65536, true},
                                     {768, 4096, 65536, true},
                                     {32000, 768, 65536, true}};

double PeerSeconds(const Shape& shape) {
  static std::map<Shape, double> measured;
  if (!measured.contains(shape)) measured[shape] = Median(Times(kBf16Peer, shape));
  return measured[shape];
}

// Reports the median of all launches as the time of one iteration.
void Run(benchmark::State& state, const Row& row, const Shape& shape) {
  try {
    const double peer = PeerSeconds(shape);
    const std::vector<double> seconds = Times(row, shape);
    const double median = Median(seconds);
    for (auto _ : state) state.SetIterationTime(median);
    state.counters["TFLOP/s"] = shape.Operations() / median / 1e12;
    state.counters["of_bf16"] = peer / median;
    state.counters["least_ms"] = 1e3 * *std::min_element(seconds.begin(), seconds.end());
  } catch (const Error& error) {
    state.SkipWithError(error.what());
  }
}

void Register(std::span<const Shape> shapes, std::span<const Row> table) {
  for (const Shape& shape : shapes) {
    for (const Row& row : table) {
      const std::string name = row.Text() + "/" + shape.Text();
      benchmark::RegisterBenchmark(name.c_str(),
                                   [=](benchmark::State& state) { Run(state, row, shape); })
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond)
          ->Iterations(1);
    }
  }
}

void RegisterAll() {
  Register(kShapes, kTable);
  Register(kGradientShapes, kGradientTable);
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (!numsim::DeviceAvailable()) {
    fmt::print(stderr, "no measurement: {}\n", numsim::DeviceUnavailable());
    return 0;
  }
  benchmark::AddCustomContext("device", numsim::Device().name);
  benchmark::AddCustomContext("library", numsim::DeviceGemmLibrary());
  numsim::bench::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
