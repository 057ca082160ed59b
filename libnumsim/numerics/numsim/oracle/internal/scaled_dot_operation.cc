// Dot products of operands with block scales, as MX [OCP-MX] and NVFP4 [NVFP4] have them: blocks of
// `block` products share the scales sa and sb, and tensors may have scales Ta and Tb of float32.
//
//   exact        The exact sum of all a[i] b[i] sa sb Ta Tb, rounded once to the result.
//   block-scaled Accumulate() with the scales, which enter the unit. The unit ignores the sign of a
//                scale of e4m3fn [MMA-Sim].
//   all others   Within a block, S is Accumulate() without scales. Of each block,
//                t = fl32(fl64(S * (sa * sb))); the t are added in float32, in order, from the
//                first: what `numsim gemm --segment` computes. With tensor scales the sum is then
//                replaced by fl32(fl64(sum * (Ta * Tb))). It is rounded once to the result.
//
// The tensor scales of block-scaled modes are those of `all others`.
//
// Columns: a[i], b[i], scale-a[j], scale-b[j], and with tensor scales tensor-a and tensor-b. The last
// rounding uses the rounding mode and the overflow policy of the request.
#include "numsim/oracle/internal/scaled_dot_operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "numsim/arith/shared/exact.h"
#include "numsim/arith/shared/exact_sum.h"
#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/rounding/rounding_modes.h"

namespace numsim {
namespace {

constexpr int kMxBlock = 32;
constexpr int kOtherBlock = 16;

Format Fp32() { return {"fp32", kFp32}; }

class ScaledDot : public Operation {
 protected:
  ScaledDot(const OperationInfo& info, const ResolvedRequest& r)
      : Operation(info, CaseShape::kDot),
        a_(r.a.spec),
        b_(r.b.spec),
        scale_(r.scale.spec),
        to_(r.plan),
        has_tensor_scales_(r.tensor_scale) {
    block_ = static_cast<size_t>(r.block != 0 ? r.block : DefaultBlock());
    length_ = r.length != 0 ? static_cast<size_t>(r.length) : block_;
    blocks_ = (length_ + block_ - 1) / block_;
    AddColumns("a[{}]", length_, r.a);
    AddColumns("b[{}]", length_, r.b);
    AddColumns("scale-a[{}]", blocks_, r.scale);
    AddColumns("scale-b[{}]", blocks_, r.scale);
    if (has_tensor_scales_) {
      inputs_.push_back(CodeColumn("tensor-a", Fp32()));
      inputs_.push_back(CodeColumn("tensor-b", Fp32()));
    }
    operands_ = inputs_.size();
    scales_ = 2 * blocks_;
    has_random_ = AppendRandom(r.plan.rounding, 1, inputs_) != 0;
    results_.push_back(CodeColumn("result", r.to));
    sum_exponents_ = {r.to.spec.SubnormalExponent(), r.to.spec.MaxExponent()};
  }

  size_t Begin(size_t block) const { return block * block_; }
  size_t End(size_t block) const { return std::min(length_, (block + 1) * block_); }
  // Element or scale of the first operand (side 0) or the second.
  uint32_t Code(std::span<const uint64_t> inputs, int side, size_t i) const {
    return static_cast<uint32_t>(inputs[i + (side == 0 ? 0 : length_)]);
  }
  uint32_t ScaleCode(std::span<const uint64_t> inputs, int side, size_t block) const {
    return static_cast<uint32_t>(inputs[2 * length_ + (side == 0 ? 0 : blocks_) + block]);
  }
  uint32_t TensorCode(std::span<const uint64_t> inputs, int side) const {
    return static_cast<uint32_t>(inputs[operands_ - (side == 0 ? 2 : 1)]);
  }
  uint32_t Random(std::span<const uint64_t> inputs) const {
    return static_cast<uint32_t>(has_random_ ? inputs[operands_] : 0);
  }

  FormatSpec a_, b_, scale_;
  EncodePlan to_;
  bool has_tensor_scales_;
  bool has_random_ = false;
  size_t block_ = 0, blocks_ = 0;

 private:
  int DefaultBlock() const { return scale_.mantissa_bits == 0 ? kMxBlock : kOtherBlock; }
  void AddColumns(const char* name, size_t count, const Format& format) {
    for (size_t i = 0; i < count; ++i) {
      inputs_.push_back(CodeColumn(fmt::format(fmt::runtime(name), i), format));
    }
  }
};

class ExactScaledDot : public ScaledDot {
 public:
  ExactScaledDot(const OperationInfo& info, const ResolvedRequest& r) : ScaledDot(info, r) {
    // A product and the half of a tensor scale that multiplies it must fit an Unrounded.
    const int bits = a_.mantissa_bits + b_.mantissa_bits + 2 * scale_.mantissa_bits + 4;
    const int most = has_tensor_scales_ ? 38 : Unrounded::kKeptBits;
    const auto low = [](const FormatSpec& f) { return f.SubnormalExponent(); };
    const int lowest = low(a_) + low(b_) + 2 * low(scale_) + (has_tensor_scales_ ? 2 * -149 : 0);
    if (bits > most || lowest < ExactSum::kLowest) {
      throw Error::Format(
          "--op dot --scale-format {}: products of {}, {} and their scales have {} bits and go down "
          "to 2^{}, and exact sums take {} bits down to 2^{}; use smaller formats",
          r.scale.name,
          r.a.name,
          r.b.name,
          bits,
          lowest,
          most,
          ExactSum::kLowest);
    }
  }

  Flags Evaluate(std::span<const uint64_t> inputs,
                 std::span<uint64_t> results) const noexcept override {
    ExactSum sum;
    Flags flags = 0;
    bool nan = false;
    const Factor tensors = TensorFactor(inputs, flags);
    for (size_t block = 0; block < blocks_; ++block) {
      const exact::Outcome scale = exact::Product(ExactValue(scale_, ScaleCode(inputs, 0, block)),
                                                  ExactValue(scale_, ScaleCode(inputs, 1, block)));
      flags |= scale.flags;
      for (size_t i = Begin(block); i < End(block); ++i) {
        const exact::Outcome product =
            exact::Product(ExactValue(a_, Code(inputs, 0, i)), ExactValue(b_, Code(inputs, 1, i)));
        const exact::Outcome scaled = exact::Product(product.value, scale.value);
        flags |= product.flags | scaled.flags;
        nan = Add(scaled.value, tensors, sum, flags) || nan;
      }
    }
    if (sum.Invalid() && !nan) flags |= kInvalid;
    const bool zero_negative = ZeroSumIsNegative(to_.rounding.mode);
    const Rounded r = EncodeUnrounded(to_, sum.Result(zero_negative), Random(inputs));
    results[0] = r.code;
    return static_cast<Flags>(flags | r.flags);
  }

 private:
  // Ta Tb, in two parts of at most 24 bits. `low` is not used if it is zero.
  struct Factor {
    Unrounded high, low;
  };

  Factor TensorFactor(std::span<const uint64_t> inputs, Flags& flags) const noexcept {
    if (!has_tensor_scales_) return {{NumberKind::kFinite, false, 0, 1}, {}};
    const exact::Outcome product = exact::Product(ExactValue(kFp32, TensorCode(inputs, 0)),
                                                  ExactValue(kFp32, TensorCode(inputs, 1)));
    flags |= product.flags;
    Factor factor{product.value, product.value};
    if (product.value.kind != NumberKind::kFinite) {
      factor.low = {};
      return factor;
    }
    factor.high.significand = product.value.significand >> 24;
    factor.high.exponent += 24;
    factor.low.significand = product.value.significand & 0xFFFFFF;
    if (factor.high.significand == 0) std::swap(factor.high, factor.low);
    return factor;
  }

  // Adds the product to the sum. Returns true if it is NaN.
  static bool Add(const Unrounded& x, const Factor& factor, ExactSum& sum, Flags& flags) noexcept {
    const exact::Outcome high = exact::Product(x, factor.high);
    flags |= high.flags;
    sum.Add(high.value);
    const bool nonzero = x.kind == NumberKind::kFinite && x.significand != 0;
    if (nonzero && factor.low.significand != 0) sum.Add(exact::Product(x, factor.low).value);
    return high.value.kind == NumberKind::kNan;
  }
};

class ModelledScaledDot : public ScaledDot {
 public:
  ModelledScaledDot(const OperationInfo& info,
                    const ResolvedRequest& r,
                    const AccumulationMode& mode)
      : ScaledDot(info, r), mode_(mode), f32_(r.to.spec == kFp32) {
    if (!IsBlockScaled(mode)) return;
    CheckUnit(r);
    scales_enter_sum_ = true;
  }

  Flags Evaluate(std::span<const uint64_t> inputs,
                 std::span<uint64_t> results) const noexcept override {
    Values a, b;
    for (size_t i = 0; i < length_; ++i) {
      a[i] = Decode(a_, Code(inputs, 0, i));
      b[i] = Decode(b_, Code(inputs, 1, i));
    }
    float sum = IsBlockScaled(mode_) ? SumOfUnit(inputs, a, b) : SumOfBlocks(inputs, a, b);
    if (has_tensor_scales_) {
      sum = Scaled(static_cast<double>(sum),
                   Decode(kFp32, TensorCode(inputs, 0)),
                   Decode(kFp32, TensorCode(inputs, 1)));
    }
    const auto bits = std::bit_cast<uint32_t>(sum);
    const Unrounded last = ExactValue(kFp32, bits);
    const Rounded r = EncodeUnrounded(to_, last, Random(inputs));
    results[0] = f32_ && std::isnan(sum) ? NanResult(mode_) : r.code;
    return r.flags;
  }

 private:
  using Values = std::array<float, kMostDotLength>;

  // Throws Error unless the unit of a block-scaled mode takes the operands and their scales.
  void CheckUnit(const ResolvedRequest& r) const {
    const bool ue4m3 = scale_ == kE4M3fn && mode_.format == NamedFormat("ue4m3fn");
    if (scale_ != mode_.format && !ue4m3) {
      throw Error::Format("--scale-format {}: accumulation mode {} takes scales of {}",
                          r.scale.name,
                          ToString(mode_),
                          ToString(mode_.format));
    }
    if (block_ % static_cast<size_t>(LeastBlock(mode_)) != 0) {
      throw Error::Format("--block {}: accumulation mode {} takes multiples of {}",
                          block_,
                          ToString(mode_),
                          LeastBlock(mode_));
    }
    if (mode_.group != 0 && (a_ != kE2M1fn || b_ != kE2M1fn)) {
      throw Error::Format("--accumulation-mode {}: takes e2m1fn alone", ToString(mode_));
    }
  }

  float SumOfUnit(std::span<const uint64_t> inputs,
                  const Values& a,
                  const Values& b) const noexcept {
    Values scales_a, scales_b;
    for (size_t block = 0; block < blocks_; ++block) {
      scales_a[block] = std::fabs(Decode(scale_, ScaleCode(inputs, 0, block)));
      scales_b[block] = std::fabs(Decode(scale_, ScaleCode(inputs, 1, block)));
    }
    return static_cast<float>(ToFloat64(Accumulate(
        mode_,
        {a_, std::span(a).first(length_), {std::span(scales_a).first(blocks_), block_}},
        {b_, std::span(b).first(length_), {std::span(scales_b).first(blocks_), block_}})));
  }

  float SumOfBlocks(std::span<const uint64_t> inputs,
                    const Values& a,
                    const Values& b) const noexcept {
    float sum = 0;
    for (size_t block = 0; block < blocks_; ++block) {
      const size_t begin = Begin(block), n = End(block) - begin;
      const Unrounded in_block = Accumulate(
          mode_, {a_, std::span(a).subspan(begin, n)}, {b_, std::span(b).subspan(begin, n)});
      const float t = Scaled(ToFloat64(in_block),
                             Decode(scale_, ScaleCode(inputs, 0, block)),
                             Decode(scale_, ScaleCode(inputs, 1, block)));
      sum = block == 0 ? t : sum + t;
    }
    return sum;
  }

  // Exact: these sums are numbers of float64.
  static double ToFloat64(const Unrounded& x) noexcept {
    if (x.kind == NumberKind::kNan) return std::numeric_limits<double>::quiet_NaN();
    const double magnitude = x.kind == NumberKind::kInfinity
                                 ? std::numeric_limits<double>::infinity()
                                 : std::ldexp(static_cast<double>(x.significand), x.exponent);
    return x.negative ? -magnitude : magnitude;
  }
  static float Scaled(double sum, float a, float b) noexcept {
    return static_cast<float>(sum * (static_cast<double>(a) * static_cast<double>(b)));
  }

  AccumulationMode mode_;
  bool f32_;
};

}  // namespace

std::unique_ptr<Operation> MakeScaledDot(const OperationInfo& info,
                                         const ResolvedRequest& request,
                                         const AccumulationMode& mode) {
  if (mode.kind == AccumulationKind::kExact) {
    return std::make_unique<ExactScaledDot>(info, request);
  }
  return std::make_unique<ModelledScaledDot>(info, request, mode);
}

}  // namespace numsim
