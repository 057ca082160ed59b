// The cost of one call on eight elements, on the host: the calls that bench/python_calls.py makes from
// Python, under the same names. Outputs exist before the call, except where the call returns them.
#include <benchmark/benchmark.h>

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "numsim/backend/backend.h"
#include "numsim/cast/arithmetic.h"
#include "numsim/gemm.h"
#include "numsim/quantize.h"

namespace numsim::bench {
namespace {

void Add(const std::string& name, const std::function<void()>& call) {
  benchmark::RegisterBenchmark(name.c_str(), [call](benchmark::State& state) {
    for (auto _ : state) {
      call();
      benchmark::ClobberMemory();
    }
  });
}

struct Arrays {
  std::vector<float> x = {0.1F, -0.7F, 1.3F, -2.1F, 3.3F, -0.01F, 17.0F, 250.0F};
  std::vector<float> values = std::vector<float>(8);
  std::array<float, 4> product{};
  std::vector<uint8_t> codes = std::vector<uint8_t>(8), results = std::vector<uint8_t>(8);
};

void AddCasts(Arrays& at, const EncodePlan& plan) {
  const EncodePlan stochastic =
      MakeEncodePlan(plan.format, {.mode = RoundingMode::kStochastic, .random_bits = 16});
  Add("round", [&at, plan] { FakeQuantize(plan, at.x, at.values); });
  Add("round, 16 random bits", [&at, stochastic] {
    FakeQuantize(stochastic, at.x, at.values, {{1, 0}, 0});
  });
  const auto encode = [&at, plan] {
    Encode(plan, std::span<const float>(at.x), std::span(at.results));
  };
  Add("encode", encode);
  Add("cast", encode);  // the codes under another dtype
  Add("decode", [&at, plan] {
    Decode(plan.format, std::span<const uint8_t>(at.codes), std::span(at.values));
  });
}

void AddArithmetic(Arrays& at, const EncodePlan& plan) {
  const ArrayOperand operand{plan.format, std::span<const uint8_t>(at.codes)};
  const auto add = [&](const char* name, ArithmeticOp op) {
    const ArrayOperand none{plan.format, {}};
    const ArrayOperand third = op == ArithmeticOp::kFma ? operand : none;
    Add(name, [&at, plan, op, operand, third] {
      Arithmetic(op, operand, operand, third, plan, std::span(at.results));
    });
  };
  add("+", ArithmeticOp::kAdd);
  add("*", ArithmeticOp::kMultiply);
  add("fma", ArithmeticOp::kFma);
}

void AddMatrices(Arrays& at, const FormatSpec& format) {
  static QuantizedMatrix a, b, row;
  QuantizeOptions options{.format = format};
  QuantizeInto(HostMatrix(at.x, {2, 4}), options, a);
  QuantizeInto(HostMatrix(at.x, {4, 2}), options, b);
  QuantizeInto(HostMatrix(at.x, {1, 8}), options, row);
  Add("quantize", [&at, options] {
    benchmark::DoNotOptimize(Quantize(HostMatrix(at.x, {1, 8}), options));
  });
  Add("quantize by rows", [&at, options]() mutable {
    options.layout.granularity = Granularity::kRow;
    benchmark::DoNotOptimize(Quantize(HostMatrix(at.x, {1, 8}), options));
  });
  Add("dequantize", [&at] { Dequantize(row, std::span(at.values)); });
  const AccumulationMode mode = ParseAccumulationMode("fp32");
  Add("matmul of quantized",
      [&at, mode] { Gemm(AsOperand(a, false), AsOperand(b, true), mode, at.product); });
  Add("matmul of float32", [&at, mode] {
    GemmOperand left{.format = ParseFormat("fp32").spec, .transposed = false};
    GemmOperand right = left;
    left.rows = right.rows = 2;
    left.inner = right.inner = 4;
    right.transposed = true;
    left.values = right.values = at.x;
    Gemm(left, right, mode, at.product);
  });
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  using namespace numsim;
  benchmark::Initialize(&argc, argv);
  ForceBackendFromEnvironment();
  static bench::Arrays at;
  const FormatSpec format = ParseFormat("e4m3fn").spec;
  const EncodePlan plan = MakeEncodePlan(format);
  Encode(plan, std::span<const float>(at.x), std::span(at.codes));
  bench::AddCasts(at, plan);
  bench::AddArithmetic(at, plan);
  bench::AddMatrices(at, format);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
