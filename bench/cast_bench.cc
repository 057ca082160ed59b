// Conversions of float32 arrays to and from codes. Columns: Melem/s, GB/s (read plus written), and
// of_memcpy (the ratio to memcpy's GB/s in the same process with the same number of threads).
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "bench/report.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/format_table.h"

namespace numsim::bench {
namespace {

template <typename Code>
void BM_Encode(benchmark::State& state, const EncodePlan& plan, int threads) {
  Prepare(threads);
  std::vector<Code> codes(kElements);
  for (auto _ : state) {
    Encode(plan, std::span(Input()), std::span(codes), {{7, 0}, 0});
    benchmark::ClobberMemory();
  }
  Report(state, threads, 4 + sizeof(Code));
}

template <typename Code>
void BM_EncodeF64(benchmark::State& state, const EncodePlan& plan, int threads) {
  Prepare(threads);
  const std::vector<double> values(Input().begin(), Input().end());
  std::vector<Code> codes(kElements);
  for (auto _ : state) {
    Encode(plan, std::span(values), std::span(codes), {{7, 0}, 0});
    benchmark::ClobberMemory();
  }
  Report(state, threads, 8 + sizeof(Code));
}

template <typename Code>
void BM_Decode(benchmark::State& state, const FormatSpec& format, int threads) {
  Prepare(threads);
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
  Prepare(threads);
  std::vector<float> values(kElements);
  for (auto _ : state) {
    FakeQuantize(plan, std::span(Input()), std::span(values), {{7, 0}, 0});
    benchmark::ClobberMemory();
  }
  Report(state, threads, 8);
}

void BM_RandomWords(benchmark::State& state, int threads) {
  Prepare(threads);
  std::vector<uint32_t> words(kElements);
  for (auto _ : state) {
    RandomBitsArray({{7, 0}, 0}, 32, words);
    benchmark::ClobberMemory();
  }
  Report(state, threads, 4);
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
    Register("encode_f64_" + what + suffix, [=](benchmark::State& state) {
      if (format.StorageBytes() == 1) return BM_EncodeF64<uint8_t>(state, plan, threads);
      return BM_EncodeF64<uint16_t>(state, plan, threads);
    });
  };
  encode("rne", {}, Overflow::kNonsaturate);
  encode("rna", {RoundingMode::kNearestAway}, Overflow::kNonsaturate);
  encode("rtz", {RoundingMode::kTowardZero}, Overflow::kNonsaturate);
  encode("rtp", {RoundingMode::kUp}, Overflow::kNonsaturate);
  encode("rtn", {RoundingMode::kDown}, Overflow::kNonsaturate);
  encode("rto", {RoundingMode::kToOdd}, Overflow::kNonsaturate);
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
  return numsim::bench::Main(argc, argv, [](int threads) {
    using namespace numsim::bench;
    Register("random_words/threads:" + std::to_string(threads),
             [=](benchmark::State& state) { BM_RandomWords(state, threads); });
    for (const char* name : {"e4m3fn", "e5m2", "e4m3fnuz", "bnb-e4m3", "int8", "bf16", "fp16"}) {
      RegisterFormat(name, threads);
    }
  });
}
