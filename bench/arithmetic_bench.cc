// Arithmetic on arrays of codes. Columns: Melem/s (results), GB/s (read plus written), and
// of_memcpy (the ratio to memcpy's GB/s). "scalar" is the reference, one function call per element.
// "table" is the simplest fast method for two 8-bit operands: a lookup in 65,536 precomputed
// results.
//
// Elementary functions: "gelu/..." is the array function, which builds a table of the results for
// all codes in each call; "table_..." only looks up in a table that exists; "evaluate_..." is the
// evaluation of the function for all codes of the format, the cost of a table.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/report.h"
#include "numsim/base/parallel.h"
#include "numsim/cast/arithmetic.h"
#include "numsim/cast/elementary.h"
#include "numsim/formats/format_table.h"

namespace numsim::bench {
namespace {

struct Case {
  ArithmeticOp op;
  const char* name;
};
constexpr Case kCases[] = {{ArithmeticOp::kAdd, "add"},
                           {ArithmeticOp::kMultiply, "mul"},
                           {ArithmeticOp::kFma, "fma"},
                           {ArithmeticOp::kDivide, "div"},
                           {ArithmeticOp::kSquareRoot, "sqrt"}};

// Returns the codes of Input(), rotated by `offset` so that the operands differ.
template <typename Code>
std::vector<Code> InputCodes(const FormatSpec& format, size_t offset) {
  std::vector<Code> codes(kElements);
  Encode(MakeEncodePlan(format), std::span(Input()), std::span(codes));
  std::rotate(codes.begin(), codes.begin() + static_cast<std::ptrdiff_t>(offset), codes.end());
  return codes;
}

template <typename Code>
void BM_Arithmetic(
    benchmark::State& state, ArithmeticOp op, const EncodePlan& plan, bool flags, int threads) {
  Prepare(threads);
  const FormatSpec& format = plan.format;
  const int arity = Arity(op);
  std::vector<Code> operands[3], out(kElements);
  ArrayOperand x[3] = {{format, {}}, {format, {}}, {format, {}}};
  for (int i = 0; i < arity; ++i) {
    operands[i] = InputCodes<Code>(format, static_cast<size_t>(1000 * i));
    x[i].codes = std::span<const Code>(operands[i]);
  }
  for (auto _ : state) {
    Arithmetic(op, x[0], x[1], x[2], plan, std::span(out), {{7, 0}, 0}, flags);
    benchmark::ClobberMemory();
  }
  Report(state, threads, (arity + 1) * static_cast<double>(sizeof(Code)));
}

void BM_Scalar(benchmark::State& state, const EncodePlan& plan, int threads) {
  Prepare(threads);
  const std::vector<uint16_t> a = InputCodes<uint16_t>(plan.format, 0);
  const std::vector<uint16_t> b = InputCodes<uint16_t>(plan.format, 1000);
  std::vector<uint16_t> out(kElements);
  for (auto _ : state) {
    ParallelFor(kElements, 1 << 14, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        out[i] = static_cast<uint16_t>(Add({plan.format, a[i]}, {plan.format, b[i]}, plan).code);
      }
    });
    benchmark::ClobberMemory();
  }
  Report(state, threads, 6);
}

void BM_Table(benchmark::State& state, const EncodePlan& plan, int threads) {
  Prepare(threads);
  const std::vector<uint8_t> a = InputCodes<uint8_t>(plan.format, 0);
  const std::vector<uint8_t> b = InputCodes<uint8_t>(plan.format, 1000);
  std::vector<uint8_t> table(65536), out(kElements);
  for (uint32_t i = 0; i < 65536; ++i) {
    table[i] = static_cast<uint8_t>(Add({plan.format, i >> 8}, {plan.format, i & 255}, plan).code);
  }
  for (auto _ : state) {
    ParallelFor(kElements, 1 << 14, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) out[i] = table[size_t{a[i]} << 8 | b[i]];
    });
    benchmark::ClobberMemory();
  }
  Report(state, threads, 3);
}

template <typename Code>
void BM_Elementary(benchmark::State& state,
                   ElementaryFunction function,
                   const EncodePlan& plan,
                   bool with_table,
                   bool flags,
                   int threads) {
  Prepare(threads);
  const std::vector<Code> codes = InputCodes<Code>(plan.format, 0);
  const std::span<const Code> in(codes);
  std::vector<Code> out(kElements);
  const ElementaryTable table(function, plan.format, plan);
  for (auto _ : state) {
    if (with_table) {
      table.Apply(in, std::span(out), {{7, 0}, 0}, flags);
    } else {
      Elementary(function, {plan.format, in}, plan, std::span(out), {{7, 0}, 0}, flags);
    }
    benchmark::ClobberMemory();
  }
  Report(state, threads, 2 * static_cast<double>(sizeof(Code)));
}

// One iteration evaluates every code of the format.
void BM_Evaluate(benchmark::State& state,
                 ElementaryFunction function,
                 const EncodePlan& plan,
                 int threads) {
  Prepare(threads);
  for (auto _ : state) {
    benchmark::DoNotOptimize(ElementaryTable(function, plan.format, plan));
  }
}

void RegisterElementary(const std::string& name, int threads) {
  const FormatSpec format = ParseFormat(name).spec;
  const std::string suffix = "/" + name + "/threads:" + std::to_string(threads);
  const auto add = [&](const std::string& what, const Rounding& r, bool with_table, bool flags) {
    const EncodePlan plan = MakeEncodePlan(format, r);
    Register(what + suffix, [=](benchmark::State& state) {
      constexpr auto kFunction = ElementaryFunction::kGelu;
      if (format.StorageBytes() == 1) {
        return BM_Elementary<uint8_t>(state, kFunction, plan, with_table, flags, threads);
      }
      return BM_Elementary<uint16_t>(state, kFunction, plan, with_table, flags, threads);
    });
  };
  const Rounding stochastic = {RoundingMode::kStochastic, StochasticVariant::kA, 16};
  add("gelu_rne", {}, false, false);
  add("table_gelu_rne", {}, true, false);
  add("table_gelu_rne_flags", {}, true, true);
  add("table_gelu_sr16", stochastic, true, false);
  for (ElementaryFunction function : kElementaryFunctions) {
    Register("evaluate_" + std::string(ToString(function)) + suffix, [=](benchmark::State& state) {
      BM_Evaluate(state, function, MakeEncodePlan(format), threads);
    });
  }
}

void RegisterFormat(const std::string& name, int threads) {
  const FormatSpec format = ParseFormat(name).spec;
  const std::string suffix = "/" + name + "/threads:" + std::to_string(threads);
  const auto add = [&](const std::string& what, ArithmeticOp op, const Rounding& r, bool flags) {
    const EncodePlan plan = MakeEncodePlan(format, r);
    Register(what + suffix, [=](benchmark::State& state) {
      if (format.StorageBytes() == 1)
        return BM_Arithmetic<uint8_t>(state, op, plan, flags, threads);
      if (format.StorageBytes() == 2) {
        return BM_Arithmetic<uint16_t>(state, op, plan, flags, threads);
      }
      return BM_Arithmetic<uint32_t>(state, op, plan, flags, threads);
    });
  };
  for (const Case& c : kCases) {
    add(std::string(c.name) + "_rne", c.op, {}, false);
    add(std::string(c.name) + "_rne_flags", c.op, {}, true);
  }
  add("add_rtp", ArithmeticOp::kAdd, {RoundingMode::kUp}, false);
  add("add_sr16",
      ArithmeticOp::kAdd,
      {RoundingMode::kStochastic, StochasticVariant::kA, 16},
      false);
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  return numsim::bench::Main(argc, argv, [](int threads) {
    using namespace numsim;
    using namespace numsim::bench;
    for (const char* name : {"e4m3fn", "e5m2", "fp16", "bf16", "fp32"}) {
      RegisterFormat(name, threads);
    }
    for (const char* name : {"e4m3fn", "fp16", "bf16"}) RegisterElementary(name, threads);
    const std::string suffix = "/threads:" + std::to_string(threads);
    Register("scalar_add_rne/fp16" + suffix, [=](benchmark::State& state) {
      BM_Scalar(state, MakeEncodePlan(ParseFormat("fp16").spec), threads);
    });
    Register("table_add_rne/e4m3fn" + suffix, [=](benchmark::State& state) {
      BM_Table(state, MakeEncodePlan(ParseFormat("e4m3fn").spec), threads);
    });
  });
}
