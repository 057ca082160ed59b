#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/mma_probe/mma_probe.h"

namespace numsim {
namespace {

constexpr int kF32FractionBits = 23;
constexpr int kMostExponent = 60;   // limit of product exponents; keeps sums far from infinity
constexpr int kWideEnough = 44;     // range of exponents that crafted products should span
constexpr size_t kGroupInner = 64;  // inner dimension in which positions are examined
constexpr size_t kMostSteps = 64;   // number of steps in which promotion is searched for
constexpr int kLeastF32Bit = -149;
constexpr int kTinyReach = -200;  // products must reach below 2^this to show the lowest bit

float Infinity() { return std::numeric_limits<float>::infinity(); }

// One product a * b at position `at` of a dot product.
struct Term {
  size_t at;
  float a, b;
};
using SparseDot = std::vector<Term>;

// Range of the exponents of powers of two in a format.
struct Exponents {
  int least, most;
};

class Observer {
 public:
  Observer(const TensorCore& unit, std::vector<ProbeAnswer>& log) : unit_(unit), log_(log) {
    normal_a_ = {unit.a.MinExponent(), unit.a.MaxExponent()};
    normal_b_ = {unit.b.MinExponent(), unit.b.MaxExponent()};
    any_a_ = {unit.a.SubnormalExponent(), unit.a.MaxExponent()};
    any_b_ = {unit.b.SubnormalExponent(), unit.b.MaxExponent()};
    top_ = std::min(normal_a_.most + normal_b_.most, kMostExponent);
    bottom_ = normal_a_.least + normal_b_.least;
    if (top_ - bottom_ < kWideEnough) bottom_ = any_a_.least + any_b_.least;
    bottom_ = std::max(bottom_, -kMostExponent);
    inner_ = RoundedUp(kGroupInner);
  }

  UnitObservations All() {
    seen_.integers = normal_a_.least == normal_a_.most || normal_b_.least == normal_b_.most;
    if (!seen_.integers) {
      SeeGroups();
      SeeKeptBits();
      SeeCut();
      SeeResultBits();
      SeeResultCut();
      SeePromotion();
      SeeSubnormals();
      SeeLeastBit();
    }
    SeeSpecials();
    return seen_;
  }

 private:
  size_t RoundedUp(size_t inner) const {
    const size_t steps = (inner + unit_.inner_step - 1) / unit_.inner_step;
    return std::min(steps * unit_.inner_step, unit_.inner_most);
  }

  // Returns the product significand * 2^exponent at a position. The significand is part of the
  // operand of a. It is 1 or a number of two bits, and negative for a negative product.
  Term Product(size_t at, int exponent, float significand = 1) const {
    const bool normal = exponent >= normal_a_.least + normal_b_.least;
    const Exponents a = normal ? normal_a_ : any_a_, b = normal ? normal_b_ : any_b_;
    const int ea = std::clamp(exponent / 2, std::max(a.least, exponent - b.most), a.most);
    const int eb = std::max(exponent - ea, b.least);
    return {at, significand * std::ldexp(1.0f, exponent - eb), std::ldexp(1.0f, eb)};
  }

  // Returns the unit's results for the dot products.
  std::vector<float> Sums(const std::vector<SparseDot>& dots, size_t inner) {
    std::vector<float> sums;
    for (size_t first = 0; first < dots.size(); first += kProbeRows) {
      ProbeBlock block{.kind = "crafted", .paired = true, .inner = inner, .a = {}, .b = {}};
      block.a.assign(kProbeRows * inner, 0.0f);
      block.b.assign(kProbeRows * inner, 0.0f);
      const size_t n = std::min(kProbeRows, dots.size() - first);
      for (size_t row = 0; row < n; ++row) {
        for (const Term& term : dots[first + row]) {
          block.a[row * inner + term.at] = term.a;
          block.b[row * inner + term.at] = term.b;
        }
      }
      log_.push_back(Ask(unit_, std::move(block)));
      for (size_t row = 0; row < n; ++row) sums.push_back(log_.back().Out(row));
    }
    return sums;
  }
  float Sum(const SparseDot& dot) { return Sums({dot}, inner_)[0]; }

  // Returns the i-th position of the first step if it is known, otherwise i.
  size_t At(size_t i) const { return i < seen_.together.size() ? seen_.together[i] : i; }

  void SeeGroups();
  void SeeKeptBits();
  void SeeCut();
  void SeeResultBits();
  void SeeResultCut();
  void SeePromotion();
  void SeeSubnormals();
  void SeeLeastBit();
  void SeeSpecials();

  const TensorCore& unit_;
  std::vector<ProbeAnswer>& log_;
  Exponents normal_a_{}, normal_b_{}, any_a_{}, any_b_{};
  int top_ = 0, bottom_ = 0;  // largest and smallest exponent of crafted products
  size_t inner_ = 0;
  UnitObservations seen_;
};

// Puts M at position 0, -M at j and the smallest products elsewhere [FPRev]. Small products that
// are added while only one of M and -M is part of the sum are lost. All j of the same step leave
// the same number of small products.
void Observer::SeeGroups() {
  std::vector<SparseDot> dots;
  for (size_t j = 1; j < inner_; ++j) {
    SparseDot dot;
    for (size_t k = 1; k < inner_; ++k) {
      if (k != j) dot.push_back(Product(k, bottom_));
    }
    dot.push_back(Product(0, top_));
    dot.push_back(Product(j, top_, -1));
    dots.push_back(dot);
  }
  const std::vector<float> sums = Sums(dots, inner_);
  std::map<float, size_t> sizes;
  for (const float sum : sums) ++sizes[sum];
  const float all = static_cast<float>(inner_ - 2);
  const bool lost = std::ldexp(sums[0], -bottom_) != all || sums.back() != sums[0];
  if (!lost) return;  // no small product is ever lost beside M
  ++sizes[sums[0]];   // position 0 itself
  seen_.together = {0};
  for (size_t j = 1; j < inner_; ++j) {
    if (sums[j - 1] == sums[0]) seen_.together.push_back(j);
  }
  std::map<size_t, size_t> steps;  // number of steps per size
  for (const auto& [sum, size] : sizes) ++steps[size];
  auto most = steps.begin();
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    if (step->second >= most->second) most = step;
  }
  seen_.chunk = most->first;
}

// Sums 2^top + 2^(top - i) - 2^top.
void Observer::SeeKeptBits() {
  std::vector<SparseDot> dots;
  for (int i = 1; top_ - i >= bottom_; ++i) {
    dots.push_back({Product(At(0), top_), Product(At(1), top_ - i), Product(At(2), top_, -1)});
  }
  const std::vector<float> sums = Sums(dots, inner_);
  int kept = 0;
  while (kept < static_cast<int>(sums.size()) &&
         sums[static_cast<size_t>(kept)] == std::ldexp(1.0f, top_ - kept - 1)) {
    ++kept;
  }
  seen_.kept_bits = kept;
  seen_.kept_bits_at_least = kept == static_cast<int>(sums.size());
}

std::optional<CutDirection> DirectionOf(bool positive_grows, bool negative_grows) {
  if (positive_grows && negative_grows) return CutDirection::kNearest;
  if (negative_grows) return CutDirection::kDown;
  return positive_grows ? CutDirection::kUp : CutDirection::kTowardZero;
}

// Adds three quarters of the last kept bit to 2^top.
void Observer::SeeCut() {
  const int exponent = top_ - *seen_.kept_bits - 2;
  if (seen_.kept_bits_at_least || exponent < bottom_) return;
  const auto grows = [&](float sign) {
    return Sum({Product(At(0), top_),
                Product(At(1), exponent, sign * 3),
                Product(At(2), top_, -1)}) != 0;
  };
  const bool positive = grows(1), negative = grows(-1);
  seen_.cut = DirectionOf(positive, negative);
}

// Sums 2^top + 2^top + 2^(top - i), which needs i + 1 fraction bits.
void Observer::SeeResultBits() {
  std::vector<SparseDot> dots;
  for (int i = 0; i < kF32FractionBits && top_ - i >= bottom_; ++i) {
    dots.push_back({Product(At(0), top_), Product(At(1), top_), Product(At(2), top_ - i)});
  }
  const std::vector<float> sums = Sums(dots, inner_);
  int bits = 0;
  while (bits < static_cast<int>(sums.size()) &&
         sums[static_cast<size_t>(bits)] ==
             std::ldexp(2.0f, top_) + std::ldexp(1.0f, top_ - bits)) {
    ++bits;
  }
  seen_.result_bits = bits;
}

// Makes a sum halfway between two neighbours of result_bits fraction bits, the lower one odd.
void Observer::SeeResultCut() {
  const int bits = *seen_.result_bits;
  if (*seen_.kept_bits < bits || top_ - bits < bottom_) return;
  const auto grows = [&](float sign) {
    const float sum = Sum({Product(At(0), top_, sign),
                           Product(At(1), top_, sign),
                           Product(At(2), top_ + 1 - bits, sign),
                           Product(At(3), top_ - bits, sign)});
    return std::fabs(sum) > std::ldexp(2.0f, top_) + std::ldexp(1.0f, top_ + 1 - bits);
  };
  const bool positive = grows(1), negative = grows(-1);
  seen_.result_cut = DirectionOf(positive, negative);
}

// Adds 1.5 * 2^(top - 24) to 2^top. A truncating step drops it, and a float32 addition rounds it
// up. If every step rounds to nearest, adding 2^(top - 24) twice has no effect, but adding the sum
// of both does.
void Observer::SeePromotion() {
  if (top_ - 25 < bottom_) return;
  const size_t step = seen_.chunk.value_or(1);
  const size_t inner = RoundedUp(step * kMostSteps);
  std::vector<SparseDot> dots = {{Product(At(0), top_), Product(At(1), top_ - 25, 3)}};
  for (size_t t = step; t < inner; t += step) {
    dots.push_back({Product(0, top_), Product(t, top_ - 25, 3)});
  }
  std::vector<float> sums = Sums(dots, inner);
  const auto other = [&sums](float sum) { return sum != sums[0]; };
  auto first = std::find_if(sums.begin(), sums.end(), other);
  if (first != sums.end()) {
    seen_.promotion = static_cast<size_t>(first - sums.begin()) * step;
    return;
  }
  if (sums[0] == std::ldexp(1.0f, top_)) return;
  dots.clear();
  for (size_t t = 1; t < inner_; ++t) {
    dots.push_back({Product(0, top_), Product(t, top_ - 24), Product(t + 1, top_ - 24)});
  }
  sums = Sums(dots, RoundedUp(inner_ + 1));
  if (sums[0] != std::ldexp(1.0f, top_) || other(sums[1])) return;  // a step has several products
  first = std::find_if(sums.begin(), sums.end(), other);
  if (first != sums.end()) seen_.promotion = static_cast<size_t>(first - sums.begin()) + 1;
}

// Sums s * 2^x + t - s * 2^x, where s is the smallest subnormal operand and t is the lowest bit
// that is kept beside a product as small as s * 2^x. If s is aligned by its own exponent, t
// survives. If s is aligned by the minimum exponent of the format, t is lost.
void Observer::SeeSubnormals() {
  const int below = normal_a_.least - any_a_.least;
  if (below < 1) return;
  const float s = std::ldexp(1.0f, any_a_.least);
  const Term least{At(0), s, std::ldexp(1.0f, normal_b_.most / 2)};
  const float product = least.a * least.b;
  seen_.flushes_subnormals = Sum({least}) == 0;
  if (*seen_.flushes_subnormals || seen_.kept_bits_at_least) return;
  const int exponent = std::ilogb(product) - *seen_.kept_bits;
  if (exponent < any_a_.least + any_b_.least || exponent < kLeastF32Bit) return;
  Term small{At(1), 0, 0};
  const int eb = std::clamp(exponent / 2, any_b_.least, normal_b_.most);
  if (exponent - eb < any_a_.least || exponent - eb > normal_a_.most) return;
  small.a = std::ldexp(1.0f, exponent - eb);
  small.b = std::ldexp(1.0f, eb);
  seen_.normalises_subnormals =
      Sum({least, small, {At(2), -least.a, least.b}}) == std::ldexp(1.0f, exponent);
}

// Sums 2^-150 + 2^-151 + ... + 2^-n + 2^-n = 2^-149. A truncating unit that drops the last terms
// gives 0.
void Observer::SeeLeastBit() {
  if (!seen_.chunk || normal_a_.least + normal_b_.least > kTinyReach) return;
  if (seen_.result_cut != CutDirection::kTowardZero) return;
  for (size_t terms = 2; terms <= *seen_.chunk; ++terms) {
    SparseDot dot;
    for (size_t i = 0; i < terms; ++i) {
      const int bit = static_cast<int>(std::min(i, terms - 2)) + 1;
      dot.push_back(Product(At(i), kLeastF32Bit - bit));
    }
    if (Sum(dot) == 0) return;
    seen_.least_bit = kLeastF32Bit - static_cast<int>(terms) + 1;
    seen_.least_bit_at_most = terms == *seen_.chunk;
  }
}

void Observer::SeeSpecials() {
  const auto bits = [](float x) { return std::bit_cast<uint32_t>(x); };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto add = [&](const SparseDot& dot) { seen_.nans.push_back(bits(Sum(dot))); };
  const int e = normal_a_.most < 0 ? normal_a_.most : std::max(0, normal_a_.least);
  const float a = std::ldexp(1.0f, e);
  const float b = std::ldexp(1.0f, std::clamp(0, normal_b_.least, normal_b_.most));
  if (unit_.a.HasNan()) add({{0, nan, b}});
  if (unit_.a.HasInfinity()) {
    add({{0, Infinity(), 0}});
    add({{0, Infinity(), b}, {1, -Infinity(), b}});
  }
  seen_.cancelled_zero = bits(Sum({{0, a, b}, {1, -a, b}}));
}

}  // namespace

UnitObservations Observe(const TensorCore& unit, std::vector<ProbeAnswer>& log) {
  NUMSIM_CHECK(unit.inner_step >= 1 && unit.inner_most % unit.inner_step == 0,
               "inner dimensions in steps of {} up to {}",
               unit.inner_step,
               unit.inner_most);
  return Observer(unit, log).All();
}

}  // namespace numsim
