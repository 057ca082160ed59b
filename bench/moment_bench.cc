// Storing and loading 2^24 (16M) moments, squares of normally distributed numbers. Columns as in
// cast_bench.cc; the bytes are those of the float32 values and of the stored data, each counted
// once. Rows:
//   store/FORMAT    values to codes and scales
//   load/FORMAT     back to values
//   measure/FORMAT  storing and measuring the quantisation error
#include <benchmark/benchmark.h>

#include "bench/report.h"
#include "numsim/moments/moment_store.h"
#include "numsim/random/distributions.h"

namespace numsim::bench {
namespace {

const std::vector<float>& Moments() {
  static const std::vector<float> moments = [] {
    std::vector<float> v(kElements);
    FillNormal({1, 0}, 0, v);
    for (float& x : v) x *= 1e-6f * x;
    return v;
  }();
  return moments;
}

double BytesPerElement(const MomentFormat& format) {
  return 4 + MomentBytes(format, kElements) / static_cast<double>(kElements);
}

void BM_Store(benchmark::State& state, const MomentFormat& format, bool measure, int threads) {
  Prepare(threads);
  MomentStore store(format, kElements, false);
  uint64_t step = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(store.Store(Moments(), {1, step++}, measure));
    benchmark::ClobberMemory();
  }
  Report(state, threads, BytesPerElement(format));
}

void BM_Load(benchmark::State& state, const MomentFormat& format, int threads) {
  Prepare(threads);
  MomentStore store(format, kElements, false);
  store.Store(Moments(), {1, 0});
  std::vector<float> values(kElements);
  for (auto _ : state) {
    store.Load(values);
    benchmark::ClobberMemory();
  }
  Report(state, threads, BytesPerElement(format));
}

void RegisterFormat(const char* text, int threads) {
  const MomentFormat format = ParseMomentFormat(text);
  const std::string suffix = "/" + std::string(text) + "/threads:" + std::to_string(threads);
  for (const bool measure : {false, true}) {
    Register((measure ? "measure" : "store") + suffix,
             [=](benchmark::State& state) { BM_Store(state, format, measure, threads); });
  }
  Register("load" + suffix, [=](benchmark::State& state) { BM_Load(state, format, threads); });
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  return numsim::bench::Main(argc, argv, [](int threads) {
    for (const char* text : {"fp32",
                             "bf16",
                             "bf16+sr",
                             "e4m3fn@tensor",
                             "e4m3fn@block:128",
                             "e5m2@tensor+sr",
                             "e2m1fn@block:128",
                             "e4m3fn@coat:128",
                             "e5m2@coat:128+sr",
                             "dynamic:256",
                             "dynamic:256+sr"}) {
      numsim::bench::RegisterFormat(text, threads);
    }
  });
}
