#include "tests/reference/moment_oracle.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "tests/reference/oracle.h"

namespace oracle {
namespace {

using Wide = long double;

struct Entry {
  double value;
  uint32_t code;
};

// All finite values of a format by their codes, ascending; of the two zeros the
// positive one.
class ValueList {
 public:
  explicit ValueList(const Format& format) : grid_(format) {
    for (uint32_t code = 0; code < (uint64_t{1} << format.bits); ++code) {
      const Real real = DecodeCode(grid_, code);
      if (real.kind != Real::Kind::kFinite) continue;
      if (real.magnitude == 0 && real.negative) continue;
      entries_.push_back({real.negative ? -real.magnitude : real.magnitude, code});
    }
    std::sort(entries_.begin(), entries_.end(), [](const Entry& x, const Entry& y) {
      return x.value < y.value;
    });
  }

  const Grid& grid() const { return grid_; }
  const Format& format() const { return grid_.format(); }
  double max() const { return entries_.back().value; }
  double least() const {
    const auto positive = [](double x, const Entry& y) { return x < y.value; };
    return std::upper_bound(entries_.begin(), entries_.end(), 0.0, positive)->value;
  }

  // The code of the value nearest to x; of two, that with an even code; beyond
  // the ends, the end.
  uint32_t Nearest(float x) const {
    const auto below = [](const Entry& y, double to) { return y.value < to; };
    const double to = static_cast<double>(x);
    auto high = std::lower_bound(entries_.begin(), entries_.end(), to, below);
    if (high == entries_.end()) --high;
    auto low = high == entries_.begin() ? high : high - 1;
    const Wide up = std::fabs(static_cast<Wide>(high->value) - static_cast<Wide>(x));
    const Wide down = std::fabs(static_cast<Wide>(x) - static_cast<Wide>(low->value));
    const bool takes_high = up < down || (up == down && high->code % 2 == 0);
    const Entry& found = takes_high ? *high : *low;
    if (found.value == 0 && std::signbit(x) && format().minus_zero) return MinusZero();
    return found.code;
  }

  // Of a code.
  double Value(uint32_t code) const {
    const Real real = DecodeCode(grid_, code);
    if (real.kind == Real::Kind::kNan) return std::numeric_limits<double>::quiet_NaN();
    return real.negative ? -real.magnitude : real.magnitude;
  }

 private:
  uint32_t MinusZero() const { return 1u << (format().bits - 1); }

  Grid grid_;
  std::vector<Entry> entries_;
};

// Listed once: there are 65536 codes of 16 bits.
const ValueList& ListOf(const std::string& format) {
  static std::map<std::string, ValueList> lists;
  auto found = lists.find(format);
  if (found == lists.end()) found = lists.emplace(format, ValueList(FindFormat(format))).first;
  return found->second;
}

float ToFloat(double x) { return static_cast<float>(x); }
double Double(float x) { return static_cast<double>(x); }

struct Extent {
  float most = 0,
        least = 0;  // over finite magnitudes; least over those that are not zero
};

Extent FindExtent(std::span<const float> block) {
  Extent extent;
  for (const float x : block) {
    if (!std::isfinite(x) || x == 0) continue;
    const float magnitude = std::fabs(x);
    extent.most = std::max(extent.most, magnitude);
    extent.least = extent.least == 0 ? magnitude : std::min(extent.least, magnitude);
  }
  return extent;
}

// A code of x, which is scaled already.
uint32_t CodeOf(const ValueList& list, const MomentRule& rule, float x, uint32_t draw) {
  const Format& format = list.format();
  if (std::isnan(x)) {
    if (format.nan_plus == kNoCode) return 0;
    return std::signbit(x) ? format.nan_minus : format.nan_plus;
  }
  if (rule.random_bits == 0 || std::isinf(x)) {
    const float limit = ToFloat(list.max());
    return list.Nearest(std::clamp(x, -limit, limit));
  }
  const Setting setting{Mode::kStochastic, Policy::kSaturate, Variant::kA, rule.random_bits};
  return Encode(list.grid(), FromFloat32(std::bit_cast<uint32_t>(x)), setting, draw);
}

void StoreScaled(const ValueList& list,
                 const MomentRule& rule,
                 std::span<const float> in,
                 std::span<const uint32_t> draws,
                 StoredMoment& stored) {
  const double max = list.max();
  float scale = 1, inv_scale = 1;
  if (rule.scaling != MomentScaling::kNone) {
    const float most = FindExtent(in).most;
    if (most != 0) {
      const double absmax = std::max(Double(most), max * 0x1p-126);
      scale = ToFloat(absmax / max);
      inv_scale = ToFloat(max / absmax);
      while (std::isinf(ToFloat(Double(scale) * max))) scale = std::nextafterf(scale, 0);
    }
    stored.scales.push_back(scale);
  }
  for (size_t i = 0; i < in.size(); ++i) {
    const float scaled = ToFloat(Double(in[i]) * Double(inv_scale));
    const uint32_t code = CodeOf(list, rule, scaled, rule.random_bits == 0 ? 0 : draws[i]);
    stored.codes.push_back(code);
    stored.values.push_back(ToFloat(list.Value(code) * Double(scale)));
  }
}

void StoreCoat(const ValueList& list,
               const MomentRule& rule,
               std::span<const float> in,
               std::span<const uint32_t> draws,
               StoredMoment& stored) {
  const Wide max = static_cast<Wide>(list.max());
  const Extent extent = FindExtent(in);
  Wide a = max, k = 1;
  if (extent.most != 0) {
    a = static_cast<Wide>(extent.most);
    const Wide range = a / static_cast<Wide>(extent.least);
    const Wide wanted = std::min(max * max / 2, max / static_cast<Wide>(list.least()));
    if (range > 1) k = std::floor(16 * std::log2(wanted) / std::log2(range)) / 16;
    k = std::clamp<Wide>(k, 1.0L / 16, 65536);
  }
  stored.scales.push_back(static_cast<float>(a));
  stored.scales.push_back(static_cast<float>(k));
  for (size_t i = 0; i < in.size(); ++i) {
    float expanded = in[i];
    if (std::isfinite(in[i])) {
      const Wide magnitude = max * std::pow(std::fabs(static_cast<Wide>(in[i])) / a, k);
      expanded = std::copysign(static_cast<float>(magnitude), in[i]);
    }
    const uint32_t code = CodeOf(list, rule, expanded, rule.random_bits == 0 ? 0 : draws[i]);
    stored.codes.push_back(code);
    const Wide value = static_cast<Wide>(list.Value(code));
    const Wide magnitude = a * std::pow(std::fabs(value) / max, 1 / k);
    stored.values.push_back(static_cast<float>(std::copysign(magnitude, value)));
  }
}

// Boundaries from 0.1 to 1 in equal steps, means of neighbours, a power of ten.
std::vector<float> MakeMap(bool is_signed) {
  std::vector<float> values{0, 1};
  for (int i = 0; i < 7; ++i) {
    const int boundaries = (1 << (is_signed ? i : i + 1)) + 1;
    std::vector<Wide> line;  // from 0.1 to 1
    for (int j = 0; j < boundaries; ++j) line.push_back(0.1L + 0.9L * j / (boundaries - 1));
    for (int j = 0; j + 1 < boundaries; ++j) {
      const Wide mean = (line[j] + line[j + 1]) / 2 * std::pow(10.0L, i - 6);
      values.push_back(static_cast<float>(mean));
      if (is_signed) values.push_back(-static_cast<float>(mean));
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

const std::vector<float>& Map(bool is_signed) {
  static const std::vector<float> with_sign = MakeMap(true), without_sign = MakeMap(false);
  return is_signed ? with_sign : without_sign;
}

void StoreDynamic(const MomentRule& rule,
                  std::span<const float> in,
                  std::span<const uint32_t> draws,
                  StoredMoment& stored) {
  const std::vector<float>& map = Map(rule.is_signed);
  const float most = FindExtent(in).most;
  const float scale = most == 0 ? 1 : most;
  stored.scales.push_back(scale);
  for (size_t i = 0; i < in.size(); ++i) {
    float x = std::isnan(in[i]) ? 0 : ToFloat(Double(in[i]) / Double(scale));
    x = std::clamp(x, map.front(), map.back());
    size_t best = 0, low = 0;
    for (size_t c = 0; c < map.size(); ++c) {
      const auto distance = [x](float y) {
        return std::fabs(static_cast<Wide>(y) - static_cast<Wide>(x));
      };
      if (distance(map[c]) <= distance(map[best])) best = c;
      if (map[c] <= x) low = c;
    }
    if (rule.random_bits != 0) {
      best = low;
      const Wide above = static_cast<Wide>(x) - static_cast<Wide>(map[low]);
      if (above > 0) {
        const Wide gap = static_cast<Wide>(map[low + 1]) - static_cast<Wide>(map[low]);
        const Wide words = std::floor(std::ldexp(above / gap, rule.random_bits));
        if (static_cast<Wide>(draws[i]) >= std::ldexp(1.0L, rule.random_bits) - words) ++best;
      }
    }
    stored.codes.push_back(static_cast<uint32_t>(best));
    stored.values.push_back(ToFloat(Double(map[best]) * Double(scale)));
  }
}

}  // namespace

std::vector<float> DynamicValues(bool is_signed) { return MakeMap(is_signed); }

StoredMoment StoreMoment(const MomentRule& rule,
                         std::span<const float> in,
                         std::span<const uint32_t> draws) {
  StoredMoment stored;
  const bool whole = rule.scaling == MomentScaling::kNone || rule.scaling == MomentScaling::kTensor;
  const size_t block = whole ? std::max<size_t>(in.size(), 1) : rule.block;
  const ValueList& list = ListOf(rule.scaling == MomentScaling::kDynamic ? "int8" : rule.format);
  for (size_t begin = 0; begin < in.size() || (begin == 0 && whole); begin += block) {
    const size_t n = std::min(block, in.size() - begin);
    const auto part = in.subspan(begin, n);
    const auto words = draws.empty() ? draws : draws.subspan(begin, n);
    if (rule.scaling == MomentScaling::kCoat) {
      StoreCoat(list, rule, part, words, stored);
    } else if (rule.scaling == MomentScaling::kDynamic) {
      StoreDynamic(rule, part, words, stored);
    } else {
      StoreScaled(list, rule, part, words, stored);
    }
  }
  return stored;
}

}  // namespace oracle
