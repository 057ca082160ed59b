// Quantisation of a block of numbers that share a scale: quantize-mx and quantize-nvfp4.
//
// Common to both:
//   - The absmax A is taken over the finite elements; infinities and NaN are ignored. A block
//     without finite elements has A = 0.
//   - Each code is the exact quotient element / scale, rounded once in the mode of the request. The
//     default overflow policy is `saturate`: infinities become the largest value. A NaN becomes
//     the same code as in `convert`, which is the largest value in a format without NaN.
//
// quantize-mx [OCP-MX]: scale = 2^(floor(log2 A) - emax), clamped to 2^-127 .. 2^127, as a code of
// e8m0fnu; emax is the exponent of the largest value of the element format. A = 0 gives scale 1
// (code 7F). This is ScaleRule::kE8m0, the default; a request may name another rule whose scales are
// powers of two. Elements above the largest value saturate. Elements of int8 are integers: [OCP-MX]
// counts in units of 2^-6, so the scale here is 2^6 times smaller.
//
// quantize-nvfp4: scale = A / (6 T) rounded once to e4m3fn, nearest-even, saturating. The elements
// are codes of e2m1fn for element / (scale * T) with the exact product scale * T. T is the last
// operand (fp32) if the request has a tensor scale, else 1. A scale that rounds to zero stays zero,
// and its finite elements become zeros of their signs. A T that is not finite and positive gives a
// NaN scale (7F) and elements that are NaN before they are rounded: the largest value, code 7.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "numsim/arith/shared/exact.h"
#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/oracle/internal/operation_row.h"
#include "numsim/quantize/scale.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {
namespace {

constexpr int kMxLength = 32;
constexpr int kNvfp4Length = 16;
constexpr int kE8m0Bias = 127;

Format Named(const FormatSpec& spec) { return {ToString(spec), spec}; }

// Returns the index of the largest finite magnitude, or codes.size() if no element is finite.
size_t IndexOfMaximum(const FormatSpec& format, std::span<const uint64_t> codes) {
  size_t index = codes.size();
  float maximum = -1;
  for (size_t i = 0; i < codes.size(); ++i) {
    const float magnitude = std::fabs(Decode(format, static_cast<uint32_t>(codes[i])));
    if (std::isfinite(magnitude) && magnitude > maximum) {
      maximum = magnitude;
      index = i;
    }
  }
  return index;
}

// Common base. Columns: x[i], the tensor scale if requested, random[i] in stochastic modes; results
// scale, q[i].
class BlockOperation : public Operation {
 protected:
  BlockOperation(const OperationInfo& info,
                 const ResolvedRequest& r,
                 int default_length,
                 const FormatSpec& scale,
                 const FormatSpec& element)
      : Operation(info, CaseShape::kBlock),
        source_(r.a.spec),
        plan_(MakeEncodePlan(element, r.plan.rounding, r.plan.overflow)) {
    length_ = static_cast<size_t>(r.length != 0 ? r.length : default_length);
    for (size_t i = 0; i < length_; ++i) {
      inputs_.push_back(CodeColumn(fmt::format("x[{}]", i), r.a));
    }
    if (r.tensor_scale) inputs_.push_back(CodeColumn("tensor-scale", Named(kFp32)));
    operands_ = inputs_.size();
    has_random_ = AppendRandom(r.plan.rounding, length_, inputs_) != 0;
    results_.push_back(CodeColumn("scale", Named(scale)));
    for (size_t i = 0; i < length_; ++i) {
      results_.push_back(CodeColumn(fmt::format("q[{}]", i), Named(element)));
    }
  }

  Unrounded Element(std::span<const uint64_t> inputs, size_t i) const {
    return ExactValue(source_, static_cast<uint32_t>(inputs[i]));
  }
  // Returns the absmax A, exactly.
  Unrounded Maximum(std::span<const uint64_t> inputs) const {
    const size_t index = IndexOfMaximum(source_, inputs.first(length_));
    if (index == length_) return {};
    Unrounded maximum = Element(inputs, index);
    maximum.negative = false;
    return maximum;
  }
  uint32_t EncodeElement(std::span<const uint64_t> inputs, size_t i, const Unrounded& x) const {
    const auto random = static_cast<uint32_t>(has_random_ ? inputs[operands_ + i] : 0);
    return EncodeUnrounded(plan_, x, random).code;
  }

  FormatSpec source_;
  EncodePlan plan_;
  bool has_random_ = false;
};

class QuantizeMx : public BlockOperation {
 public:
  QuantizeMx(const OperationInfo& info, const ResolvedRequest& r)
      : BlockOperation(info, r, kMxLength, kE8M0fnu, r.to.spec), rule_(RuleOf(r.scale_rule)) {}

  Flags Evaluate(std::span<const uint64_t> inputs,
                 std::span<uint64_t> results) const noexcept override {
    const Unrounded maximum = Maximum(inputs);
    const float absmax = std::ldexp(static_cast<float>(maximum.significand), maximum.exponent);
    const int exponent = std::ilogb(MakeScale(plan_.format, absmax, rule_).scale);
    results[0] = static_cast<uint64_t>(exponent + kE8m0Bias);
    for (size_t i = 0; i < length_; ++i) {
      Unrounded x = Element(inputs, i);
      x.exponent -= exponent;
      results[1 + i] = EncodeElement(inputs, i, x);
    }
    return 0;
  }

 private:
  static ScaleRule RuleOf(const std::string& text) {
    if (text.empty()) return ScaleRule::kE8m0;
    const ScaleRule rule = ParseScaleRule(text);
    if (!GivesPowersOfTwo(rule) || rule == ScaleRule::kNone) {
      throw Error::Format("--scale-rule {}: scales of quantize-mx are powers of two", text);
    }
    return rule;
  }

  ScaleRule rule_;
};

class QuantizeNvfp4 : public BlockOperation {
 public:
  QuantizeNvfp4(const OperationInfo& info, const ResolvedRequest& r)
      : BlockOperation(info, r, kNvfp4Length, kE4M3fn, kE2M1fn),
        scale_plan_(MakeEncodePlan(kE4M3fn, {}, Overflow::kSaturate)),
        has_tensor_scale_(r.tensor_scale) {}

  Flags Evaluate(std::span<const uint64_t> inputs,
                 std::span<uint64_t> results) const noexcept override {
    const Unrounded tensor = TensorScale(inputs);
    const Unrounded divisor = exact::Product(kMaxElement, tensor).value;
    const Unrounded ratio = exact::Quotient(Maximum(inputs), divisor).value;
    const uint32_t code = EncodeUnrounded(scale_plan_, ratio).code;
    results[0] = code;
    const Unrounded scale = exact::Product(ExactValue(kE4M3fn, code), tensor).value;
    for (size_t i = 0; i < length_; ++i) {
      results[1 + i] = EncodeElement(inputs, i, Scaled(Element(inputs, i), scale));
    }
    return 0;
  }

 private:
  static constexpr Unrounded kOne{NumberKind::kFinite, false, 0, 1};
  static constexpr Unrounded kMaxElement{NumberKind::kFinite, false, 0, 6};  // largest of e2m1fn

  // Returns the tensor scale T, or NaN if T is not finite and positive.
  Unrounded TensorScale(std::span<const uint64_t> inputs) const {
    if (!has_tensor_scale_) return kOne;
    const Unrounded tensor = ExactValue(kFp32, static_cast<uint32_t>(inputs[length_]));
    const bool positive =
        tensor.kind == NumberKind::kFinite && tensor.significand != 0 && !tensor.negative;
    return positive ? tensor : Unrounded{NumberKind::kNan, false, 0, 0};
  }

  static Unrounded Scaled(const Unrounded& x, const Unrounded& scale) {
    const bool zero_scale = scale.kind == NumberKind::kFinite && scale.significand == 0;
    if (zero_scale && x.kind == NumberKind::kFinite) {
      return {NumberKind::kFinite, x.negative, 0, 0};
    }
    return exact::Quotient(x, scale).value;
  }

  EncodePlan scale_plan_;
  bool has_tensor_scale_;
};

template <typename Block>
std::unique_ptr<Operation> Make(const OperationInfo& info, const ResolvedRequest& request) {
  return std::make_unique<Block>(info, request);
}

const OperationRow kRows[] = {
    {{"quantize-mx",
      "quantises a block to a shared e8m0fnu scale 2^(floor(log2 absmax) - emax), or that of "
      "another scale rule, and codes; absmax "
      "is taken over finite elements, and an absmax of 0 gives scale 1; infinities saturate, NaN "
      "as in convert",
      false,
      {.wide_source = true,
       .to = true,
       .rounding = true,
       .overflow = true,
       .length = true,
       .scale_rule = true}},
     &Make<QuantizeMx>},
    {{"quantize-nvfp4",
      "quantises a block to an e4m3fn scale absmax / (6 T) and e2m1fn codes of x / (scale T), T "
      "the tensor scale; absmax is taken over finite elements, and a scale that rounds to 0 gives "
      "zeros; infinities and NaN as in quantize-mx",
      false,
      {.wide_source = true,
       .rounding = true,
       .overflow = true,
       .length = true,
       .tensor_scale = true}},
     &Make<QuantizeNvfp4>},
};

}  // namespace

std::span<const OperationRow> BlockRows() { return kRows; }

}  // namespace numsim
