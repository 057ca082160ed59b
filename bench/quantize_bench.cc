// Scaled quantisation of a float32 matrix: absmax, and codes with given scales. Columns as in
// cast_bench.cc.
#include <benchmark/benchmark.h>

#include "bench/report.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/hadamard.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim::bench {
namespace {

constexpr MatrixShape kShape{4096, 4096};

void BM_Absmax(benchmark::State& state, const ScaleLayout& layout, int threads) {
  Prepare(threads);
  std::vector<float> absmax(layout.Count(kShape.rows, kShape.cols));
  for (auto _ : state) {
    Absmax(HostMatrix(Input(), kShape), layout, absmax);
    benchmark::ClobberMemory();
  }
  Report(state, threads, 4);
}

void BM_Quantize(benchmark::State& state, const QuantizeOptions& options, int threads) {
  Prepare(threads);
  const size_t scales = options.layout.Count(kShape.rows, kShape.cols);
  const std::vector<float> inv_scales(scales, 40.0f);
  const EncodePlan plan = MakeEncodePlan(options.format, options.rounding, options.overflow);
  std::vector<uint8_t> codes(kShape.Elements());
  for (auto _ : state) {
    Quantize(plan,
             HostMatrix(std::span(Input()), kShape),
             options.layout,
             inv_scales,
             std::span(codes),
             options.random,
             options.order == CodeOrder::kTransposed);
    benchmark::ClobberMemory();
  }
  Report(state, threads, 5);
}

// The bytes per element that quantising under scales of 16 elements must move: elements, codes, scales.
constexpr double kNvfp4Bytes = 4 + 1 + 4.0 / 16;

// Scales and codes of a matrix of float32 that no cache holds. The memory of the result is that of the call
// before.
void BM_Nvfp4(benchmark::State& state, const QuantizeOptions& options, int threads) {
  Prepare(threads);
  QuantizedMatrix result = Quantize(HostMatrix(std::span(Input()), kShape), options);
  for (auto _ : state) {
    QuantizeInto(HostMatrix(std::span(Input()), kShape), options, result);
    benchmark::ClobberMemory();
  }
  Report(state, threads, kNvfp4Bytes);
}

// A Hadamard transform of 16 elements along rows or columns, and, with options, the quantisation of its
// result. The input is a matrix of float32 that no cache holds.
void BM_Hadamard(benchmark::State& state,
                 HadamardAxis axis,
                 const QuantizeOptions* options,
                 int threads) {
  Prepare(threads);
  std::vector<float> transformed(kShape.Elements());
  QuantizedMatrix result;
  if (options != nullptr) result = Quantize(HostMatrix(std::span(Input()), kShape), *options);
  for (auto _ : state) {
    HadamardTransform(Input(), kShape, 16, RepeatedSigns(0xD7E8), axis, transformed);
    if (options != nullptr) {
      QuantizeInto(HostMatrix(std::span(transformed), kShape), *options, result);
    }
    benchmark::ClobberMemory();
  }
  Report(state, threads, options != nullptr ? kNvfp4Bytes : 8);
}

QuantizeOptions Nvfp4(const char* layout, RoundingMode mode) {
  QuantizeOptions options;
  options.format = ParseFormat("e2m1fn").spec;
  options.layout = ParseScaleLayout(layout);
  options.scale_rule = ScaleRule::kNvfp4;
  options.rounding.mode = mode;
  return options;
}

void RegisterHadamard(int threads) {
  static const QuantizeOptions kNearest = Nvfp4("block:16", RoundingMode::kNearestEven);
  static const QuantizeOptions kRows = Nvfp4("block:16", RoundingMode::kStochastic);
  static const QuantizeOptions kColumns = Nvfp4("tile:16x1", RoundingMode::kStochastic);
  const auto add = [=](const char* name, HadamardAxis axis, const QuantizeOptions* options) {
    Register(std::string(name) + "/threads:" + std::to_string(threads),
             [=](benchmark::State& state) { BM_Hadamard(state, axis, options, threads); });
  };
  const auto add_nvfp4 = [=](const char* name, QuantizeOptions options, int random_bits) {
    options.rounding.random_bits = random_bits;
    Register(std::string(name) + "/threads:" + std::to_string(threads),
             [=](benchmark::State& state) { BM_Nvfp4(state, options, threads); });
  };
  add_nvfp4("nvfp4", kNearest, 32);
  add_nvfp4("nvfp4/sr", kRows, 32);
  add_nvfp4("nvfp4/sr8", kRows, 8);
  add("hadamard:16/rows", HadamardAxis::kRows, nullptr);
  add("hadamard:16/columns", HadamardAxis::kColumns, nullptr);
  add("hadamard:16/rows/nvfp4", HadamardAxis::kRows, &kNearest);
  add("hadamard:16/rows/nvfp4/sr", HadamardAxis::kRows, &kRows);
  add("hadamard:16/columns/nvfp4/sr", HadamardAxis::kColumns, &kColumns);
}

void RegisterLayout(const std::string& layout_text, int threads) {
  const ScaleLayout layout = ParseScaleLayout(layout_text);
  const std::string suffix = "/" + layout_text + "/threads:" + std::to_string(threads);
  Register("absmax" + suffix, [=](benchmark::State& state) { BM_Absmax(state, layout, threads); });
  for (const char* name : {"int8", "e4m3fn"}) {
    for (const bool transpose : {false, true}) {
      QuantizeOptions options;
      options.format = ParseFormat(name).spec;
      options.layout = layout;
      options.order = transpose ? CodeOrder::kTransposed : CodeOrder::kInput;
      Register(std::string(transpose ? "quantize_transpose/" : "quantize/") + name + suffix,
               [=](benchmark::State& state) { BM_Quantize(state, options, threads); });
    }
  }
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  return numsim::bench::Main(argc, argv, [](int threads) {
    for (const char* layout : {"tensor",
                               "row",
                               "column",
                               "block:128",
                               "block:32",
                               "block:16",
                               "tile:128x128",
                               "tile:128x1"}) {
      numsim::bench::RegisterLayout(layout, threads);
    }
    numsim::bench::RegisterHadamard(threads);
  });
}
