#include "bench/report.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <set>

#include "numsim/backend/backend.h"
#include "numsim/base/parallel.h"
#include "numsim/cast/cast.h"

namespace numsim::bench {
namespace {

void ParallelMemcpy(const std::vector<float>& from, std::vector<float>& to) {
  ParallelFor(kElements, 4096, [&](size_t begin, size_t end) {
    std::memcpy(to.data() + begin, from.data() + begin, (end - begin) * sizeof(float));
  });
}

// Returns bytes per second, read plus written: the best of several runs.
double MeasureMemcpy() {
  std::vector<float> to(kElements);
  double best = 0;
  for (int repeat = 0; repeat < 12; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    ParallelMemcpy(Input(), to);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2.0 * kElements * sizeof(float) / seconds.count());
  }
  return best;
}

double MemcpyBytesPerSecond(int threads) {
  static std::map<int, double> measured;
  SetThreadCount(threads);
  if (!measured.contains(threads)) measured[threads] = MeasureMemcpy();
  return measured[threads];
}

void BM_Memcpy(benchmark::State& state, int threads) {
  Prepare(threads);
  std::vector<float> to(kElements);
  for (auto _ : state) {
    ParallelMemcpy(Input(), to);
    benchmark::ClobberMemory();
  }
  Report(state, threads, 8);
}

}  // namespace

const std::vector<float>& Input() {
  static const std::vector<float> values = [] {
    std::vector<uint32_t> words(kElements);
    RandomBitsArray({{1, 0}, 0}, 32, words);
    std::vector<float> v(kElements);
    for (size_t i = 0; i < kElements; ++i) {
      const float sum = static_cast<float>(words[i] & 0xFFFF) + static_cast<float>(words[i] >> 16);
      v[i] = (sum - 65535.0f) / 20000.0f;
    }
    return v;
  }();
  return values;
}

void Prepare(int threads) { MemcpyBytesPerSecond(threads); }

void Report(benchmark::State& state, int threads, double bytes_per_element) {
  using benchmark::Counter;
  const double elements = static_cast<double>(state.iterations()) * kElements;
  const double bytes = elements * bytes_per_element;
  state.counters["Melem/s"] = Counter(elements / 1e6, Counter::kIsRate);
  state.counters["GB/s"] = Counter(bytes / 1e9, Counter::kIsRate);
  state.counters["of_memcpy"] = Counter(bytes / MemcpyBytesPerSecond(threads), Counter::kIsRate);
}

void Register(const std::string& name, const std::function<void(benchmark::State&)>& function) {
  benchmark::RegisterBenchmark(name.c_str(), function)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond)
      ->MinTime(0.3);
}

int Main(int argc, char** argv, const std::function<void(int)>& add) {
  benchmark::Initialize(&argc, argv);
  ForceBackendFromEnvironment();
  benchmark::AddCustomContext("numsim_backend", std::string(BackendName()));
  for (const int threads : std::set<int>{1, ThreadCount()}) {
    Register("memcpy/threads:" + std::to_string(threads),
             [=](benchmark::State& state) { BM_Memcpy(state, threads); });
    add(threads);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace numsim::bench
