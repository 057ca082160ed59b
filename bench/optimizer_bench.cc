// Steps of optimisers: one matrix of 2^20 (1M) and of 2^24 (16M) parameters, with float32 weights.
// Columns:
//   ms            time per step
//   GB/s          rate of the bytes that a step must at least move: it reads gradient, stored
//                 moments and weights, and writes stored moments and weights
//   of_memcpy     ratio to the best rate of memcpy in the same process with as many threads
// Rows: kind, formats of m and v. adamw/fp32 is the reference for the others.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/report.h"
#include "numsim/base/parallel.h"
#include "numsim/optim/optimizer.h"
#include "numsim/random/distributions.h"

namespace numsim::bench {
namespace {

struct Problem {
  OptimizerKind kind = OptimizerKind::kAdamW;
  std::string m = "fp32", v = "fp32";
  size_t n = kElements;
};

double Seconds(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Returns bytes per second, read plus written, of the best of several copies of n floats.
double MemcpyRate(size_t n) {
  const std::vector<float> from(n, 1);
  std::vector<float> to(n);
  double best = 1e9;
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ParallelFor(n, 65536, [&](size_t begin, size_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, (end - begin) * sizeof(float));
    });
    benchmark::ClobberMemory();
    best = std::min(best, Seconds(start));
  }
  return static_cast<double>(2 * n * sizeof(float)) / best;
}

void BM_Step(benchmark::State& state, const Problem& problem, int threads) {
  SetThreadCount(threads);
  ParameterList<float> parameters(1);
  Parameter<float>& parameter =
      parameters.Add("w", ParameterRole::kMatrix, 1024, problem.n / 1024, {0, 0.02f});
  FillNormal({1, 2}, 0, parameter.gradient.View().Span());
  OptimizerConfig config;
  config.kind = problem.kind;
  config.m = ParseMomentFormat(problem.m);
  config.v = ParseMomentFormat(problem.v);
  config.clip_norm = 1;
  Optimizer optimizer(config, {}, parameters, 1);
  optimizer.Step(1e-4, 0);  // allocates memory
  uint64_t step = 1;
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    optimizer.Step(1e-4, step++);
    benchmark::ClobberMemory();
  }
  const double seconds = Seconds(start) / static_cast<double>(state.iterations());
  const double stored = optimizer.StoredBytes().Sum();
  const double rate = (sizeof(float) + 2 * stored) * static_cast<double>(problem.n) / seconds;
  state.counters["ms"] = seconds * 1e3;
  state.counters["GB/s"] = rate * 1e-9;
  state.counters["of_memcpy"] = rate / MemcpyRate(problem.n);
}

void RegisterAll(int threads) {
  for (const size_t n : {size_t{1} << 20, kElements}) {
    for (const Problem& problem :
         {Problem{OptimizerKind::kAdamW, "fp32", "fp32", n},
          Problem{OptimizerKind::kStableAdamW, "fp32", "fp32", n},
          Problem{OptimizerKind::kSgd, "fp32", "fp32", n},
          Problem{OptimizerKind::kLion, "fp32", "fp32", n},
          Problem{OptimizerKind::kAdamW, "bf16", "bf16", n},
          Problem{OptimizerKind::kAdamW, "e4m3fn@tensor", "e5m2@tensor", n},
          Problem{OptimizerKind::kAdamW, "dynamic:256", "dynamic:256", n},
          Problem{OptimizerKind::kAdamW, "e4m3fn@coat", "e4m3fn@coat", n}}) {
      Register(fmt::format("step/{}/{}/{}/{}M/threads:{}",
                           ToString(problem.kind),
                           problem.m,
                           problem.v,
                           n >> 20,
                           threads),
               [problem, threads](benchmark::State& state) { BM_Step(state, problem, threads); });
    }
  }
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  return numsim::bench::Main(argc, argv, numsim::bench::RegisterAll);
}
