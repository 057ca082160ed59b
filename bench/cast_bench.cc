// Conversions of float32 arrays to and from codes. Columns: Melem/s, GB/s read plus written, and
// that over memcpy's GB/s of the same process and thread count ("of_memcpy").
#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

#include "bench/machine_limit.h"
#include "numsim/formats/format_table.h"
#include "numsim/kernels/cast.h"
#include "numsim/kernels/simd_target.h"

namespace numsim::bench {
namespace {

// Values spread over the formats' normals and subnormals.
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

double Memcpy(int threads) {
  static std::map<int, double> measured;
  if (!measured.contains(threads)) measured[threads] = MemcpyBytesPerSecond(threads);
  return measured[threads];
}

void Report(benchmark::State& state, int threads, double bytes_per_element) {
  const double elements = static_cast<double>(state.iterations()) * kElements;
  using benchmark::Counter;
  state.counters["Melem/s"] = Counter(elements / 1e6, Counter::kIsRate);
  state.counters["GB/s"] = Counter(elements * bytes_per_element / 1e9, Counter::kIsRate);
  state.counters["of_memcpy"] =
      Counter(elements * bytes_per_element / Memcpy(threads), Counter::kIsRate);
}

template <typename Code>
void BM_Encode(benchmark::State& state, const EncodePlan& plan, int threads) {
  Memcpy(threads);
  SetThreadCount(threads);
  std::vector<Code> codes(kElements);
  for (auto _ : state) {
    Encode(plan, std::span(Input()), std::span(codes), {{7, 0}, 0});
    benchmark::ClobberMemory();
  }
  Report(state, threads, 4 + sizeof(Code));
}

template <typename Code>
void BM_Decode(benchmark::State& state, const FormatSpec& format, int threads) {
  Memcpy(threads);
  SetThreadCount(threads);
  std::vector<Code> codes(kElements);
  std::vector<float> values(kElements);
  Encode(MakeEncodePlan(format), std::span(Input()), std::span(codes));
  for (auto _ : state) {
    Decode(format, std::span<const Code>(codes), std::span(values));
    benchmark::ClobberMemory();
  }
  Report(state, threads, 4 + sizeof(Code));
}

void BM_FakeQuantize(benchmark::State& state, const EncodePlan& plan, int threads) {
  Memcpy(threads);
  SetThreadCount(threads);
  std::vector<float> values(kElements);
  for (auto _ : state) {
    FakeQuantize(plan, std::span(Input()), std::span(values), {{7, 0}, 0});
    benchmark::ClobberMemory();
  }
  Report(state, threads, 8);
}

void BM_RandomWords(benchmark::State& state, int threads) {
  Memcpy(threads);
  SetThreadCount(threads);
  std::vector<uint32_t> words(kElements);
  for (auto _ : state) {
    RandomBitsArray({{7, 0}, 0}, 32, words);
    benchmark::ClobberMemory();
  }
  Report(state, threads, 4);
}

void BM_Memcpy(benchmark::State& state, int threads) {
  Memcpy(threads);
  SetThreadCount(threads);
  std::vector<float> to(kElements);
  const std::vector<float>& from = Input();
  for (auto _ : state) {
    ParallelFor(kElements, 4096, [&](size_t begin, size_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, (end - begin) * sizeof(float));
    });
    benchmark::ClobberMemory();
  }
  Report(state, threads, 8);
}

template <typename Function>
void Register(const std::string& name, Function function) {
  benchmark::RegisterBenchmark(name.c_str(), function)->UseRealTime()->MinTime(0.3);
}

void RegisterFormat(const std::string& name, int threads) {
  const FormatSpec format = ParseFormat(name).spec;
  const std::string suffix = "/" + name + "/threads:" + std::to_string(threads);
  const Rounding sr16{RoundingMode::kStochastic, StochasticVariant::kA, 16};
  const Rounding sr32{RoundingMode::kStochastic, StochasticVariant::kA, 32};
  const auto encode = [&](const std::string& what, const Rounding& rounding, Overflow overflow) {
    const EncodePlan plan = MakeEncodePlan(format, rounding, overflow);
    Register("encode_" + what + suffix, [=](benchmark::State& state) {
      if (format.StorageBytes() == 1) return BM_Encode<uint8_t>(state, plan, threads);
      return BM_Encode<uint16_t>(state, plan, threads);
    });
  };
  encode("rne", {}, Overflow::kNonsaturate);
  encode("rtz", {RoundingMode::kTowardZero}, Overflow::kNonsaturate);
  encode("sr16", sr16, Overflow::kNonsaturate);
  encode("sr32", sr32, Overflow::kNonsaturate);
  Register("decode" + suffix, [=](benchmark::State& state) {
    if (format.StorageBytes() == 1) return BM_Decode<uint8_t>(state, format, threads);
    return BM_Decode<uint16_t>(state, format, threads);
  });
  Register("fake_quantize_rne" + suffix, [=](benchmark::State& state) {
    BM_FakeQuantize(state, MakeEncodePlan(format), threads);
  });
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  using namespace numsim;
  benchmark::Initialize(&argc, argv);
  ForceBackendFromEnvironment();
  benchmark::AddCustomContext("numsim_backend", std::string(SimdTargetName()));
  for (const int threads : {1, 2}) {
    const std::string suffix = "/threads:" + std::to_string(threads);
    bench::Register("memcpy" + suffix,
                    [=](benchmark::State& state) { bench::BM_Memcpy(state, threads); });
    bench::Register("random_words" + suffix,
                    [=](benchmark::State& state) { bench::BM_RandomWords(state, threads); });
    for (const char* name : {"e4m3fn", "e5m2", "e4m3fnuz", "int8", "bf16", "fp16"}) {
      bench::RegisterFormat(name, threads);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
