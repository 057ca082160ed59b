// Casts on the device: 2^28 normally distributed float32 numbers and their codes; launches
// alternate between two arrays of each. Columns:
//   GB/s     read plus written
//   of_copy  ratio of GB/s to that of a copy of the same float32 array in this process
//   goal     the intended of_copy, if there is one
// Before the measurement, the first and the last results are compared with the host's.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/device_clock.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/format_table.h"
#include "numsim/random/distributions.h"

namespace numsim::bench {
namespace {

constexpr size_t kLength = size_t{1} << 28;
constexpr size_t kChecked = size_t{1} << 20;  // results compared at either end
constexpr ArrayRandom kRandom = {{7, 0}, 0};

// Returns two arrays of kLength normally distributed numbers, each 2^22 numbers repeated.
const std::vector<Buffer<float>>& Inputs() {
  static const std::vector<Buffer<float>> inputs = [] {
    std::vector<Buffer<float>> arrays;
    std::vector<float> draws(size_t{1} << 22);
    for (uint64_t stream = 0; stream < 2; ++stream) {
      FillNormal({1, stream}, 0, draws);
      const MatrixSpan<float> array = arrays.emplace_back(ThreadPlace(), kLength).View();
      for (size_t begin = 0; begin < kLength; begin += draws.size()) {
        CopyMatrix<float>(draws, array.Columns(begin, draws.size()));
      }
    }
    return arrays;
  }();
  return inputs;
}

MatrixSpan<const float> Input(int i) { return Inputs()[static_cast<size_t>(i) % 2].View(); }

DeviceLaunch Copy() {
  const auto out = std::make_shared<Buffer<float>>(ThreadPlace(), kLength);
  return [out](int i) { CopyMatrix<float>(Input(i), out->View()); };
}

double CopyBytesPerSecond() {
  static const double rate = 2.0 * kLength * sizeof(float) / MedianSeconds(Copy());
  return rate;
}

// A benchmark: `launch` writes kLength elements to `out`. `on_host` computes the results of the
// elements from `first` on, as many as `out` holds, on the host.
template <typename Out>
struct Cast {
  std::function<void(int i, MatrixSpan<Out> out)> launch;
  std::function<void(size_t first, std::span<Out> out)> on_host;
};

template <typename Out>
bool EqualsHost(const Cast<Out>& cast, MatrixSpan<Out> out) {
  cast.launch(0, out);
  std::vector<Out> want(kChecked);
  for (size_t first : {size_t{0}, kLength - kChecked}) {
    const std::vector<Out> got = ToVector(out.Columns(first, kChecked));
    cast.on_host(first, std::span(want));
    if (std::memcmp(got.data(), want.data(), kChecked * sizeof(Out)) != 0) return false;
  }
  return true;
}

// Registers a benchmark. `bytes` are read plus written per element; goal 0 means no goal.
template <typename Out>
void Register(const std::string& name, const Cast<Out>& cast, double bytes, double goal) {
  const auto run = [=](benchmark::State& state) {
    Buffer<Out> outs[2] = {{ThreadPlace(), kLength}, {ThreadPlace(), kLength}};
    if (!EqualsHost(cast, outs[0].View())) {
      state.SkipWithError("the results are not the host's");
      return;
    }
    const double copy = CopyBytesPerSecond();
    for (auto _ : state) {
      const double seconds = MedianSeconds([&](int i) { cast.launch(i, outs[i % 2].View()); });
      const double rate = bytes * kLength / seconds;
      state.SetIterationTime(seconds);
      state.counters["GB/s"] = rate * 1e-9;
      state.counters["of_copy"] = rate / copy;
      if (goal > 0) state.counters["goal"] = goal;
    }
  };
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(1);
}

std::vector<float> HostInput(size_t first, size_t n) {
  return ToVector(Input(0).Columns(first, n));
}

template <typename Code>
void RegisterEncode(const std::string& name, const EncodePlan& plan, double goal) {
  const Cast<Code> cast = {
      [=](int i, MatrixSpan<Code> out) { Encode(plan, Input(i), out, kRandom); },
      [=](size_t first, std::span<Code> out) {
        const std::vector<float> in = HostInput(first, out.size());
        Encode(plan, in, out, {kRandom.stream, first});
      }};
  Register(name, cast, sizeof(float) + sizeof(Code), goal);
}

void RegisterFakeQuantize(const std::string& name, const EncodePlan& plan) {
  const Cast<float> cast = {
      [=](int i, MatrixSpan<float> out) { FakeQuantize(plan, Input(i), out, kRandom); },
      [=](size_t first, std::span<float> out) {
        const std::vector<float> in = HostInput(first, out.size());
        FakeQuantize(plan, in, out, {kRandom.stream, first});
      }};
  Register(name, cast, 2 * sizeof(float), 0);
}

template <typename Code>
void RegisterDecode(const std::string& name, const FormatSpec& format, double goal) {
  // Two arrays of codes, created at the first launch.
  const auto codes = std::make_shared<std::vector<Buffer<Code>>>();
  const Cast<float> cast = {[=](int i, MatrixSpan<float> out) {
                              for (int j = static_cast<int>(codes->size()); j < 2; ++j) {
                                Buffer<Code>& made = codes->emplace_back(ThreadPlace(), kLength);
                                Encode(MakeEncodePlan(format), Input(j), made.View());
                              }
                              Decode(format, (*codes)[static_cast<size_t>(i) % 2].View(), out);
                            },
                            [=](size_t first, std::span<float> out) {
                              const std::vector<float> in = HostInput(first, out.size());
                              FakeQuantize(MakeEncodePlan(format), in, out);
                            }};
  Register(name, cast, sizeof(float) + sizeof(Code), goal);
}

template <typename Code>
void AddFormat(const std::string& name) {
  const FormatSpec format = ParseFormat(name).spec;
  const auto stochastic = [&](int bits) {
    return MakeEncodePlan(format, {RoundingMode::kStochastic, StochasticVariant::kA, bits});
  };
  RegisterEncode<Code>("encode_rne/" + name, MakeEncodePlan(format), 0.9);
  RegisterEncode<Code>("encode_sr8/" + name, stochastic(8), 0.8);
  RegisterEncode<Code>("encode_sr16/" + name, stochastic(16), 0.8);
  RegisterEncode<Code>("encode_sr32/" + name, stochastic(32), 0.8);
  RegisterDecode<Code>("decode/" + name, format, 0.9);
  RegisterFakeQuantize("fake_quantize_rne/" + name, MakeEncodePlan(format));
  RegisterFakeQuantize("fake_quantize_sr16/" + name, stochastic(16));
}

// Registers conversions without a specialised kernel.
void AddByRule() {
  const FormatSpec e4m3fn = ParseFormat("e4m3fn").spec;
  const Rounding variant_b = {RoundingMode::kStochastic, StochasticVariant::kB, 16};
  RegisterEncode<uint8_t>("encode_rne/int8", MakeEncodePlan(ParseFormat("int8").spec), 0);
  RegisterEncode<uint8_t>(
      "encode_rtz/e4m3fn", MakeEncodePlan(e4m3fn, {.mode = RoundingMode::kTowardZero}), 0);
  RegisterEncode<uint8_t>("encode_sr16b/e4m3fn", MakeEncodePlan(e4m3fn, variant_b), 0);
  RegisterEncode<uint8_t>("encode_rne/bnb-e4m3", MakeEncodePlan(ParseFormat("bnb-e4m3").spec), 0);
}

void AddRandomWords() {
  const Cast<uint32_t> cast = {
      [](int, MatrixSpan<uint32_t> out) { RandomBitsArray(kRandom, 32, out); },
      [](size_t first, std::span<uint32_t> out) {
        RandomBitsArray({kRandom.stream, first}, 32, out);
      }};
  Register("random_words", cast, sizeof(uint32_t), 0);
}

void AddAll() {
  const Cast<float> copy = {[](int i, MatrixSpan<float> out) { CopyMatrix<float>(Input(i), out); },
                            [](size_t first, std::span<float> out) {
                              const std::vector<float> in = HostInput(first, out.size());
                              std::copy(in.begin(), in.end(), out.begin());
                            }};
  Register("copy", copy, 2 * sizeof(float), 0);
  AddFormat<uint8_t>("e4m3fn");
  AddFormat<uint8_t>("e5m2");
  AddFormat<uint16_t>("bf16");
  AddFormat<uint16_t>("fp16");
  AddByRule();
  AddRandomWords();
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  return numsim::bench::DeviceMain(argc, argv, numsim::bench::AddAll);
}
