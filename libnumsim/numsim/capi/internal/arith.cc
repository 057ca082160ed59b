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

// The format, rounding and outputs of a result, common to all operations.
struct Result {
  const numsim_format_t* to;
  const numsim_rounding_t* rounding;
  uint32_t* code;
  uint8_t* flags;
};

// Check the arguments and compute operation(a, plan), (a, b, plan) or (a, b, c, plan).
template <typename Operation>
numsim_status_t Unary(const numsim_format_t* a_format,
                      uint32_t a,
                      const Result& result,
                      const Operation& operation) noexcept {
  Operand x;
  EncodePlan plan;
  const numsim_status_t status = FirstError({ReadOperand(a_format, a, &x),
                                             ReadPlan(result.to, result.rounding, &plan),
                                             Require(result.code != nullptr)});
  if (status != NUMSIM_OK) return status;
  return Deliver(operation(x, plan), result.code, result.flags);
}

template <typename Operation>
numsim_status_t Binary(const numsim_format_t* a_format,
                       uint32_t a,
                       const numsim_format_t* b_format,
                       uint32_t b,
                       const Result& result,
                       const Operation& operation) noexcept {
  Operand y;
  const numsim_status_t status = ReadOperand(b_format, b, &y);
  if (status != NUMSIM_OK) return status;
  return Unary(a_format, a, result, [&](const Operand& x, const EncodePlan& plan) {
    return operation(x, y, plan);
  });
}

template <typename Operation>
numsim_status_t Ternary(const numsim_format_t* a_format,
                        uint32_t a,
                        const numsim_format_t* b_format,
                        uint32_t b,
                        const numsim_format_t* c_format,
                        uint32_t c,
                        const Result& result,
                        const Operation& operation) noexcept {
  Operand z;
  const numsim_status_t status = ReadOperand(c_format, c, &z);
  if (status != NUMSIM_OK) return status;
  return Binary(a_format,
                a,
                b_format,
                b,
                result,
                [&](const Operand& x, const Operand& y, const EncodePlan& plan) {
                  return operation(x, y, z, plan);
                });
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

using numsim::capi::Binary;
using numsim::capi::Result;
using numsim::capi::Ternary;
using numsim::capi::Unary;

numsim_status_t numsim_add(const numsim_format_t* a_format,
                           uint32_t a,
                           const numsim_format_t* b_format,
                           uint32_t b,
                           const numsim_format_t* to,
                           const numsim_rounding_t* rounding,
                           uint32_t random,
                           uint32_t* code,
                           uint8_t* flags) noexcept {
  return Binary(a_format,
                a,
                b_format,
                b,
                Result{to, rounding, code, flags},
                [&](const Operand& x, const Operand& y, const EncodePlan& plan) {
                  return numsim::Add(x, y, plan, random);
                });
}

numsim_status_t numsim_subtract(const numsim_format_t* a_format,
                                uint32_t a,
                                const numsim_format_t* b_format,
                                uint32_t b,
                                const numsim_format_t* to,
                                const numsim_rounding_t* rounding,
                                uint32_t random,
                                uint32_t* code,
                                uint8_t* flags) noexcept {
  return Binary(a_format,
                a,
                b_format,
                b,
                Result{to, rounding, code, flags},
                [&](const Operand& x, const Operand& y, const EncodePlan& plan) {
                  return numsim::Subtract(x, y, plan, random);
                });
}

numsim_status_t numsim_multiply(const numsim_format_t* a_format,
                                uint32_t a,
                                const numsim_format_t* b_format,
                                uint32_t b,
                                const numsim_format_t* to,
                                const numsim_rounding_t* rounding,
                                uint32_t random,
                                uint32_t* code,
                                uint8_t* flags) noexcept {
  return Binary(a_format,
                a,
                b_format,
                b,
                Result{to, rounding, code, flags},
                [&](const Operand& x, const Operand& y, const EncodePlan& plan) {
                  return numsim::Multiply(x, y, plan, random);
                });
}

numsim_status_t numsim_divide(const numsim_format_t* a_format,
                              uint32_t a,
                              const numsim_format_t* b_format,
                              uint32_t b,
                              const numsim_format_t* to,
                              const numsim_rounding_t* rounding,
                              uint32_t random,
                              uint32_t* code,
                              uint8_t* flags) noexcept {
  return Binary(a_format,
                a,
                b_format,
                b,
                Result{to, rounding, code, flags},
                [&](const Operand& x, const Operand& y, const EncodePlan& plan) {
                  return numsim::Divide(x, y, plan, random);
                });
}

numsim_status_t numsim_remainder(const numsim_format_t* a_format,
                                 uint32_t a,
                                 const numsim_format_t* b_format,
                                 uint32_t b,
                                 const numsim_format_t* to,
                                 const numsim_rounding_t* rounding,
                                 uint32_t random,
                                 uint32_t* code,
                                 uint8_t* flags) noexcept {
  return Binary(a_format,
                a,
                b_format,
                b,
                Result{to, rounding, code, flags},
                [&](const Operand& x, const Operand& y, const EncodePlan& plan) {
                  return numsim::Remainder(x, y, plan, random);
                });
}

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
  return Ternary(a_format,
                 a,
                 b_format,
                 b,
                 c_format,
                 c,
                 Result{to, rounding, code, flags},
                 [&](const Operand& x, const Operand& y, const Operand& z, const EncodePlan& plan) {
                   return numsim::FusedMultiplyAdd(x, y, z, plan, random);
                 });
}

numsim_status_t numsim_sqrt(const numsim_format_t* a_format,
                            uint32_t a,
                            const numsim_format_t* to,
                            const numsim_rounding_t* rounding,
                            uint32_t random,
                            uint32_t* code,
                            uint8_t* flags) noexcept {
  return Unary(a_format,
               a,
               Result{to, rounding, code, flags},
               [&](const Operand& x, const EncodePlan& plan) {
                 return numsim::SquareRoot(x, plan, random);
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
  return Unary(a_format,
               a,
               Result{to, rounding, code, flags},
               [&](const Operand& x, const EncodePlan& plan) {
                 return numsim::Elementary(f, x, plan, random);
               });
}

numsim_status_t numsim_convert(const numsim_format_t* a_format,
                               uint32_t a,
                               const numsim_format_t* to,
                               const numsim_rounding_t* rounding,
                               uint32_t random,
                               uint32_t* code,
                               uint8_t* flags) noexcept {
  return Unary(
      a_format,
      a,
      Result{to, rounding, code, flags},
      [&](const Operand& x, const EncodePlan& plan) { return numsim::Convert(x, plan, random); });
}

numsim_status_t numsim_scale(const numsim_format_t* a_format,
                             uint32_t a,
                             int64_t n,
                             const numsim_format_t* to,
                             const numsim_rounding_t* rounding,
                             uint32_t random,
                             uint32_t* code,
                             uint8_t* flags) noexcept {
  return Unary(a_format,
               a,
               Result{to, rounding, code, flags},
               [&](const Operand& x, const EncodePlan& plan) {
                 return numsim::ScaleByPowerOfTwo(x, n, plan, random);
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
  return Binary(a_format,
                a,
                b_format,
                b,
                Result{to, rounding, code, flags},
                [&](const Operand& x, const Operand& y, const EncodePlan& plan) {
                  return numsim::Choose(
                      static_cast<numsim::Extremum>(extremum), x, y, plan, random);
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
