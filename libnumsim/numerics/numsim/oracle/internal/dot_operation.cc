// Dot products a[0] b[0] + ... + a[N-1] b[N-1] in an accumulation mode of
// arith/accumulation_mode.h.
//
//   exact            The exact sum, rounded once to the result. An exact zero is -0 if every
//                    product is -0, and in rounding mode rtn unless every product is +0.
//   FORMAT           acc = +0; acc = round(acc + a[i] b[i]) in FORMAT, i ascending, each step a
//                    fused multiply-add. At the end, acc is converted to the result.
//   FORMAT:unfused   acc = round(acc + round(a[i] b[i])), both in FORMAT.
//   all others       Accumulate(), which rounds as the accumulation mode defines, regardless of the
//                    request. The sum is rounded once to the result. A NaN in fp32 is NanResult().
//                    `library` has no reference result and is rejected.
//
// Every rounding of the first three, and the last rounding of the others, uses the rounding mode
// and the overflow policy of the request. In a stochastic mode each such rounding has its own
// random bits, in the order of the roundings. The last column belongs to the conversion to the
// result; it is the only one except with FORMAT and FORMAT:unfused. The flags are the OR of the
// flags of all these steps.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/arith/arith.h"
#include "numsim/arith/shared/exact.h"
#include "numsim/arith/shared/exact_sum.h"
#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/oracle/internal/operation_row.h"
#include "numsim/oracle/internal/scaled_dot_operation.h"
#include "numsim/rounding/rounding_modes.h"

namespace numsim {
namespace {

constexpr int kDefaultLength = 16;

class DotOperation : public Operation {
 protected:
  DotOperation(const OperationInfo& info, const ResolvedRequest& r, size_t roundings_of_a_step)
      : Operation(info, CaseShape::kDot), a_(r.a.spec), b_(r.b.spec), to_(r.plan) {
    length_ = static_cast<size_t>(r.length != 0 ? r.length : kDefaultLength);
    for (size_t i = 0; i < length_; ++i) {
      inputs_.push_back(CodeColumn(fmt::format("a[{}]", i), r.a));
    }
    for (size_t i = 0; i < length_; ++i) {
      inputs_.push_back(CodeColumn(fmt::format("b[{}]", i), r.b));
    }
    operands_ = inputs_.size();
    has_random_ = AppendRandom(r.plan.rounding, roundings_of_a_step * length_ + 1, inputs_) != 0;
    results_.push_back(CodeColumn("result", r.to));
    sum_exponents_ = {r.to.spec.SubnormalExponent(), r.to.spec.MaxExponent()};
  }

  Operand A(std::span<const uint64_t> inputs, size_t i) const {
    return {a_, static_cast<uint32_t>(inputs[i])};
  }
  Operand B(std::span<const uint64_t> inputs, size_t i) const {
    return {b_, static_cast<uint32_t>(inputs[length_ + i])};
  }
  // Returns the random bits of rounding k.
  uint32_t Random(std::span<const uint64_t> inputs, size_t k) const {
    return static_cast<uint32_t>(has_random_ ? inputs[operands_ + k] : 0);
  }

  FormatSpec a_, b_;
  EncodePlan to_;
  bool has_random_ = false;
};

class ExactDot : public DotOperation {
 public:
  ExactDot(const OperationInfo& info, const ResolvedRequest& r) : DotOperation(info, r, 0) {}

  Flags Evaluate(std::span<const uint64_t> inputs,
                 std::span<uint64_t> results) const noexcept override {
    ExactSum sum;
    Flags flags = 0;
    bool nan = false;
    for (size_t i = 0; i < length_; ++i) {
      const Operand a = A(inputs, i), b = B(inputs, i);
      const exact::Outcome product =
          exact::Product(ExactValue(a.format, a.code), ExactValue(b.format, b.code));
      sum.Add(product.value);
      flags |= product.flags;
      if (IsSignalingNan(a) || IsSignalingNan(b)) flags |= kInvalid;
      nan = nan || product.value.kind == NumberKind::kNan;
    }
    if (sum.Invalid() && !nan) flags |= kInvalid;
    const bool zero_negative = ZeroSumIsNegative(to_.rounding.mode);
    const Rounded r = EncodeUnrounded(to_, sum.Result(zero_negative), Random(inputs, 0));
    results[0] = r.code;
    return static_cast<Flags>(flags | r.flags);
  }
};

class SequentialDot : public DotOperation {
 public:
  SequentialDot(const OperationInfo& info,
                const ResolvedRequest& r,
                const FormatSpec& accumulation,
                bool fused)
      : DotOperation(info, r, fused ? 1 : 2),
        step_(MakeEncodePlan(accumulation, r.plan.rounding, r.plan.overflow)),
        fused_(fused) {
    step_.tininess = r.plan.tininess;
    sum_exponents_.high = std::min(sum_exponents_.high, accumulation.MaxExponent());
  }

  Flags Evaluate(std::span<const uint64_t> inputs,
                 std::span<uint64_t> results) const noexcept override {
    Operand acc{step_.format, EncodeUnrounded(step_, Unrounded{}).code};
    Flags flags = 0;
    size_t roundings = 0;
    for (size_t i = 0; i < length_; ++i) {
      const Operand a = A(inputs, i), b = B(inputs, i);
      Rounded r;
      if (fused_) {
        r = FusedMultiplyAdd(a, b, acc, step_, Random(inputs, roundings++));
      } else {
        const Rounded product = Multiply(a, b, step_, Random(inputs, roundings++));
        flags |= product.flags;
        r = Add(acc, {step_.format, product.code}, step_, Random(inputs, roundings++));
      }
      flags |= r.flags;
      acc.code = r.code;
    }
    const Rounded result = Convert(acc, to_, Random(inputs, roundings));
    results[0] = result.code;
    return static_cast<Flags>(flags | result.flags);
  }

 private:
  EncodePlan step_;
  bool fused_;
};

// Accumulation as on a device. The rounding of the request applies only to the final result.
class ModelledDot : public DotOperation {
 public:
  ModelledDot(const OperationInfo& info, const ResolvedRequest& r, const AccumulationMode& mode)
      : DotOperation(info, r, 0), mode_(mode), f32_(r.to.spec == kFp32) {}

  Flags Evaluate(std::span<const uint64_t> inputs,
                 std::span<uint64_t> results) const noexcept override {
    std::array<float, kMostDotLength> a, b;
    for (size_t i = 0; i < length_; ++i) {
      a[i] = Decode(a_, A(inputs, i).code);
      b[i] = Decode(b_, B(inputs, i).code);
    }
    const Unrounded sum =
        Accumulate(mode_, {a_, std::span(a).first(length_)}, {b_, std::span(b).first(length_)});
    const Rounded r = EncodeUnrounded(to_, sum, Random(inputs, 0));
    results[0] = f32_ && sum.kind == NumberKind::kNan ? NanResult(mode_) : r.code;
    return r.flags;
  }

 private:
  AccumulationMode mode_;
  bool f32_;
};

AccumulationMode ParseMode(const ResolvedRequest& r) {
  try {
    if (!r.any_operands) {
      CheckOperands(r.accumulation, r.a.spec, r.b.spec, "--any-operands allows it");
    }
    return ParseAccumulationMode(r.accumulation);
  } catch (const Error& error) {
    throw Error::Format("--accumulation-mode: {}", error.what());
  }
}

std::unique_ptr<Operation> Make(const OperationInfo& info, const ResolvedRequest& r) {
  const AccumulationMode mode = r.accumulation.empty() ? AccumulationMode{} : ParseMode(r);
  if (r.has_block_scales && mode.kind != AccumulationKind::kLibrary) {
    return MakeScaledDot(info, r, mode);
  }
  if (IsBlockScaled(mode)) {
    throw Error::Format(
        "--accumulation-mode {}: needs --scale-format {}, whose scales enter the unit",
        r.accumulation,
        ToString(mode.format));
  }
  switch (mode.kind) {
    case AccumulationKind::kExact:
      return std::make_unique<ExactDot>(info, r);
    case AccumulationKind::kFormat:
    case AccumulationKind::kFormatUnfused:
      return std::make_unique<SequentialDot>(
          info, r, mode.format, mode.kind == AccumulationKind::kFormat);
    case AccumulationKind::kLibrary:
      throw Error(
          "--accumulation-mode library has no defined order of summation and so no reference "
          "result; use fp32 or fp32-chunked:N");
    default:
      return std::make_unique<ModelledDot>(info, r, mode);
  }
}

const OperationRow kRows[] = {
    {{"dot",
      "a[0] b[0] + ... + a[N-1] b[N-1]; accumulation mode exact, FORMAT, FORMAT:unfused, fp64, "
      "fp32-chunked:N, trunc:F,CHUNK[,PROMOTE] or a name of `numsim oracle accumulation-modes`; with "
      "a scale format, blocks of products have scales",
      true,
      {.format_b = true,
       .to = true,
       .scale_format = true,
       .accumulation = true,
       .rounding = true,
       .overflow = true,
       .length = true,
       .tensor_scale = true,
       .block = true}},
     &Make},
};

}  // namespace

std::span<const OperationRow> DotRows() { return kRows; }

}  // namespace numsim
