// Arithmetic and elementary functions on arrays of codes.
#include <new>

#include "numsim/capi/internal/arrays.h"
#include "numsim/capi/internal/elementary.h"
#include "numsim/cast/arithmetic.h"
#include "numsim/cast/elementary.h"

using numsim::ArithmeticOp;
using numsim::ElementaryFunction;
using numsim::Flags;
using numsim::capi::FirstError;
using numsim::capi::Memory;

namespace numsim::capi {
namespace {

static_assert(static_cast<int>(ArithmeticOp::kAdd) == NUMSIM_OPERATION_ADD);
static_assert(static_cast<int>(ArithmeticOp::kSubtract) == NUMSIM_OPERATION_SUBTRACT);
static_assert(static_cast<int>(ArithmeticOp::kMultiply) == NUMSIM_OPERATION_MULTIPLY);
static_assert(static_cast<int>(ArithmeticOp::kDivide) == NUMSIM_OPERATION_DIVIDE);
static_assert(static_cast<int>(ArithmeticOp::kFma) == NUMSIM_OPERATION_FMA);
static_assert(static_cast<int>(ArithmeticOp::kSquareRoot) == NUMSIM_OPERATION_SQRT);

// An operand array. `memory` is empty if the operation does not have this operand.
struct ArraySource {
  ArrayOperand operand;
  Memory memory = {nullptr, 0, 1};

  numsim_status_t Read(const numsim_codes_t* given, size_t n, bool wanted) noexcept {
    if (!wanted) return Require(given == nullptr);
    if (given == nullptr || given->reserved != 0) return NUMSIM_ERROR_BAD_ARGUMENT;
    numsim_status_t status = ReadFormat(&given->format, &operand.format);
    if (status != NUMSIM_OK) return status;
    status = CheckCodeBytes(given->code_bytes, operand.format);
    if (status != NUMSIM_OK) return status;
    memory = {given->codes, n, static_cast<size_t>(given->code_bytes)};
    status = memory.Check();
    if (status != NUMSIM_OK) return status;
    WithCodes(given->codes, given->code_bytes, n, [this](auto span) { operand.codes = span; });
    return NUMSIM_OK;
  }

  // Returns an error if `out` overlaps this operand, unless both have exactly the same elements.
  numsim_status_t CheckAgainst(const Memory& out) const noexcept {
    const bool same = memory.data == out.data && memory.element == out.element;
    return same ? NUMSIM_OK : CheckDisjoint(out, {memory});
  }

  Operand At(size_t i) const noexcept {
    if (memory.n == 0) return {operand.format, 0};
    return {operand.format, operand.codes[i] & operand.format.CodeMask()};
  }
};

// Checked operands and target of a call.
struct ArrayCall {
  ArraySource a, b, c;
  EncodePlan plan;
  Draws draws;

  numsim_status_t CheckOutputs(const Memory& out, const Memory& flags) const noexcept {
    return FirstError({out.Check(),
                       flags.Check(),
                       a.CheckAgainst(out),
                       b.CheckAgainst(out),
                       c.CheckAgainst(out),
                       CheckDisjoint(out, {flags, draws.Words()}),
                       CheckDisjoint(flags, {a.memory, b.memory, c.memory, draws.Words()})});
  }
};

// The outputs of a call.
struct ArrayResult {
  void* out;
  int out_bytes;
  uint8_t* flags;
  uint8_t* all_flags;
};

// Checks the outputs, and computes n elements with `kernel` from a seed or, with the caller's random
// words, which kernels do not take, each by element(i).
template <typename Element, typename Kernel>
numsim_status_t ComputeArray(ArrayCall& call,
                             size_t n,
                             const numsim_random_t* random,
                             const ArrayResult& result,
                             const Element& element,
                             const Kernel& kernel) {
  numsim_status_t status = FirstError({CheckCodeBytes(result.out_bytes, call.plan.format),
                                       call.draws.Read(random, n, DrawBits(call.plan))});
  if (status != NUMSIM_OK) return status;
  status = call.CheckOutputs({result.out, n, static_cast<size_t>(result.out_bytes)},
                             {result.flags, result.flags == nullptr ? 0 : n, 1});
  if (status != NUMSIM_OK) return status;
  Flags all = 0;
  const auto run = [&](auto out) {
    if (!call.draws.HasWords()) {
      const std::span<uint8_t> flags(result.flags, result.flags == nullptr ? 0 : n);
      all = kernel(out, result.all_flags != nullptr, flags);
      return;
    }
    using Code = typename decltype(out)::value_type;
    for (size_t i = 0; i < n; ++i) {
      const Rounded rounded = element(i);
      out[i] = static_cast<Code>(rounded.code);
      if (result.flags != nullptr) result.flags[i] = rounded.flags;
      all |= rounded.flags;
    }
  };
  if (n != 0) WithCodes(result.out, result.out_bytes, n, run);
  if (result.all_flags != nullptr) *result.all_flags = all;
  return NUMSIM_OK;
}

Rounded ElementOf(ArithmeticOp op, const ArrayCall& call, size_t i) noexcept {
  const auto& [a, b, c, plan, draws] = call;
  const uint32_t random = draws.At(i);
  switch (op) {
    case ArithmeticOp::kAdd:
      return Add(a.At(i), b.At(i), plan, random);
    case ArithmeticOp::kSubtract:
      return Subtract(a.At(i), b.At(i), plan, random);
    case ArithmeticOp::kMultiply:
      return Multiply(a.At(i), b.At(i), plan, random);
    case ArithmeticOp::kDivide:
      return Divide(a.At(i), b.At(i), plan, random);
    case ArithmeticOp::kFma:
      return FusedMultiplyAdd(a.At(i), b.At(i), c.At(i), plan, random);
    case ArithmeticOp::kSquareRoot:
      break;
  }
  return SquareRoot(a.At(i), plan, random);
}

}  // namespace
}  // namespace numsim::capi

numsim_status_t numsim_arithmetic_array(int operation,
                                        const numsim_codes_t* a,
                                        const numsim_codes_t* b,
                                        const numsim_codes_t* c,
                                        size_t n,
                                        const numsim_format_t* to,
                                        const numsim_rounding_t* rounding,
                                        const numsim_random_t* random,
                                        void* out,
                                        int out_bytes,
                                        uint8_t* flags,
                                        uint8_t* all_flags) noexcept {
  if (operation < 0 || operation > NUMSIM_OPERATION_SQRT) return NUMSIM_ERROR_BAD_ARGUMENT;
  numsim::capi::ArrayCall call;
  const auto op = static_cast<ArithmeticOp>(operation);
  const int arity = numsim::Arity(op);
  const numsim_status_t status = FirstError({numsim::capi::ReadPlan(to, rounding, &call.plan),
                                             call.a.Read(a, n, true),
                                             call.b.Read(b, n, arity >= 2),
                                             call.c.Read(c, n, arity >= 3)});
  if (status != NUMSIM_OK) return status;
  return numsim::capi::ComputeArray(
      call,
      n,
      random,
      {out, out_bytes, flags, all_flags},
      [&](size_t i) { return numsim::capi::ElementOf(op, call, i); },
      [&](auto codes, bool want_flags, std::span<uint8_t> each) {
        return numsim::Arithmetic(op,
                                  call.a.operand,
                                  call.b.operand,
                                  call.c.operand,
                                  call.plan,
                                  codes,
                                  call.draws.Stream(),
                                  want_flags,
                                  each);
      });
}

numsim_status_t numsim_elementary_array(int function,
                                        const numsim_codes_t* a,
                                        size_t n,
                                        const numsim_format_t* to,
                                        const numsim_rounding_t* rounding,
                                        const numsim_random_t* random,
                                        void* out,
                                        int out_bytes,
                                        uint8_t* flags,
                                        uint8_t* all_flags) noexcept {
  ElementaryFunction f{};
  numsim::capi::ArrayCall call;
  const numsim_status_t status = FirstError({numsim::capi::ReadFunction(function, &f),
                                             numsim::capi::ReadPlan(to, rounding, &call.plan),
                                             call.a.Read(a, n, true)});
  if (status != NUMSIM_OK) return status;
  try {
    return numsim::capi::ComputeArray(
        call,
        n,
        random,
        {out, out_bytes, flags, all_flags},
        [&](size_t i) { return numsim::Elementary(f, call.a.At(i), call.plan, call.draws.At(i)); },
        [&](auto codes, bool want_flags, std::span<uint8_t> each) {
          return numsim::Elementary(
              f, call.a.operand, call.plan, codes, call.draws.Stream(), want_flags, each);
        });
  } catch (const std::bad_alloc&) {
    return NUMSIM_ERROR_OUT_OF_MEMORY;
  }
}
