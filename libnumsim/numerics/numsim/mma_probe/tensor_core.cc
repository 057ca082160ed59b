#include "numsim/mma_probe/tensor_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "numsim/base/require.h"
#include "numsim/formats/decode.h"
#include "numsim/gemm/gemm.h"
#include "numsim/random/distributions.h"
#include "numsim/rounding/encode.h"

namespace numsim {
namespace {

constexpr uint64_t kSeed = 0x50524F4245;
constexpr int kTinyBelow = -140;  // products below 2^this can become subnormal in float32
constexpr int kTinyExponent = -72;
constexpr float kSmallIntegers = 40;  // standard deviation of integer operands

// Random numbers for one block.
class Draws {
 public:
  Draws(uint64_t kind, size_t inner, uint64_t index)
      : stream_{kSeed + kind, (uint64_t{inner} << 32) + index} {}

  uint32_t Word() { return RandomWord(stream_, next_++); }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(uint64_t{Word()} * n >> 32); }
  float Sign() { return Word() >> 31 != 0 ? -1.0f : 1.0f; }
  float Significand() { return 1.0f + std::ldexp(static_cast<float>(Word() >> 9), -23); }
  void Normal(std::span<float> out) {
    FillNormal({stream_.seed + 1, stream_.stream}, next_, out);
    next_ += out.size();
  }

 private:
  RandomStream stream_;
  uint64_t next_ = 0;
};

// Rounds to the nearest value of a format, saturating.
class Grid {
 public:
  explicit Grid(const FormatSpec& format)
      : format_(format), plan_(MakeEncodePlan(format, {}, Overflow::kSaturate)) {}

  float Nearest(float x) const {
    return Decode(format_, EncodeF32(plan_, std::bit_cast<uint32_t>(x), 0));
  }
  bool IsInteger() const { return format_.sign == Sign::kTwosComplement; }
  const FormatSpec& format() const { return format_; }

  // Returns a random finite value; all finite codes have the same probability.
  float Any(Draws& draws) const {
    for (;;) {
      const uint32_t code = draws.Word() & format_.CodeMask();
      const float value = Decode(format_, code);
      if (Classify(format_, code) != ValueClass::kUnused && std::isfinite(value)) return value;
    }
  }

 private:
  FormatSpec format_;
  EncodePlan plan_;
};

using Rows = std::vector<float>;

void FillNormalRows(const Grid& grid, Draws& draws, Rows& rows) {
  draws.Normal(rows);
  for (float& x : rows) x = grid.Nearest(grid.IsInteger() ? kSmallIntegers * x : x);
}

void FillSpread(const Grid& grid, Draws& draws, Rows& rows) {
  for (float& x : rows) {
    const int exponent = static_cast<int>(draws.Below(16)) - 8;
    const float sign = grid.format().IsSigned() ? draws.Sign() : 1.0f;
    x = grid.Nearest(sign * std::ldexp(draws.Significand(), exponent));
  }
}

void FillTiny(const Grid& grid, Draws& draws, Rows& rows) {
  for (float& x : rows) {
    const int exponent = kTinyExponent - static_cast<int>(draws.Below(10));
    x = grid.Nearest(draws.Sign() * std::ldexp(draws.Significand(), exponent));
  }
}

void FillCodes(const Grid& grid, Draws& draws, Rows& rows) {
  for (float& x : rows) x = grid.Any(draws);
}

// Replaces one in 64 elements of every second row by an infinity, NaN, zero or the largest value of
// either sign.
void AddSpecials(const Grid& grid, size_t inner, Draws& draws, Rows& rows) {
  const FormatSpec& format = grid.format();
  const float infinity = format.HasInfinity() ? std::numeric_limits<float>::infinity() : 0.0f;
  const float nan = format.HasNan() ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
  const float choices[] = {infinity, -infinity, nan, 0.0f, MaxFinite(format), -MaxFinite(format)};
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i / inner % 2 == 0 || draws.Below(64) != 0) continue;
    rows[i] = choices[draws.Below(6)];
  }
}

// Groups positions into random pairs and makes the second product of a pair the negative of the
// first one; leaves a quarter of the pairs unchanged. All rows have the same pairs, so that the
// products of any two rows cancel.
void MakeCancel(size_t inner, Draws& draws, Rows& a, Rows& b) {
  std::vector<size_t> at(inner);
  std::iota(at.begin(), at.end(), size_t{0});
  for (size_t i = inner; i > 1; --i) {
    std::swap(at[i - 1], at[draws.Below(static_cast<uint32_t>(i))]);
  }
  for (size_t i = 0; i + 1 < inner; i += 2) {
    if (draws.Below(4) == 0) continue;
    for (size_t row = 0; row < kProbeRows; ++row) {
      a[row * inner + at[i + 1]] = -a[row * inner + at[i]];
      b[row * inner + at[i + 1]] = b[row * inner + at[i]];
    }
  }
}

}  // namespace

TensorCore SimulatedUnit(const AccumulationMode& mode, const FormatSpec& a, const FormatSpec& b) {
  NUMSIM_REQUIRE(mode.kind != AccumulationKind::kLibrary,
                 "SimulatedUnit: mode library has no stated order, expected another mode");
  NUMSIM_REQUIRE(!IsBlockScaled(mode),
                 "SimulatedUnit: mode {} takes scales of blocks, expected a mode without",
                 ToString(mode));
  TensorCore unit{
      .name = fmt::format("simulated {}", ToString(mode)), .a = a, .b = b, .multiply = {}};
  unit.multiply = [mode, a, b](std::span<const float> left,
                               std::span<const float> right,
                               size_t inner,
                               std::span<float> out) {
    Gemm({.format = a, .values = left, .rows = kProbeRows, .inner = inner},
         {.format = b, .values = right, .rows = kProbeRows, .inner = inner},
         mode,
         out);
  };
  return unit;
}

ProbeAnswer Ask(const TensorCore& unit, ProbeBlock block) {
  ProbeAnswer answer{std::move(block), std::vector<float>(kProbeRows * kProbeRows)};
  unit.multiply(answer.block.a, answer.block.b, answer.block.inner, answer.out);
  return answer;
}

std::vector<std::string> ProbeKinds(const FormatSpec& a, const FormatSpec& b) {
  std::vector<std::string> kinds = {"normal", "spread", "cancelling", "codes"};
  if (a.MinExponent() + b.MinExponent() < kTinyBelow) kinds.emplace_back("tiny");
  if (a.HasNan() || b.HasNan() || a.HasInfinity() || b.HasInfinity()) {
    kinds.emplace_back("special");
  }
  return kinds;
}

ProbeBlock RandomBlock(const std::string& kind,
                       const FormatSpec& a,
                       const FormatSpec& b,
                       size_t inner,
                       uint64_t index) {
  const size_t n = kProbeRows * inner;
  ProbeBlock block{.kind = kind, .inner = inner, .a = Rows(n), .b = Rows(n)};
  const Grid grid_a(a), grid_b(b);
  Draws draws(kind.size() * 256 + static_cast<unsigned char>(kind[0]), inner, index);
  const auto fill = [&](void (*make)(const Grid&, Draws&, Rows&)) {
    make(grid_a, draws, block.a);
    make(grid_b, draws, block.b);
  };
  if (kind == "normal") {
    fill(FillNormalRows);
  } else if (kind == "codes") {
    fill(FillCodes);
  } else if (kind == "tiny") {
    fill(FillTiny);
  } else {
    fill(grid_a.IsInteger() || grid_b.IsInteger() ? FillNormalRows : FillSpread);
  }
  if (kind == "cancelling") MakeCancel(inner, draws, block.a, block.b);
  if (kind == "special") {
    AddSpecials(grid_a, inner, draws, block.a);
    AddSpecials(grid_b, inner, draws, block.b);
  }
  return block;
}

}  // namespace numsim
