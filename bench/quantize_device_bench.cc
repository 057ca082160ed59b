// Quantisation of 65,536 x 4,096 values on the device, compared with a copy in the same process.
//
// Columns: time, the median over launches, measured by events; GB/s, each input read once and each
// output written once; of_copy, the ratio to the copy's rate; goal, the intended of_copy. Launches
// rotate through buffers that exceed the second-level cache.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "numsim/backend/device_context.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/quantize/internal/quantize_device.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/quantize/shared/transpose_device.h"
#include "numsim/random/streams.h"

namespace numsim::bench {
namespace {

constexpr MatrixShape kShape{65536, 4096};
constexpr size_t kElements = kShape.rows * kShape.cols;
constexpr int kSets = 2;  // each one alone exceeds the cache
constexpr int kLaunches = 30;
constexpr int kWarmUp = 5;

// Random numbers in both element types, and buffers for results.
struct Buffers {
  FloatBuffer values{ThreadPlace()}, bf16{ThreadPlace(), Element::kBfloat16};
  Buffer<uint8_t> codes{ThreadPlace(), 2 * kElements};  // of one or two bytes
  Buffer<uint8_t> transposed{ThreadPlace(), kElements};
  Buffer<float> scales, absmax{ThreadPlace()};
  QuantizedMatrix matrix;

  FloatSpan In(Element element) {
    return element == Element::kBfloat16 ? bf16.View() : values.View();
  }
  // Returns the scales of a layout.
  MatrixSpan<const float> Scales(const ScaleLayout& layout) const {
    return scales.View().Columns(0, layout.Count(kShape.rows, kShape.cols));
  }
};

std::vector<Buffers>& Sets() {
  static std::vector<Buffers> sets = [] {
    // Approximately normal: sums of four random bytes. One block is repeated with different
    // offsets.
    std::vector<float> host(kElements / 64 + 4096);
    for (size_t i = 0; i < host.size(); ++i) {
      const uint32_t w = RandomWord({.seed = 1, .stream = 2}, i);
      const uint32_t sum = (w & 255) + (w >> 8 & 255) + (w >> 16 & 255) + (w >> 24);
      host[i] = (static_cast<float>(sum) - 510.0f) / 148.0f + static_cast<float>(w) * 0x1p-44f;
    }
    std::vector<Buffers> made(kSets);
    for (size_t s = 0; s < made.size(); ++s) {
      Buffers& set = made[s];
      const FloatSpan values = set.values.Renew(kShape.rows, kShape.cols);
      set.scales = CopyAt(std::vector<float>(kShape.rows, 25.0f), ThreadPlace());
      for (size_t part = 0; part < 64; ++part) {
        const size_t n = kElements / 64;
        CopyMatrix<float>(std::span<const float>(host).subspan(61 * part + s, n),
                          values.Float32().As(1, kElements).Columns(part * n, n));
      }
      Convert(values, set.bf16.Renew(kShape.rows, kShape.cols));
      Quantize(MakeEncodePlan(kInt8, {}, Overflow::kSaturate),
               set.bf16.View(),
               {},
               set.Scales({}),
               set.codes.View().Columns(0, kElements));
    }
    return made;
  }();
  return sets;
}

using Work = std::function<void(Buffers&)>;

// Returns the time of each launch in seconds.
std::vector<double> Times(const Work& work, int launches) {
  DeviceStream& stream = ThreadStream();
  std::vector<Buffers>& sets = Sets();
  for (int i = 0; i < kWarmUp; ++i) work(sets[static_cast<size_t>(i) % kSets]);
  std::vector<DeviceEvent> events(static_cast<size_t>(launches) + 1);
  events[0].Record(stream);
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    work(sets[i % kSets]);
    events[i + 1].Record(stream);
  }
  stream.Wait();
  std::vector<double> seconds;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    seconds.push_back(DeviceEvent::Seconds(events[i], events[i + 1]));
  }
  return seconds;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void CopySet(Buffers& set) {
  // Copies half of the values to the other half; reads and writes the same number of bytes.
  const MatrixSpan<float> values = set.values.View().Float32();
  CopyMatrix<float>(values.Rows(0, kShape.rows / 2), values.Rows(kShape.rows / 2, kShape.rows / 2));
}

double CopyBytesPerSecond() {
  static const double rate = [] {
    return static_cast<double>(kElements * sizeof(float)) / Median(Times(CopySet, kLaunches));
  }();
  return rate;
}

// Registers a benchmark whose single iteration is the median of kLaunches launches.
void Register(const std::string& name, double bytes_per_element, double goal, const Work& work) {
  auto* bench = benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    const double bytes = bytes_per_element * static_cast<double>(kElements);
    double seconds = 0;
    for (auto _ : state) {
      seconds = Median(Times(work, kLaunches));
      state.SetIterationTime(seconds);
    }
    state.counters["GB/s"] = bytes / seconds / 1e9;
    state.counters["of_copy"] = bytes / seconds / CopyBytesPerSecond();
    if (goal > 0) state.counters["goal"] = goal;
  });
  bench->UseManualTime()->Iterations(1)->Unit(benchmark::kMicrosecond);
}

// Returns the computation of scales and codes of the matrix with a scale layout.
Work QuantizeWork(Element element,
                  const char* format,
                  const char* layout,
                  CodeOrder order,
                  const Rounding& rounding = {}) {
  QuantizeOptions options;
  options.format = ParseFormat(format).spec;
  options.layout = ParseScaleLayout(layout);
  options.order = order;
  options.rounding = rounding;
  return [=](Buffers& set) { QuantizeInto(set.In(element), options, set.matrix); };
}

// Returns the computation of codes only, with given scales.
Work CodesWork(Element element,
               const char* format,
               const char* layout_text,
               bool codes,
               bool transposed,
               const Rounding& rounding = {}) {
  const EncodePlan plan = MakeEncodePlan(ParseFormat(format).spec, rounding, Overflow::kSaturate);
  const ScaleLayout layout = ParseScaleLayout(layout_text);
  return [=](Buffers& set) {
    cuda::Quantize(plan,
                   set.In(element),
                   layout,
                   set.Scales(layout),
                   codes ? set.codes.View().data : nullptr,
                   transposed ? set.transposed.View().data : nullptr,
                   {});
  };
}

Work AbsmaxWork(Element element, const char* layout_text) {
  const ScaleLayout layout = ParseScaleLayout(layout_text);
  return [=](Buffers& set) {
    const size_t count = layout.Count(kShape.rows, kShape.cols);
    Absmax(set.In(element), layout, set.absmax.Renew(count));
  };
}

void RegisterElement(Element element, const std::string& suffix) {
  const double in = static_cast<double>(BytesOf(element, ThreadPlace()));
  for (const char* format : {"int8", "e4m3fn", "e5m2"}) {
    const std::string of = "/" + std::string(format) + suffix;
    Register(
        "row_wise" + of, in + 1, 0.85, QuantizeWork(element, format, "row", CodeOrder::kInput));
    Register("tensor_codes" + of, in + 1, 0.85, CodesWork(element, format, "tensor", true, false));
    Register("tensor_wise" + of,
             2 * in + 1,
             0,
             QuantizeWork(element, format, "tensor", CodeOrder::kInput));
    Register("codes_both_orders/tensor" + of,
             in + 2,
             0.75,
             CodesWork(element, format, "tensor", true, true));
    Register(
        "codes_both_orders/row" + of, in + 2, 0.75, CodesWork(element, format, "row", true, true));
    Register("codes_both_orders/column" + of,
             in + 2,
             0.75,
             CodesWork(element, format, "column", true, true));
    Register("codes_transposed/tensor" + of,
             in + 1,
             0.75,
             CodesWork(element, format, "tensor", false, true));
    Register("tensor_wise_both_orders" + of,
             2 * in + 2,
             0,
             QuantizeWork(element, format, "tensor", CodeOrder::kBoth));
    Register("column_wise_transposed" + of,
             2 * in + 1,
             0,
             QuantizeWork(element, format, "column", CodeOrder::kTransposed));
  }
  for (const char* format : {"e3m4", "e2m3fn", "e2m1fn", "binary8p3se"}) {
    const std::string of = "/" + std::string(format) + suffix;
    Register(
        "row_wise" + of, in + 1, 0.85, QuantizeWork(element, format, "row", CodeOrder::kInput));
    Register("codes_both_orders/tensor" + of,
             in + 2,
             0,
             CodesWork(element, format, "tensor", true, true));
  }
  const Rounding drawn = {RoundingMode::kStochastic, StochasticVariant::kA, 16};
  for (const char* format : {"e4m3fn", "e3m4"}) {
    Register("row_wise_sr16/" + std::string(format) + suffix,
             in + 1,
             0.6,
             QuantizeWork(element, format, "row", CodeOrder::kInput, drawn));
  }
  // Calls that the kernels with one read do not serve: a part is scaled to float32 and then cast.
  Register("tensor_codes_sr16/e4m3fn" + suffix,
           in + 1,
           0,
           CodesWork(element, "e4m3fn", "tensor", true, false, drawn));
  Register("codes_both_orders_sr16/row/e4m3fn" + suffix,
           in + 2,
           0,
           CodesWork(element, "e4m3fn", "row", true, true, drawn));
  Register("codes_both_orders_sr16/column/e4m3fn" + suffix,
           in + 2,
           0,
           CodesWork(element, "e4m3fn", "column", true, true, drawn));
  for (const char* format : {"bnb-e4m3", "e8m0fnu"}) {
    Register("tensor_codes/" + std::string(format) + suffix,
             in + 1,
             0,
             CodesWork(element, format, "tensor", true, false));
  }
  Register(
      "tensor_codes/fp16" + suffix, in + 2, 0, CodesWork(element, "fp16", "tensor", true, false));
  for (const char* layout : {"tensor", "row", "column", "block:128"}) {
    Register("absmax/" + std::string(layout) + suffix, in, 0, AbsmaxWork(element, layout));
  }
}

void RegisterValues() {
  for (const char* name : {"int8", "e4m3fn", "e5m2"}) {
    const FormatSpec format = ParseFormat(name).spec;
    for (const Element element : {Element::kBfloat16, Element::kFloat32}) {
      const bool bf16 = element == Element::kBfloat16;
      Register("dequantize/" + std::string(name) + (bf16 ? "/bf16" : "/fp32"),
               1 + static_cast<double>(BytesOf(element, ThreadPlace())),
               0.9,
               [=](Buffers& set) {
                 Dequantize(format,
                            set.codes.View().Columns(0, kElements),
                            {Granularity::kRow},
                            set.Scales({Granularity::kRow}),
                            set.In(element));
               });
    }
  }
  Register("convert/fp32/bf16", 6, 0.9, [](Buffers& set) {
    Convert(set.values.View(), set.bf16.View());
  });
  Register("transpose/1", 2, 0.75, [](Buffers& set) {
    cuda::Transpose(set.codes.View().data, kShape, 1, set.transposed.View().data, ThreadStream());
  });
  Register("transpose/2", 4, 0.75, [](Buffers& set) {
    cuda::Transpose(set.bf16.View().data, kShape, 2, set.values.View().data, ThreadStream());
  });
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  using namespace numsim::bench;
  if (!numsim::DeviceAvailable()) {
    std::printf("skipped: %s\n", numsim::DeviceUnavailable().c_str());
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  Register("copy", 4, 0, CopySet);
  RegisterElement(numsim::Element::kBfloat16, "/bf16");
  RegisterElement(numsim::Element::kFloat32, "/fp32");
  RegisterValues();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
