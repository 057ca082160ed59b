// Arithmetic, minima, maxima and comparisons of single codes.
#include "numsim/arith/arith.h"

#include "numsim/capi/internal/arguments.h"
#include "numsim/capi/internal/elementary.h"

using numsim::EncodePlan;
using numsim::Operand;
using numsim::capi::Deliver;
using numsim::capi::FirstError;
using numsim::capi::ReadOperand;
using numsim::capi::ReadPlan;
using numsim::capi::Require;

namespace numsim::capi {
namespace {

struct Code {
  const numsim_format_t* format;
  uint32_t code;
};

// The format, rounding and outputs of a result, common to all operations.
struct Result {
  const numsim_format_t* to;
  const numsim_rounding_t* rounding;
  uint32_t* code;
  uint8_t* flags;
};

// Checks the arguments, the last code first, and computes operation(x, plan), where x are the codes.
template <size_t kCount, typename Operation>
numsim_status_t Compute(const Code (&codes)[kCount],
                        const Result& result,
                        const Operation& operation) noexcept {
  Operand x[kCount];
  for (size_t i = kCount; i-- > 0;) {
    const numsim_status_t status = ReadOperand(codes[i].format, codes[i].code, &x[i]);
    if (status != NUMSIM_OK) return status;
  }
  EncodePlan plan;
  const numsim_status_t status =
      FirstError({ReadPlan(result.to, result.rounding, &plan), Require(result.code != nullptr)});
  if (status != NUMSIM_OK) return status;
  return Deliver(operation(x, plan), result.code, result.flags);
}

static_assert(static_cast<int>(Extremum::kMinimum) == NUMSIM_MINIMUM);
static_assert(static_cast<int>(Extremum::kMaximum) == NUMSIM_MAXIMUM);
static_assert(static_cast<int>(Extremum::kMinimumNumber) == NUMSIM_MINIMUM_NUMBER);
static_assert(static_cast<int>(Extremum::kMaximumNumber) == NUMSIM_MAXIMUM_NUMBER);
static_assert(static_cast<int>(Extremum::kMinimumMagnitude) == NUMSIM_MINIMUM_MAGNITUDE);
static_assert(static_cast<int>(Extremum::kMaximumMagnitude) == NUMSIM_MAXIMUM_MAGNITUDE);
static_assert(static_cast<int>(Extremum::kMinimumMagnitudeNumber) ==
              NUMSIM_MINIMUM_MAGNITUDE_NUMBER);
static_assert(static_cast<int>(Extremum::kMaximumMagnitudeNumber) ==
              NUMSIM_MAXIMUM_MAGNITUDE_NUMBER);
static_assert(static_cast<int>(Extremum::kMinimumFinite) == NUMSIM_MINIMUM_FINITE);
static_assert(static_cast<int>(Extremum::kMaximumFinite) == NUMSIM_MAXIMUM_FINITE);
static_assert(static_cast<int>(Relation::kLess) == NUMSIM_LESS);
static_assert(static_cast<int>(Relation::kEqual) == NUMSIM_EQUAL);
static_assert(static_cast<int>(Relation::kGreater) == NUMSIM_GREATER);
static_assert(static_cast<int>(Relation::kUnordered) == NUMSIM_UNORDERED);
static_assert(kInexact == NUMSIM_INEXACT && kUnderflow == NUMSIM_UNDERFLOW &&
              kOverflow == NUMSIM_OVERFLOW && kDivideByZero == NUMSIM_DIVIDE_BY_ZERO &&
              kInvalid == NUMSIM_INVALID);

}  // namespace
}  // namespace numsim::capi

using numsim::capi::Compute;

// Defines a function of two codes.
#define NUMSIM_BINARY(name, Operation)                                   \
  numsim_status_t name(const numsim_format_t* a_format,                  \
                       uint32_t a,                                       \
                       const numsim_format_t* b_format,                  \
                       uint32_t b,                                       \
                       const numsim_format_t* to,                        \
                       const numsim_rounding_t* rounding,                \
                       uint32_t random,                                  \
                       uint32_t* code,                                   \
                       uint8_t* flags) noexcept {                        \
    return Compute({{a_format, a}, {b_format, b}},                       \
                   {to, rounding, code, flags},                          \
                   [&](const Operand* x, const EncodePlan& plan) {       \
                     return numsim::Operation(x[0], x[1], plan, random); \
                   });                                                   \
  }
NUMSIM_BINARY(numsim_add, Add)
NUMSIM_BINARY(numsim_subtract, Subtract)
NUMSIM_BINARY(numsim_multiply, Multiply)
NUMSIM_BINARY(numsim_divide, Divide)
NUMSIM_BINARY(numsim_remainder, Remainder)
#undef NUMSIM_BINARY

numsim_status_t numsim_fma(const numsim_format_t* a_format,
                           uint32_t a,
                           const numsim_format_t* b_format,
                           uint32_t b,
                           const numsim_format_t* c_format,
                           uint32_t c,
                           const numsim_format_t* to,
                           const numsim_rounding_t* rounding,
                           uint32_t random,
                           uint32_t* code,
                           uint8_t* flags) noexcept {
  return Compute({{a_format, a}, {b_format, b}, {c_format, c}},
                 {to, rounding, code, flags},
                 [&](const Operand* x, const EncodePlan& plan) {
                   return numsim::FusedMultiplyAdd(x[0], x[1], x[2], plan, random);
                 });
}

numsim_status_t numsim_sqrt(const numsim_format_t* a_format,
                            uint32_t a,
                            const numsim_format_t* to,
                            const numsim_rounding_t* rounding,
                            uint32_t random,
                            uint32_t* code,
                            uint8_t* flags) noexcept {
  return Compute(
      {{a_format, a}}, {to, rounding, code, flags}, [&](const Operand* x, const EncodePlan& plan) {
        return numsim::SquareRoot(*x, plan, random);
      });
}

numsim_status_t numsim_elementary(int function,
                                  const numsim_format_t* a_format,
                                  uint32_t a,
                                  const numsim_format_t* to,
                                  const numsim_rounding_t* rounding,
                                  uint32_t random,
                                  uint32_t* code,
                                  uint8_t* flags) noexcept {
  numsim::ElementaryFunction f{};
  const numsim_status_t status = numsim::capi::ReadFunction(function, &f);
  if (status != NUMSIM_OK) return status;
  return Compute(
      {{a_format, a}}, {to, rounding, code, flags}, [&](const Operand* x, const EncodePlan& plan) {
        return numsim::Elementary(f, *x, plan, random);
      });
}

numsim_status_t numsim_convert(const numsim_format_t* a_format,
                               uint32_t a,
                               const numsim_format_t* to,
                               const numsim_rounding_t* rounding,
                               uint32_t random,
                               uint32_t* code,
                               uint8_t* flags) noexcept {
  return Compute(
      {{a_format, a}}, {to, rounding, code, flags}, [&](const Operand* x, const EncodePlan& plan) {
        return numsim::Convert(*x, plan, random);
      });
}

numsim_status_t numsim_scale(const numsim_format_t* a_format,
                             uint32_t a,
                             int64_t n,
                             const numsim_format_t* to,
                             const numsim_rounding_t* rounding,
                             uint32_t random,
                             uint32_t* code,
                             uint8_t* flags) noexcept {
  return Compute(
      {{a_format, a}}, {to, rounding, code, flags}, [&](const Operand* x, const EncodePlan& plan) {
        return numsim::ScaleByPowerOfTwo(*x, n, plan, random);
      });
}

numsim_status_t numsim_extremum(int extremum,
                                const numsim_format_t* a_format,
                                uint32_t a,
                                const numsim_format_t* b_format,
                                uint32_t b,
                                const numsim_format_t* to,
                                const numsim_rounding_t* rounding,
                                uint32_t random,
                                uint32_t* code,
                                uint8_t* flags) noexcept {
  if (extremum < 0 || extremum > NUMSIM_MAXIMUM_FINITE) return NUMSIM_ERROR_BAD_ARGUMENT;
  const auto choice = static_cast<numsim::Extremum>(extremum);
  return Compute({{a_format, a}, {b_format, b}},
                 {to, rounding, code, flags},
                 [&](const Operand* x, const EncodePlan& plan) {
                   return numsim::Choose(choice, x[0], x[1], plan, random);
                 });
}

numsim_status_t numsim_compare(const numsim_format_t* a_format,
                               uint32_t a,
                               const numsim_format_t* b_format,
                               uint32_t b,
                               int* relation) noexcept {
  Operand x, y;
  const numsim_status_t status = FirstError(
      {ReadOperand(a_format, a, &x), ReadOperand(b_format, b, &y), Require(relation != nullptr)});
  if (status != NUMSIM_OK) return status;
  *relation = static_cast<int>(numsim::Compare(x, y));
  return NUMSIM_OK;
}
