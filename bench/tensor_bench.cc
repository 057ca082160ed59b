// Operations on float32 matrices in training (libnumsim/training/numsim/ops/), at a size that stays in a
// cache (2048 x 256) and a larger one (4096 x 1024). Columns, all for the fastest iteration:
//   ns/elem    time per element of the result (swiglu and its relatives: of the result, which has
//              half the width)
//   GB/s       read plus written, each matrix once
//   of_memcpy  ratio to the best memcpy of one such matrix with as many threads in this process
// memcpy itself is the first row of each size. Column sums and statistics only read, and add-bias,
// scale and round-to work in place, so their of_memcpy may exceed 1.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/report.h"
#include "numsim/base/parallel.h"
#include "numsim/formats/format_table.h"
#include "numsim/models/internal/gated_activation.h"
#include "numsim/ops/elementwise.h"
#include "numsim/ops/shared/activation.h"
#include "numsim/ops/shared/norm.h"
#include "numsim/random/distributions.h"

namespace numsim::bench {
namespace {

struct Shape {
  size_t rows, cols;
};

// All matrices that the operations of one shape read and write.
struct Matrices {
  Buffer<float> buffers[11];
  MatrixSpan<float> x, g, y, pairs, pairs_gradient, gain, bias, mean, inverse, gain_gradient,
      bias_gradient;

  explicit Matrices(const Shape& s) {
    MatrixSpan<float>* const all[] = {&x,
                                      &g,
                                      &y,
                                      &pairs,
                                      &pairs_gradient,
                                      &gain,
                                      &bias,
                                      &gain_gradient,
                                      &bias_gradient,
                                      &mean,
                                      &inverse};
    for (size_t i = 0; i < std::size(all); ++i) {
      const bool row = i >= 5 && i < 9, column = i >= 9, wide = i == 3 || i == 4;
      *all[i] = buffers[i].Resize(row ? 1 : s.rows, column ? 1 : wide ? 2 * s.cols : s.cols);
      FillNormal({1, i}, 0, all[i]->Span());
    }
  }
};

Matrices& MatricesOf(const Shape& s) {
  static std::pair<Shape, std::unique_ptr<Matrices>> last;
  if (!last.second || last.first.rows != s.rows || last.first.cols != s.cols) {
    last.second.reset();  // frees the large matrices before the new ones are allocated
    last = {s, std::make_unique<Matrices>(s)};
  }
  return *last.second;
}

struct Operation {
  const char* name;
  double bytes;  // read plus written, per element
  std::function<void(const Matrices&)> run;
};

Operation GatedForward(const char* name, MlpKind kind) {
  return {name,
          12,
          [activation = std::make_shared<GatedActivation<float>>(kind, Place())](
              const Matrices& m) { activation->Forward(m.pairs, m.y); }};
}

const std::vector<Operation>& Operations() {
  static const EncodePlan bf16 = MakeEncodePlan(ParseFormat("bf16").spec);
  static const std::vector<Operation> operations = {
      {"memcpy",
       8,
       [](const Matrices& m) {
         ParallelFor(m.x.Elements(), 4096, [&m](size_t begin, size_t end) {
           std::memcpy(m.y.data + begin, m.x.data + begin, (end - begin) * sizeof(float));
         });
       }},
      {"copy", 8, [](const Matrices& m) { Copy<float>(m.x, m.y); }},
      {"add", 12, [](const Matrices& m) { Add<float>(m.x, m.g, m.y); }},
      {"scale", 8, [](const Matrices& m) { ScaleBy<float>(-1, m.y); }},
      {"add-bias", 8, [](const Matrices& m) { AddBias<float>(m.bias, m.y); }},
      {"column-sums", 4, [](const Matrices& m) { ColumnSums<float>(m.x, m.bias_gradient); }},
      {"add-scaled-branch",
       12,
       [](const Matrices& m) { AddScaledBranch<float>(m.x, m.g, m.gain, m.y); }},
      {"add-scaled-branch-gradient",
       12,
       [](const Matrices& m) {
         AddScaledBranchGradient<float>(m.g, m.x, m.gain, m.y, m.gain_gradient);
       }},
      {"round-to-bf16", 8, [](const Matrices& m) { RoundTo<float>(bf16, m.y); }},
      {"measure-absolute",
       4,
       [](const Matrices& m) { benchmark::DoNotOptimize(MeasureAbsolute<float>(m.x)); }},
      {"gelu", 8, [](const Matrices& m) { Gelu<float>(m.x, m.y); }},
      {"gelu-gradient", 12, [](const Matrices& m) { GeluGradient<float>(m.g, m.x, m.y); }},
      {"relu", 8, [](const Matrices& m) { Relu<float>(m.x, m.y); }},
      {"swiglu", 12, [](const Matrices& m) { Swiglu<float>(m.pairs, m.y); }},
      {"swiglu-gradient",
       20,
       [](const Matrices& m) { SwigluGradient<float>(m.g, m.pairs, m.pairs_gradient); }},
      // The MLPs of [Fishman] and a clamp: SwiGLU as above, and what is around it.
      GatedForward("smooth-swiglu", MlpKind::kSmoothSwiglu),
      GatedForward("smooth-swiglu-token", MlpKind::kSmoothSwigluToken),
      GatedForward("clamped-swiglu", MlpKind::kClampedSwiglu),
      {"rms-norm", 8, [](const Matrices& m) { RmsNorm<float>(m.x, m.gain, 1e-5, m.inverse, m.y); }},
      {"rms-norm-gradient",
       12,
       [](const Matrices& m) {
         RmsNormGradient<float>(m.g, m.x, m.gain, m.inverse, m.gain_gradient, m.y);
       }},
      {"layer-norm",
       8,
       [](const Matrices& m) {
         LayerNorm<float>(m.x, m.gain, m.bias, 1e-5, m.mean, m.inverse, m.y);
       }},
      {"layer-norm-gradient",
       12,
       [](const Matrices& m) {
         LayerNormGradient<float>(
             m.g, m.x, m.gain, m.mean, m.inverse, m.gain_gradient, m.bias_gradient, m.y);
       }},
  };
  return operations;
}

double SecondsOf(const Operation& operation, const Matrices& m) {
  const auto start = std::chrono::steady_clock::now();
  operation.run(m);
  benchmark::ClobberMemory();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double MemcpySeconds(const Shape& s, int threads) {
  static std::map<std::tuple<size_t, size_t, int>, double> measured;
  const auto [entry, added] = measured.try_emplace({s.rows, s.cols, threads}, 1e9);
  if (added) {
    const Matrices& m = MatricesOf(s);
    for (int repeat = 0; repeat < 50; ++repeat) {
      entry->second = std::min(entry->second, SecondsOf(Operations().front(), m));
    }
  }
  return entry->second;
}

void BM_Operation(benchmark::State& state,
                  const Operation& operation,
                  const Shape& s,
                  int threads) {
  SetThreadCount(threads);
  const Matrices& m = MatricesOf(s);
  const double memcpy_rate = 8 / MemcpySeconds(s, threads);
  double seconds = 1e9;
  for (auto _ : state) seconds = std::min(seconds, SecondsOf(operation, m));
  const double elements = static_cast<double>(m.x.Elements());
  state.counters["ns/elem"] = seconds * 1e9 / elements;
  state.counters["GB/s"] = operation.bytes * elements / seconds / 1e9;
  state.counters["of_memcpy"] = operation.bytes / seconds / memcpy_rate;
}

void RegisterAll(int threads) {
  for (const Shape& s : {Shape{2048, 256}, Shape{4096, 1024}}) {
    for (const Operation& operation : Operations()) {
      Register(fmt::format("{}/{}x{}/threads:{}", operation.name, s.rows, s.cols, threads),
               [&operation, s, threads](benchmark::State& state) {
                 BM_Operation(state, operation, s, threads);
               });
    }
  }
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  return numsim::bench::Main(argc, argv, numsim::bench::RegisterAll);
}
