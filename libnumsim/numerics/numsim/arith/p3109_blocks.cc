#include "numsim/arith/p3109_blocks.h"

#include <algorithm>
#include <array>
#include <bit>

#include "numsim/arith/internal/p3109_exact.h"
#include "numsim/arith/shared/exact_sum.h"
#include "numsim/base/error.h"
#include "numsim/rounding/shared/lanes_scalar.h"

namespace numsim::p3109 {
namespace {

using scalar::Uint128;

uint32_t RandomOf(std::span<const uint32_t> random, size_t i) {
  return random.empty() ? 0 : random[i];
}

// Adds x y to the sum. The product may have 96 bits, and addends 62: so in two parts of x.
void AddProduct(const Unrounded& x, const Unrounded& y, ExactSum& sum) {
  if (x.kind != NumberKind::kFinite || y.kind != NumberKind::kFinite) return sum.Add(Product(x, y));
  constexpr int kHalf = 24;
  const auto half = [](const Unrounded& a, bool high) {
    Unrounded part = a;
    part.significand = high ? a.significand >> kHalf : a.significand & ((1 << kHalf) - 1);
    if (high) part.exponent += kHalf;
    return part;
  };
  for (const bool x_high : {false, true}) {
    for (const bool y_high : {false, true}) sum.Add(Product(half(x, x_high), half(y, y_high)));
  }
}

// A product of odd numbers of up to 48 bits, exact.
class ExactProduct {
 public:
  void Multiply(const Unrounded& x) {
    negative_ = negative_ != x.negative;
    exponent_ += x.exponent;
    const int low = std::countr_zero(x.significand);
    const uint64_t odd = x.significand >> low;
    exponent_ += low;
    uint64_t carry = 0;
    for (size_t i = 0; i < size_; ++i) {
      const Uint128 product = Uint128{limbs_[i]} * odd + carry;
      limbs_[i] = static_cast<uint64_t>(product);
      carry = static_cast<uint64_t>(product >> 64);
    }
    if (carry != 0) limbs_[size_++] = carry;
  }

  // Rounded to odd. An odd number of more bits than are kept has one below them.
  Unrounded Result() const {
    const uint64_t top = limbs_[size_ - 1];
    const int width = static_cast<int>(std::bit_width(top));
    const uint64_t next = size_ > 1 ? limbs_[size_ - 2] : 0;
    const int bits = 64 * static_cast<int>(size_ - 1) + width;
    if (bits <= Unrounded::kKeptBits) return {NumberKind::kFinite, negative_, Limited(0), top};
    // The 128 bits at the top, of which kKeptBits stay.
    const Uint128 window = (Uint128{top} << 64 | next) >> (width + 64 - Unrounded::kKeptBits);
    return {NumberKind::kFinite,
            negative_,
            Limited(bits - Unrounded::kKeptBits - 1),
            static_cast<uint64_t>(window) << 1 | 1};
  }

 private:
  // Keeps exponents in the range of EncodeUnrounded; all of them are far out of any format's.
  int Limited(int up) const {
    constexpr int64_t kFar = 1 << 17;
    return static_cast<int>(std::clamp(exponent_ + up, -kFar, kFar));
  }

  static constexpr size_t kLimbs = 4096 * 48 / 64 + 1;
  std::array<uint64_t, kLimbs> limbs_ = {1};
  size_t size_ = 1;
  int64_t exponent_ = 0;
  bool negative_ = false;
};

bool IsZero(const Unrounded& x) { return x.kind == NumberKind::kFinite && x.significand == 0; }

}  // namespace

void ComputeBlock(Op op,
                  std::span<const Block> operands,
                  const Operand& scale,
                  const EncodePlan& to,
                  std::span<uint32_t> out,
                  std::span<const uint32_t> random) noexcept {
  std::array<ScaledOperand, 3> x;
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t k = 0; k < operands.size(); ++k) x[k] = operands[k][i];
    out[i] = Compute(op, std::span(x).first(operands.size()), scale, to, RandomOf(random, i));
  }
}

void ConvertFromBlock(const Block& block,
                      const EncodePlan& to,
                      std::span<uint32_t> out,
                      std::span<const uint32_t> random) noexcept {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = Project(Decode(block[i]), to, RandomOf(random, i));
  }
}

void ConvertToBlock(const FormatSpec& format,
                    std::span<const uint32_t> x,
                    const Operand& scale,
                    const EncodePlan& to,
                    std::span<uint32_t> out,
                    std::span<const uint32_t> random) noexcept {
  const Unrounded divisor = Decode(scale);
  for (size_t i = 0; i < out.size(); ++i) {
    const Unrounded value = Decode(Operand{format, x[i]});
    out[i] = Project(Result(Op::kConvert, {&value, 1}, divisor), to, RandomOf(random, i));
  }
}

uint32_t ConvertToBlockMaxAbsFinite(const FormatSpec& format,
                                    std::span<const uint32_t> x,
                                    const EncodePlan& scale_to,
                                    const EncodePlan& to,
                                    std::span<uint32_t> out,
                                    uint32_t scale_random,
                                    std::span<const uint32_t> random) noexcept {
  Unrounded largest = {NumberKind::kNan, false, 0, 0};
  for (const uint32_t code : x) {
    Unrounded magnitude = Decode(Operand{format, code});
    magnitude.negative = false;
    const Unrounded both[] = {largest, magnitude};
    largest = Result(Op::kMaximumFinite, both, kOne);
  }
  const uint32_t scale = Project(largest, scale_to, scale_random);
  ConvertToBlock(format, x, {scale_to.format, scale}, to, out, random);
  return scale;
}

uint32_t BlockReduceAdd(const Block& block, const EncodePlan& to, uint32_t random) noexcept {
  ExactSum sum;
  for (size_t i = 0; i < block.elements.size(); ++i) sum.Add(Decode(block[i]));
  return Project(sum.Result(), to, random);
}

uint32_t BlockReduceMultiply(const Block& block, const EncodePlan& to, uint32_t random) noexcept {
  NUMSIM_CHECK(block.elements.size() <= 4096, "{} elements", block.elements.size());
  ExactProduct product;
  Unrounded special = kOne;  // the product of zeros, infinities and NaN, with signs of all
  bool zero = false;
  for (size_t i = 0; i < block.elements.size(); ++i) {
    const Unrounded x = Decode(block[i]);
    if (x.kind == NumberKind::kFinite && x.significand != 0) {
      product.Multiply(x);
      special.negative = special.negative != x.negative;
    } else {
      special = Product(special, x);
      zero = zero || IsZero(x);
    }
  }
  const bool finite = special.kind == NumberKind::kFinite && !zero;
  return Project(finite ? product.Result() : special, to, random);
}

uint32_t BlockDotProduct(const Block& a,
                         const Block& b,
                         const EncodePlan& to,
                         uint32_t random) noexcept {
  ExactSum sum;
  for (size_t i = 0; i < a.elements.size(); ++i) AddProduct(Decode(a[i]), Decode(b[i]), sum);
  return Project(sum.Result(), to, random);
}

}  // namespace numsim::p3109
