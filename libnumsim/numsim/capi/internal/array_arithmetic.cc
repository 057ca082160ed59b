// Arithmetic on arrays of codes.
#include "numsim/capi/internal/arrays.h"
#include "numsim/cast/arithmetic.h"

using numsim::ArithmeticOp;
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

// Checked arguments of a call.
struct ArithmeticCall {
  ArithmeticOp op;
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

  Rounded Element(size_t i) const noexcept {
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

  // Computes the same as the kernel element by element, with the caller's random words.
  template <typename Code>
  Flags RunWithWords(std::span<Code> out, uint8_t* flags) const {
    Flags all = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      const Rounded result = Element(i);
      out[i] = static_cast<Code>(result.code);
      if (flags != nullptr) flags[i] = result.flags;
      all |= result.flags;
    }
    return all;
  }

  template <typename Code>
  Flags Run(std::span<Code> out, uint8_t* flags, bool want_flags) const {
    if (draws.HasWords()) return RunWithWords(out, flags);
    return Arithmetic(op,
                      a.operand,
                      b.operand,
                      c.operand,
                      plan,
                      out,
                      draws.Stream(),
                      want_flags,
                      std::span(flags, flags == nullptr ? 0 : out.size()));
  }
};

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
  numsim::capi::ArithmeticCall call;
  call.op = static_cast<ArithmeticOp>(operation);
  const int arity = numsim::Arity(call.op);
  numsim_status_t status = FirstError({numsim::capi::ReadPlan(to, rounding, &call.plan),
                                       call.a.Read(a, n, true),
                                       call.b.Read(b, n, arity >= 2),
                                       call.c.Read(c, n, arity >= 3)});
  if (status != NUMSIM_OK) return status;
  status = FirstError({numsim::capi::CheckCodeBytes(out_bytes, call.plan.format),
                       call.draws.Read(random, n, numsim::capi::DrawBits(call.plan))});
  if (status != NUMSIM_OK) return status;
  status = call.CheckOutputs({out, n, static_cast<size_t>(out_bytes)},
                             {flags, flags == nullptr ? 0 : n, 1});
  if (status != NUMSIM_OK) return status;
  Flags all = 0;
  if (n != 0) {
    numsim::capi::WithCodes(
        out, out_bytes, n, [&](auto span) { all = call.Run(span, flags, all_flags != nullptr); });
  }
  if (all_flags != nullptr) *all_flags = all;
  return NUMSIM_OK;
}
