#include "tests/moments/moment_cases.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "numsim/base/error.h"
#include "tests/support/special_values.h"

namespace numsim::moment_test {
namespace {

// Draws for one array.
class Source {
 public:
  explicit Source(uint64_t seed) : engine_(seed) {}

  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  // About normal.
  double Normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += Uniform();
    return sum;
  }
  uint64_t Word() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

float Draw(std::string_view kind, size_t i, Source& source) {
  const double normal = source.Normal();
  const double sign = source.Word() % 2 == 0 ? 1 : -1;
  if (kind == "normal") return static_cast<float>(normal * 1e-3);
  if (kind == "squares") return static_cast<float>(normal * normal * 1e-6);
  if (kind == "heavy-tailed") return static_cast<float>(sign * std::exp(4 * normal - 10));
  if (kind == "positive-tailed") return static_cast<float>(std::exp(4 * normal - 10));
  if (kind == "zero") return 0;
  if (kind == "single-zero") return i % 100 == 17 ? 0 : static_cast<float>(normal);
  if (kind == "negative-zeros") return i % 3 == 0 ? static_cast<float>(normal) : -0.0f;
  if (kind == "constant") return -0.37f;
  if (kind == "two-values") return sign > 0 ? 0.1f : 0.7f;
  if (kind == "near-constant") return static_cast<float>(sign * (3 + 1e-6 * normal));
  if (kind == "tiny") return static_cast<float>(normal * 1e-39);
  if (kind == "huge") return static_cast<float>(sign * (1 - 0.9 * source.Uniform()) * 3.4028234e38);
  if (kind == "powers")
    return static_cast<float>(sign * std::ldexp(1.0, -static_cast<int>(i % 40)));
  if (kind == "nan") return kNaN;
  if (kind == "infinite") return sign > 0 ? kInfinity : -kInfinity;
  float any = std::bit_cast<float>(static_cast<uint32_t>(source.Word()));
  if (kind == "wide") return std::isfinite(any) ? any : 1.0f;
  NUMSIM_CHECK(kind == "specials", "{}", kind);
  const float special[] = {kNaN, -kNaN, kInfinity, -kInfinity, 0.0f, -0.0f};
  return source.Word() % 4 == 0 ? special[source.Word() % 6] : static_cast<float>(normal);
}

}  // namespace

std::vector<std::string> DataKinds() {
  return {"normal",
          "squares",
          "heavy-tailed",
          "positive-tailed",
          "zero",
          "single-zero",
          "negative-zeros",
          "constant",
          "two-values",
          "near-constant",
          "tiny",
          "huge",
          "wide",
          "powers",
          "specials",
          "nan",
          "infinite"};
}

std::vector<float> MakeData(std::string_view kind, size_t n, uint64_t seed) {
  Source source(seed * 1000003 + n);
  std::vector<float> data(n);
  for (size_t i = 0; i < n; ++i) data[i] = Draw(kind, i, source);
  // A largest magnitude that is float32's own.
  if (kind == "huge" && n > 3) data[n / 2] = std::numeric_limits<float>::max();
  return data;
}

std::vector<std::string> TestedFormats() {
  return {
      "bf16", "fp16", "e4m3fn", "e4m3", "e5m2", "e3m2fn", "e2m1fn", "int8", "e4m3fnuz", "dynamic"};
}

std::vector<std::string> FormatTexts(std::string_view format) {
  std::vector<std::string> scalings = {"@none", "@tensor", "@block", "@block:7"};
  if (format == "dynamic") {
    scalings = {"", ":100"};
  } else if (!format.ends_with("16")) {
    scalings.insert(scalings.end(), {"@coat", "@coat:50"});
  }
  std::vector<std::string> texts;
  for (const std::string& scaling : scalings) {
    for (const char* rounding : {"", "+sr", "+sr:5"}) {
      texts.push_back(std::string(format) + scaling + rounding);
    }
  }
  return texts;
}

std::vector<std::string> FormatTexts() {
  std::vector<std::string> texts;
  for (const std::string& format : TestedFormats()) {
    for (std::string& text : FormatTexts(format)) texts.push_back(std::move(text));
  }
  return texts;
}

oracle::MomentRule OracleRule(const MomentFormat& format, bool is_signed) {
  const auto scaling = [&] {
    switch (format.scaling) {
      case MomentScaling::kNone:
        return oracle::MomentScaling::kNone;
      case MomentScaling::kTensor:
        return oracle::MomentScaling::kTensor;
      case MomentScaling::kBlock:
        return oracle::MomentScaling::kBlock;
      case MomentScaling::kCoat:
        return oracle::MomentScaling::kCoat;
      case MomentScaling::kDynamic:
        break;
    }
    return oracle::MomentScaling::kDynamic;
  }();
  const bool stochastic = format.rounding.mode == RoundingMode::kStochastic;
  return {format.format.name,
          scaling,
          format.block,
          is_signed,
          stochastic ? format.rounding.random_bits : 0};
}

std::vector<uint32_t> Draws(const MomentFormat& format, RandomStream random, size_t n) {
  std::vector<uint32_t> draws;
  if (format.rounding.mode != RoundingMode::kStochastic) return draws;
  for (size_t i = 0; i < n; ++i) {
    draws.push_back(RandomBits(random, i, format.rounding.random_bits));
  }
  return draws;
}

Stored ReadState(const MomentStore& store) {
  const std::vector<std::byte> state = store.Save();
  const int bits = store.format().format.spec.Bits();
  const bool dynamic = store.format().scaling == MomentScaling::kDynamic;
  Stored stored;
  size_t bytes = store.size();
  const auto byte = [&](size_t i) { return std::to_integer<uint32_t>(state[i]); };
  if (!dynamic && bits <= 4) {
    bytes = (store.size() + 1) / 2;
    for (size_t i = 0; i < store.size(); ++i) {
      stored.codes.push_back(i % 2 == 0 ? byte(i / 2) % 16 : byte(i / 2) / 16);
    }
  } else if (bits <= 8) {
    for (size_t i = 0; i < store.size(); ++i) stored.codes.push_back(byte(i));
  } else {
    bytes = 2 * store.size();
    for (size_t i = 0; i < store.size(); ++i) {
      stored.codes.push_back(byte(2 * i) + 256 * byte(2 * i + 1));
    }
  }
  NUMSIM_CHECK(state.size() >= bytes, "{} bytes", state.size());
  stored.scales.resize((state.size() - bytes) / sizeof(float));
  if (!stored.scales.empty()) {
    std::memcpy(stored.scales.data(), state.data() + bytes, state.size() - bytes);
  }
  return stored;
}

std::vector<float> LoadAll(const MomentStore& store) {
  std::vector<float> values(store.size());
  store.Load(values);
  return values;
}

bool SameBits(float x, float y) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
}

int64_t UlpsBetween(float x, float y) {
  if (SameBits(x, y)) return 0;
  const auto place = [](float z) {
    const int64_t magnitude = std::bit_cast<uint32_t>(z) & 0x7FFFFFFF;
    return std::signbit(z) ? -magnitude : magnitude;
  };
  return std::abs(place(x) - place(y));
}

}  // namespace numsim::moment_test
