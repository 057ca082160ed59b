#include "numsim/cast/elementary.h"

#include <atomic>

#include "numsim/arith/shared/exact_elementary.h"
#include "numsim/backend/backend.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/formats/value_table.h"

namespace numsim {
namespace {

constexpr int kTableBits = 16;
constexpr size_t kEvaluationGrain = 256;
constexpr size_t kLookupGrain = size_t{1} << 14;

void CheckArrays(const FormatSpec& from,
                 const ConstCodes& in,
                 const EncodePlan& to,
                 const Codes& out,
                 std::span<uint8_t> flags) {
  RefuseTable(from, "Elementary");
  RequireSize(in.size(), out.size(), "Elementary", "a");
  RequireCodeBytes(static_cast<size_t>(in.bytes()), from.Bits(), "Elementary", "a");
  RequireCodeBytes(static_cast<size_t>(out.bytes()), to.format.Bits(), "Elementary", "out");
  if (!flags.empty()) RequireSize(flags.size(), out.size(), "Elementary", "flags");
}

// Calls work(p) with p a pointer to the codes, typed as their element type.
template <typename Work>
Flags WithPointer(const ConstCodes& codes, Work work) {
  switch (codes.bytes()) {
    case 1:
      return work(static_cast<const uint8_t*>(codes.data()));
    case 2:
      return work(static_cast<const uint16_t*>(codes.data()));
    default:
      return work(static_cast<const uint32_t*>(codes.data()));
  }
}
template <typename Work>
Flags WithPointer(const Codes& codes, Work work) {
  switch (codes.bytes()) {
    case 1:
      return work(static_cast<uint8_t*>(codes.data()));
    case 2:
      return work(static_cast<uint16_t*>(codes.data()));
    default:
      return work(static_cast<uint32_t*>(codes.data()));
  }
}

}  // namespace

ElementaryTable::ElementaryTable(ElementaryFunction function,
                                 const FormatSpec& from,
                                 const EncodePlan& to)
    : from_(from), plan_(to) {
  NUMSIM_REQUIRE(from.Bits() <= kTableBits,
                 "ElementaryTable: 'from' has {} bits, expected a format of up to {} bits",
                 from.Bits(),
                 kTableBits);
  const size_t n = size_t{from.CodeMask()} + 1;
  const bool stochastic = to.rounding.mode == RoundingMode::kStochastic;
  codes_.resize(stochastic ? 0 : n);
  unrounded_.resize(stochastic ? n : 0);
  flags_.resize(n);
  ParallelFor(n, kEvaluationGrain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const Operand a = {from, static_cast<uint32_t>(i)};
      if (!stochastic) {
        const Rounded result = numsim::Elementary(function, a, to);
        codes_[i] = result.code;
        flags_[i] = result.flags;
        continue;
      }
      const exact::Outcome outcome = exact::Elementary(function, ExactValue(from, a.code));
      unrounded_[i] = outcome.value;
      flags_[i] = static_cast<Flags>(outcome.flags | (IsSignalingNan(a) ? kInvalid : 0));
    }
  });
}

template <typename In, typename Out>
Flags ElementaryTable::ApplyTo(const In* in,
                               Out* out,
                               size_t n,
                               const ArrayRandom& random,
                               bool want_flags,
                               uint8_t* flags) const {
  const bool stochastic = !unrounded_.empty();
  const uint32_t mask = from_.CodeMask();
  std::atomic<Flags> all{0};
  ParallelFor(n, kLookupGrain, [&](size_t begin, size_t end) {
    Flags raised = 0;
    for (size_t i = begin; i < end; ++i) {
      const uint32_t code = in[i] & mask;
      Rounded result;
      if (stochastic) {
        result = EncodeUnrounded(plan_, unrounded_[code], Draw(plan_, random, i));
      } else {
        result.code = codes_[code];
      }
      out[i] = static_cast<Out>(result.code);
      if (!want_flags) continue;
      result.flags |= flags_[code];
      if (flags != nullptr) flags[i] = result.flags;
      raised |= result.flags;
    }
    all.fetch_or(raised);
  });
  return all.load();
}

Flags ElementaryTable::Apply(const ConstCodes& in,
                             Codes out,
                             const ArrayRandom& random,
                             bool want_flags,
                             std::span<uint8_t> flags) const {
  CheckArrays(from_, in, plan_, out, flags);
  uint8_t* const each = flags.empty() ? nullptr : flags.data();
  return WithPointer(in, [&](const auto* from) {
    return WithPointer(out, [&](auto* to) {
      return ApplyTo(from, to, out.size(), random, want_flags || each != nullptr, each);
    });
  });
}

Flags Elementary(ElementaryFunction function,
                 const ArrayOperand& a,
                 const EncodePlan& to,
                 Codes out,
                 const ArrayRandom& random,
                 bool want_flags,
                 std::span<uint8_t> flags) {
  CheckArrays(a.format, a.codes, to, out, flags);
  const size_t n = out.size();
  const uint32_t mask = a.format.CodeMask();
  if (a.format.Bits() <= kTableBits && n > mask && !UsesScalarReference()) {
    return ElementaryTable(function, a.format, to).Apply(a.codes, out, random, want_flags, flags);
  }
  std::atomic<Flags> all{0};
  ParallelFor(n, kEvaluationGrain, [&](size_t begin, size_t end) {
    Flags raised = 0;
    for (size_t i = begin; i < end; ++i) {
      const Rounded result = numsim::Elementary(
          function, Operand{a.format, a.codes[i] & mask}, to, Draw(to, random, i));
      out.Set(i, result.code);
      if (!flags.empty()) flags[i] = result.flags;
      raised |= result.flags;
    }
    all.fetch_or(raised);
  });
  return want_flags || !flags.empty() ? all.load() : Flags{0};
}

}  // namespace numsim
