// Operations with a few operands and one result, computed by the functions of arith/.
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "numsim/arith/arith.h"
#include "numsim/arith/elementary.h"
#include "numsim/arith/p3109.h"
#include "numsim/oracle/internal/operation_row.h"
#include "numsim/rounding/shared/float64_bits.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {
namespace {

// The data that Evaluate() needs: formats and encode plan, without column names.
struct Context {
  FormatSpec a, b, c, scale;
  EncodePlan plan;
  InvalidInteger invalid_integer;
};

struct Answer {
  uint64_t bits = 0;
  Flags flags = 0;

  Answer(Rounded r) : bits(r.code), flags(r.flags) {}
  Answer(Truth t) : bits(t.value ? 1 : 0), flags(t.flags) {}
  Answer(RoundedInteger i) : bits(i.bits), flags(i.flags) {}
};

// `in` holds the operands in the order of their columns.
using Function = Answer (*)(const Context& x, const uint64_t* in, uint32_t random);

enum class ResultKind : uint8_t { kTo, kSame, kTruth, kInteger, kFloat64 };

struct Definition {
  std::string_view name, summary;
  Function function;
  int codes = 1;                   // number of operands that are codes (formats a, b, c)
  bool scales = false;             // each of the two operands has a scale
  IntegerType integer_operand{0};  // the last operand; 0 bits: none
  bool float64_operand = false;    // the only operand
  ResultKind result = ResultKind::kTo;
  IntegerType integer_result{0};
  CaseShape shape = CaseShape::kElementwise;
  bool wide_source = false;
};

Operand Code(const FormatSpec& format, uint64_t code) {
  return {format, static_cast<uint32_t>(code)};
}
Operand A(const Context& x, const uint64_t* in) { return Code(x.a, in[0]); }
Operand B(const Context& x, const uint64_t* in) { return Code(x.b, in[1]); }
Operand C(const Context& x, const uint64_t* in) { return Code(x.c, in[2]); }

template <auto kFunction>
Answer Unary(const Context& x, const uint64_t* in, uint32_t random) {
  return kFunction(A(x, in), x.plan, random);
}
template <auto kFunction>
Answer Binary(const Context& x, const uint64_t* in, uint32_t random) {
  return kFunction(A(x, in), B(x, in), x.plan, random);
}
template <auto kFunction>
Answer Ternary(const Context& x, const uint64_t* in, uint32_t random) {
  return kFunction(A(x, in), B(x, in), C(x, in), x.plan, random);
}
template <auto kFunction>
Answer Scaled(const Context& x, const uint64_t* in, uint32_t random) {
  const ScaledOperand a{Code(x.scale, in[2]), A(x, in)};
  const ScaledOperand b{Code(x.scale, in[3]), B(x, in)};
  return kFunction(a, b, x.plan, random);
}
template <auto kFunction>
Answer Unrounding(const Context& x, const uint64_t* in, uint32_t) {
  return kFunction(A(x, in));
}
template <Predicate kPredicate>
Answer Comparison(const Context& x, const uint64_t* in, uint32_t) {
  return Holds(kPredicate, A(x, in), B(x, in));
}
template <Extremum kExtremum>
Answer Chosen(const Context& x, const uint64_t* in, uint32_t random) {
  return Choose(kExtremum, A(x, in), B(x, in), x.plan, random);
}
template <ElementaryFunction kFunction>
Answer Applied(const Context& x, const uint64_t* in, uint32_t random) {
  return Elementary(kFunction, A(x, in), x.plan, random);
}
template <int kBits, bool kSigned>
Answer IntegerOf(const Context& x, const uint64_t* in, uint32_t random) {
  return ToInteger(A(x, in), {kBits, kSigned}, x.plan.rounding, random, x.invalid_integer);
}

int64_t SignExtended(uint64_t bits, int width) {
  const int up = 64 - width;
  return static_cast<int64_t>(bits << up) >> up;
}
template <int kBits>
Answer FromSigned(const Context& x, const uint64_t* in, uint32_t random) {
  return FromInt64(SignExtended(in[0], kBits), x.plan, random);
}
Answer FromUnsigned(const Context& x, const uint64_t* in, uint32_t random) {
  return FromUint64(in[0], x.plan, random);
}
Answer FromFloat64(const Context& x, const uint64_t* in, uint32_t random) {
  return EncodeFloat64(x.plan, in[0], random);
}
// Exact: float64 has the values of every format.
Answer ToFloat64(const Context& x, const uint64_t* in, uint32_t) {
  const Operand a = A(x, in);
  const Unrounded value = ExactValue(a.format, a.code);
  const uint64_t sign = value.negative ? kFloat64Sign : 0;
  if (value.kind == NumberKind::kNan) {
    const Flags flags = IsSignalingNan(a) ? kInvalid : Flags{0};
    return RoundedInteger{sign | kFloat64Infinity | kFloat64Quiet, flags};
  }
  if (value.kind == NumberKind::kInfinity) return RoundedInteger{sign | kFloat64Infinity, 0};
  const double magnitude = std::ldexp(static_cast<double>(value.significand), value.exponent);
  return RoundedInteger{sign | std::bit_cast<uint64_t>(magnitude), 0};
}
Answer ScaledByPower(const Context& x, const uint64_t* in, uint32_t random) {
  return ScaleByPowerOfTwo(A(x, in), SignExtended(in[1], 32), x.plan, random);
}
Answer Integral(const Context& x, const uint64_t* in, uint32_t random) {
  return RoundToIntegral(A(x, in), x.plan.rounding, x.plan, random);
}

// Builders of table rows.
constexpr Definition Exact(std::string_view name, std::string_view summary, Function function) {
  return {.name = name, .summary = summary, .function = function, .result = ResultKind::kSame};
}
constexpr Definition Compares(std::string_view name, std::string_view summary, Function function) {
  return {.name = name,
          .summary = summary,
          .function = function,
          .codes = 2,
          .result = ResultKind::kTruth};
}
template <ElementaryFunction kFunction>
constexpr Definition Of() {
  for (const ElementaryName& row : kElementaryNames) {
    if (row.function != kFunction) continue;
    return {.name = row.name, .summary = row.meaning, .function = &Applied<kFunction>};
  }
  return {};
}
constexpr Definition OfTwo(std::string_view name, std::string_view summary, Function function) {
  return {.name = name, .summary = summary, .function = function, .codes = 2};
}
constexpr Definition WithScales(std::string_view name,
                                std::string_view summary,
                                Function function) {
  return {.name = name, .summary = summary, .function = function, .codes = 2, .scales = true};
}
template <int kBits, bool kSigned>
constexpr Definition To(std::string_view name) {
  return {
      .name = name,
      .summary = "a rounded to an integer; values out of range and NaN as --invalid-integer says",
      .function = &IntegerOf<kBits, kSigned>,
      .result = ResultKind::kInteger,
      .integer_result = {kBits, kSigned}};
}
constexpr Definition From(std::string_view name, IntegerType type, Function function) {
  return {.name = name,
          .summary = "an integer converted to the format",
          .function = function,
          .codes = 0,
          .integer_operand = type,
          .result = ResultKind::kSame};
}

constexpr std::array kDefinitions = {
    Definition{.name = "convert",
               .summary = "a converted to another format; a NaN keeps its sign",
               .function = &Unary<&Convert>,
               .wide_source = true},
    OfTwo("add", "a + b", &Binary<&Add>),
    OfTwo("sub", "a - b", &Binary<&Subtract>),
    OfTwo("mul", "a * b", &Binary<&Multiply>),
    OfTwo("div", "a / b; x / 0 is infinite", &Binary<&Divide>),
    OfTwo("div-p3109", "a / b; x / 0 is NaN", &Binary<&p3109::Divide>),
    Definition{.name = "fma",
               .summary = "a * b + c, rounded once",
               .function = &Ternary<&FusedMultiplyAdd>,
               .codes = 3,
               .shape = CaseShape::kProductSum},
    Definition{.name = "faa",
               .summary = "a + b + c, rounded once",
               .function = &Ternary<&FusedAddAdd>,
               .codes = 3},
    Definition{.name = "sqrt", .summary = "square root of a", .function = &Unary<&SquareRoot>},
    OfTwo("rem", "a - n b, where n is the integer nearest to a / b", &Binary<&Remainder>),
    Definition{
        .name = "recip", .summary = "1 / a; 1 / 0 is infinite", .function = &Unary<&Reciprocal>},
    Definition{.name = "recip-p3109",
               .summary = "1 / a; 1 / 0 is NaN",
               .function = &Unary<&p3109::Reciprocal>},
    Definition{.name = "scale",
               .summary = "a * 2^n, where n is a signed 32-bit integer",
               .function = &ScaledByPower,
               .integer_operand = {32, true}},
    Of<ElementaryFunction::kExp>(),
    Of<ElementaryFunction::kExp2>(),
    Of<ElementaryFunction::kExpMinusOne>(),
    Of<ElementaryFunction::kLog>(),
    Of<ElementaryFunction::kLog2>(),
    Of<ElementaryFunction::kLogOnePlus>(),
    Of<ElementaryFunction::kRsqrt>(),
    Of<ElementaryFunction::kSin>(),
    Of<ElementaryFunction::kCos>(),
    Of<ElementaryFunction::kTan>(),
    Of<ElementaryFunction::kArcSin>(),
    Of<ElementaryFunction::kArcCos>(),
    Of<ElementaryFunction::kArcTan>(),
    Of<ElementaryFunction::kSinPi>(),
    Of<ElementaryFunction::kCosPi>(),
    Of<ElementaryFunction::kTanPi>(),
    Of<ElementaryFunction::kArcSinPi>(),
    Of<ElementaryFunction::kArcCosPi>(),
    Of<ElementaryFunction::kArcTanPi>(),
    Of<ElementaryFunction::kSinh>(),
    Of<ElementaryFunction::kCosh>(),
    Of<ElementaryFunction::kTanh>(),
    Of<ElementaryFunction::kArcSinh>(),
    Of<ElementaryFunction::kArcCosh>(),
    Of<ElementaryFunction::kArcTanh>(),
    Of<ElementaryFunction::kSoftplus>(),
    Of<ElementaryFunction::kSigmoid>(),
    Of<ElementaryFunction::kGelu>(),
    Of<ElementaryFunction::kGeluTanh>(),
    OfTwo("hypot", "sqrt(a^2 + b^2)", &Binary<&Hypotenuse>),
    OfTwo(
        "atan2", "angle of the point (b, a) from the positive x axis, in radians", &Binary<&Angle>),
    OfTwo("atan2pi", "atan2 over pi", &Binary<&AngleOverPi>),
    WithScales("scaled-add", "scale-a a + scale-b b, rounded once", &Scaled<&ScaledAdd>),
    WithScales("scaled-sub", "scale-a a - scale-b b, rounded once", &Scaled<&ScaledSubtract>),
    WithScales("scaled-mul", "scale-a a * scale-b b, rounded once", &Scaled<&ScaledMultiply>),
    Exact("neg", "-a", &Unrounding<&Negate>),
    Exact("abs", "|a|", &Unrounding<&Absolute>),
    Exact("next-up", "the smallest value above a", &Unrounding<&NextUp>),
    Exact("next-down", "the largest value below a", &Unrounding<&NextDown>),
    Compares("eq", "a = b, quiet", &Comparison<Predicate::kEqual>),
    Compares("lt", "a < b, signalling", &Comparison<Predicate::kLess>),
    Compares("le", "a <= b, signalling", &Comparison<Predicate::kLessEqual>),
    Compares("eq-signaling", "a = b, signalling", &Comparison<Predicate::kEqualSignaling>),
    Compares("lt-quiet", "a < b, quiet", &Comparison<Predicate::kLessQuiet>),
    Compares("le-quiet", "a <= b, quiet", &Comparison<Predicate::kLessEqualQuiet>),
    Compares("unordered", "true if a or b is NaN, quiet", &Comparison<Predicate::kUnordered>),
    OfTwo("minimum", "the smaller operand; NaN if one is NaN", &Chosen<Extremum::kMinimum>),
    OfTwo("maximum", "the larger operand; NaN if one is NaN", &Chosen<Extremum::kMaximum>),
    OfTwo("minimum-number",
          "the smaller operand; the other one if one is NaN",
          &Chosen<Extremum::kMinimumNumber>),
    OfTwo("maximum-number",
          "the larger operand; the other one if one is NaN",
          &Chosen<Extremum::kMaximumNumber>),
    OfTwo("minimum-magnitude",
          "the operand of smaller magnitude; NaN if one is NaN",
          &Chosen<Extremum::kMinimumMagnitude>),
    OfTwo("maximum-magnitude",
          "the operand of larger magnitude; NaN if one is NaN",
          &Chosen<Extremum::kMaximumMagnitude>),
    OfTwo("minimum-magnitude-number",
          "the operand of smaller magnitude; the other one if one is NaN",
          &Chosen<Extremum::kMinimumMagnitudeNumber>),
    OfTwo("maximum-magnitude-number",
          "the operand of larger magnitude; the other one if one is NaN",
          &Chosen<Extremum::kMaximumMagnitudeNumber>),
    OfTwo("minimum-finite",
          "the smaller operand; the finite one if the other is not finite",
          &Chosen<Extremum::kMinimumFinite>),
    OfTwo("maximum-finite",
          "the larger operand; the finite one if the other is not finite",
          &Chosen<Extremum::kMaximumFinite>),
    Definition{.name = "round", .summary = "a rounded to an integral value", .function = &Integral},
    To<8, true>("to-i8"),
    To<16, true>("to-i16"),
    To<32, true>("to-i32"),
    To<64, true>("to-i64"),
    To<8, false>("to-u8"),
    To<16, false>("to-u16"),
    To<32, false>("to-u32"),
    To<64, false>("to-u64"),
    From("from-i8", {8, true}, &FromSigned<8>),
    From("from-i16", {16, true}, &FromSigned<16>),
    From("from-i32", {32, true}, &FromSigned<32>),
    From("from-i64", {64, true}, &FromSigned<64>),
    From("from-u8", {8, false}, &FromUnsigned),
    From("from-u16", {16, false}, &FromUnsigned),
    From("from-u32", {32, false}, &FromUnsigned),
    From("from-u64", {64, false}, &FromUnsigned),
    Definition{.name = "from-f64",
               .summary = "a float64 converted to the format",
               .function = &FromFloat64,
               .codes = 0,
               .float64_operand = true},
    Definition{.name = "to-f64",
               .summary = "a converted to float64, exactly; a NaN keeps its sign",
               .function = &ToFloat64,
               .result = ResultKind::kFloat64},
};

constexpr bool Rounds(const Definition& d) {
  return d.result == ResultKind::kTo || d.result == ResultKind::kInteger || d.codes == 0;
}

constexpr OptionSet OptionsOf(const Definition& d) {
  return {.wide_source = d.wide_source,
          .format_b = d.codes > 1,
          .format_c = d.codes > 2,
          .to = d.result == ResultKind::kTo,
          .scale_format = d.scales,
          .rounding = Rounds(d),
          .overflow = Rounds(d) && d.result != ResultKind::kInteger,
          .invalid_integer = d.result == ResultKind::kInteger};
}

Column IntegerColumn(std::string name, IntegerType type) {
  return {.name = std::move(name),
          .bits = type.bits,
          .kind = ColumnKind::kInteger,
          .is_signed = type.is_signed};
}

class ElementwiseOperation : public Operation {
 public:
  ElementwiseOperation(const OperationInfo& info, const Definition& d, const ResolvedRequest& r)
      : Operation(info, d.shape),
        function_(d.function),
        context_{r.a.spec, r.b.spec, r.c.spec, r.scale.spec, r.plan, r.invalid_integer} {
    const Format* formats[] = {&r.a, &r.b, &r.c};
    const char* names[] = {"a", "b", "c"};
    for (int i = 0; i < d.codes; ++i) inputs_.push_back(CodeColumn(names[i], *formats[i]));
    if (d.scales) {
      inputs_.push_back(CodeColumn("scale-a", r.scale));
      inputs_.push_back(CodeColumn("scale-b", r.scale));
    }
    if (d.integer_operand.bits != 0) {
      inputs_.push_back(IntegerColumn(d.codes == 0 ? "a" : "n", d.integer_operand));
    }
    if (d.float64_operand) {
      inputs_.push_back({.name = "a", .bits = 64, .kind = ColumnKind::kFloat64});
      sum_exponents_ = {r.to.spec.SubnormalExponent(), r.to.spec.MaxExponent()};
    }
    operands_ = inputs_.size();
    if (info.options.rounding) has_random_ = AppendRandom(r.plan.rounding, 1, inputs_) != 0;
    results_.push_back(Result(d, r));
  }

  Flags Evaluate(std::span<const uint64_t> inputs,
                 std::span<uint64_t> results) const noexcept override {
    const auto random = static_cast<uint32_t>(has_random_ ? inputs[operands_] : 0);
    const Answer answer = function_(context_, inputs.data(), random);
    results[0] = answer.bits;
    return answer.flags;
  }

 private:
  static Column Result(const Definition& d, const ResolvedRequest& r) {
    switch (d.result) {
      case ResultKind::kTruth:
        return {.name = "result", .bits = 1, .kind = ColumnKind::kTruth};
      case ResultKind::kInteger:
        return IntegerColumn("result", d.integer_result);
      case ResultKind::kFloat64:
        return {.name = "result", .bits = 64, .kind = ColumnKind::kFloat64};
      case ResultKind::kSame:
        return CodeColumn("result", r.a);
      case ResultKind::kTo:
        break;
    }
    return CodeColumn("result", r.to);
  }

  Function function_;
  Context context_;
  bool has_random_ = false;
};

std::unique_ptr<Operation> Make(const OperationInfo& info, const ResolvedRequest& request) {
  for (const Definition& d : kDefinitions) {
    if (d.name == info.name) return std::make_unique<ElementwiseOperation>(info, d, request);
  }
  return nullptr;
}

std::vector<OperationRow> MakeRows() {
  std::vector<OperationRow> rows;
  rows.reserve(std::size(kDefinitions));
  for (const Definition& d : kDefinitions) {
    rows.push_back({{d.name, d.summary, true, OptionsOf(d)}, &Make});
  }
  return rows;
}

}  // namespace

std::span<const OperationRow> ElementwiseRows() {
  static const std::vector<OperationRow> rows = MakeRows();
  return rows;
}

}  // namespace numsim
