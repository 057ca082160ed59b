#include "tests/reference/updates/update_exact.h"

#include <bit>
#include <cmath>
#include <map>
#include <string>

#include "tests/reference/accumulate.h"
#include "tests/reference/arithmetic.h"
#include "tests/reference/formats.h"

namespace update_reference {
namespace {

using oracle::Modes;
using oracle::Placement;
using oracle::Policy;
using oracle::Setting;
using oracle::Tininess;

uint32_t Round(const oracle::Grid& grid, const ExactNumber& x, const Setting& setting) {
  return Placement(grid, x, Modes::kDeterministic).Round(setting, Tininess::kAfterRounding).code;
}

}  // namespace

ExactNumber Exact(double x) {
  ExactNumber number;
  number.negative = std::signbit(x);
  if (std::isnan(x)) number.kind = oracle::Real::Kind::kNan;
  if (std::isinf(x)) number.kind = oracle::Real::Kind::kInfinity;
  if (!std::isfinite(x) || x == 0) return number;
  const oracle::Dyadic dyadic = oracle::ToDyadic(std::fabs(x));
  const int zeros = __builtin_ctzll(dyadic.significand);
  number.numerator = dyadic.significand >> zeros;
  number.exponent = dyadic.exponent + zeros;
  return number;
}

ExactNumber Sum(const ExactNumber& a, const ExactNumber& b) {
  const ExactNumber addends[] = {a, b};
  return oracle::ExactSum(addends);
}

ExactNumber Difference(const ExactNumber& a, const ExactNumber& b) {
  return Sum(a, oracle::Negated(b));
}

float ToF32(const ExactNumber& x) {
  return static_cast<float>(oracle::RoundToNearest(x, oracle::kFloat32));
}

double ToF64(const ExactNumber& x) { return oracle::RoundToNearest(x, oracle::kFloat64); }

Storage::Storage(std::string_view format) : grid_(oracle::FindFormat(format)) {}

float Storage::ValueOf(uint32_t code) const { return oracle::ValueOf(grid_, code); }

uint32_t Storage::NearestCode(const ExactNumber& x, Policy policy) const {
  return Round(grid_, x, {.policy = policy});
}

float Storage::Nearest(const ExactNumber& x) const {
  return ValueOf(NearestCode(x, Policy::kSaturate));
}

float Storage::NearestNonsaturating(const ExactNumber& x) const {
  return ValueOf(NearestCode(x, Policy::kNonsaturate));
}

float Storage::NearestAway(const ExactNumber& x) const {
  return ValueOf(
      Round(grid_, x, {.mode = oracle::Mode::kNearestAway, .policy = Policy::kSaturate}));
}

float Storage::Stochastic(const ExactNumber& x, int random_bits, uint32_t word) const {
  const Setting setting = {
      oracle::Mode::kStochastic, Policy::kSaturate, oracle::Variant::kA, random_bits};
  const Placement placement(grid_, x, Modes::kAll);
  return ValueOf(placement.Round(setting, Tininess::kAfterRounding, word).code);
}

uint64_t Storage::WordsAway(const ExactNumber& x, int random_bits) const {
  return Placement(grid_, x, Modes::kAll).WordsAway(oracle::Variant::kA, random_bits);
}

const Storage& StorageOf(std::string_view format) {
  static std::map<std::string, Storage, std::less<>> storages;
  const auto found = storages.find(format);
  if (found != storages.end()) return found->second;
  return storages.emplace(std::string(format), Storage(format)).first->second;
}

float Fp16Scale(float absmax) {
  if (absmax == 0) return 1;
  int exponent = -127;
  while (exponent < 127 && absmax > std::ldexp(65504.0, exponent)) ++exponent;
  return std::ldexp(1.0f, exponent);
}

float Join(float weight, uint16_t remainder) {
  const int64_t high = std::bit_cast<uint32_t>(weight);
  const auto low = static_cast<int16_t>(remainder);
  return std::bit_cast<float>(static_cast<uint32_t>(high + low));
}

Halves Split(float master) {
  const float weight = StorageOf("bf16").NearestAway(Exact(master));
  const int64_t rest =
      int64_t{std::bit_cast<uint32_t>(master)} - int64_t{std::bit_cast<uint32_t>(weight)};
  return {weight, static_cast<uint16_t>(static_cast<int16_t>(rest))};
}

}  // namespace update_reference
