#include "numsim/arith/shared/wide.h"

#include <algorithm>
#include <bit>

#include "numsim/arith/internal/ball.h"

namespace numsim::exact {
namespace {

using ball::AddTo;
using ball::IsLess;
using ball::LeadingZeros;
using ball::ShiftedDown;
using ball::ShiftedUp;
using ball::SubtractFrom;
using scalar::Uint128;

using Limbs = std::array<uint64_t, 4>;
constexpr int kBits = 256;

template <size_t kLimbs>
bool AnyBelow(const std::array<uint64_t, kLimbs>& x, int n) {  // one of the lowest n bits is set
  for (size_t i = 0; i < kLimbs && static_cast<int>(64 * i) < n; ++i) {
    const int here = n - static_cast<int>(64 * i);
    if ((here >= 64 ? x[i] : x[i] & ((uint64_t{1} << here) - 1)) != 0) return true;
  }
  return false;
}

// Returns the leading bits of x 2^exponent, of which `more` says whether others follow.
template <size_t kLimbs>
Wide Leading(bool negative, const std::array<uint64_t, kLimbs>& x, int exponent, bool more) {
  constexpr int kExcess = 64 * static_cast<int>(kLimbs) - kBits;
  const int up = LeadingZeros(x);
  if (up == 64 * static_cast<int>(kLimbs)) return {};
  const auto top = ShiftedUp(x, up);
  Wide result{negative, more || AnyBelow(top, kExcess), exponent - up + kExcess, {}};
  std::copy(top.end() - 4, top.end(), result.limbs.begin());
  return result;
}

// Returns floor(x / d) and sets *more if a rest is left. Requires 0 < d < 2^63.
template <size_t kLimbs>
std::array<uint64_t, kLimbs> Divided(const std::array<uint64_t, kLimbs>& x,
                                     uint64_t d,
                                     bool* more) {
  std::array<uint64_t, kLimbs> quotient = {};
  uint64_t rest = 0;
  for (size_t i = kLimbs; i-- > 0;) {
    const Uint128 dividend = Uint128{rest} << 64 | x[i];
    quotient[i] = static_cast<uint64_t>(dividend / d);
    rest = static_cast<uint64_t>(dividend % d);
  }
  *more = *more || rest != 0;
  return quotient;
}

// Returns x 2^64, which leaves room for the bits of a quotient.
std::array<uint64_t, 5> WithRoom(const Limbs& x) { return {0, x[0], x[1], x[2], x[3]}; }

// Returns floor(sqrt(x)), bit by bit, and sets *more unless it is exact.
Limbs IntegerRoot(const Limbs& x, bool* more) {
  Limbs rest = {}, root = {}, digits = x;
  for (int i = 0; i < kBits / 2; ++i) {
    rest = ShiftedUp(rest, 2);
    rest[0] |= digits[3] >> 62;
    digits = ShiftedUp(digits, 2);
    Limbs trial = ShiftedUp(root, 2);
    trial[0] |= 1;
    root = ShiftedUp(root, 1);
    if (!IsLess(rest, trial)) {
      SubtractFrom(rest, trial);
      root[0] |= 1;
    }
  }
  *more = *more || LeadingZeros(rest) != kBits;
  return root;
}

}  // namespace

Wide WideOf(const Unrounded& x) noexcept {
  return Leading(x.negative, Limbs{x.significand}, x.exponent, false);
}

Wide JustAbove(const Unrounded& x) noexcept {
  Wide result = WideOf(x);
  result.more = true;
  return result;
}

Wide JustBelow(const Unrounded& x) noexcept {
  const Wide exact = WideOf(x);
  auto limbs = WithRoom(exact.limbs);
  SubtractFrom(limbs, {1});
  return Leading(x.negative, limbs, exact.exponent - 64, true);
}

Wide Product(const Wide& a, const Wide& b) noexcept {
  std::array<uint64_t, 8> product = {};
  for (size_t i = 0; i < 4; ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < 4; ++j) {
      const Uint128 sum = Uint128{a.limbs[i]} * b.limbs[j] + product[i + j] + carry;
      product[i + j] = static_cast<uint64_t>(sum);
      carry = static_cast<uint64_t>(sum >> 64);
    }
    product[i + 4] = carry;
  }
  return Leading(a.negative != b.negative, product, a.exponent + b.exponent, false);
}

Wide Sum(const Wide& a, const Wide& b) noexcept {
  if (a.IsZero()) return b;
  if (b.IsZero()) return a;
  const bool swapped =
      a.exponent != b.exponent ? a.exponent < b.exponent : IsLess(a.limbs, b.limbs);
  const Wide &high = swapped ? b : a, &low = swapped ? a : b;
  // In units of 2^(high.exponent - 256), so that two overlapping numbers keep all their bits.
  const int down = high.exponent - low.exponent;
  std::array<uint64_t, 9> x = {}, y = {};
  std::copy_n(high.limbs.begin(), 4, x.begin() + 4);
  std::copy_n(low.limbs.begin(), 4, y.begin() + 4);
  const bool more_low = low.more || AnyBelow(y, std::min(down, 512));
  y = down < 512 ? ShiftedDown(y, down) : decltype(y){};
  const bool more = high.more || more_low;
  if (high.negative == low.negative) {
    AddTo(x, y);
  } else {
    // The bits that were cut of the smaller one borrow from the difference.
    if (more_low) AddTo(y, decltype(y){1});
    SubtractFrom(x, y);
  }
  return Leading(high.negative, x, high.exponent - kBits, more);
}

Wide Quotient(const Wide& a, const Divisor& d) noexcept {
  bool more = a.more;
  const auto quotient = Divided(WithRoom(a.limbs), d.m, &more);
  return Leading(a.negative, quotient, a.exponent - d.e - 64, more);
}

Wide Root(const Wide& a) noexcept {
  if (a.IsZero()) return {};
  bool more = a.more;
  const bool odd = (a.exponent & 1) != 0;
  const Limbs radicand = odd ? ShiftedDown(a.limbs, 1) : a.limbs;
  more = more || (odd && (a.limbs[0] & 1) != 0);
  const Limbs root = IntegerRoot(radicand, &more);
  return Leading(false, root, (a.exponent + (odd ? 1 : 0)) / 2, more);
}

Wide ReciprocalRoot(uint64_t m, int e, const Divisor& d) noexcept {
  // 1 / sqrt(x) / d = sqrt(2^k / (m d.m^2)) 2^..., where 2^k is 2^254 or 2^255 to leave an even exponent.
  const int k = (e & 1) != 0 ? 255 : 254;
  bool more = false;
  Limbs quotient = ShiftedUp(Limbs{1}, k);
  for (const uint64_t divisor : {m, d.m, d.m}) quotient = Divided(quotient, divisor, &more);
  const Limbs root = IntegerRoot(quotient, &more);
  return Leading(false, root, -(k + e) / 2 - d.e, more);
}

Unrounded Narrow(const Wide& x) noexcept {
  if (x.IsZero()) return {NumberKind::kFinite, x.negative, 0, 0};
  constexpr int kCut = kBits - Unrounded::kKeptBits;
  const bool more = x.more || AnyBelow(x.limbs, kCut);
  const uint64_t kept = ShiftedDown(x.limbs, kCut)[0];
  return {NumberKind::kFinite, x.negative, x.exponent + kCut - 1, kept << 1 | (more ? 1 : 0)};
}

}  // namespace numsim::exact
