// Which accumulation mode does a tensor core follow? A probe asks it for products, looks at
// crafted ones (unit_observation.h), tries every rule that arith/accumulation_mode.h can say
// (unit_candidates.h), and compares what is left with many products more, bit for bit.
//
// The method is that of published probes [FPRev], [MMA-Sim]: sums of powers of two show what is cut
// and which products meet. What they leave open, the comparison decides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/mma_probe/tensor_core.h"

namespace numsim {

// What crafted dot products show of a tensor core. Each observation rests on a few products of
// powers of two and says nothing about a rule; mma_probe.h judges rules.

// Which way a unit rounds what it cuts.
enum class CutDirection : uint8_t { kTowardZero, kNearest, kDown, kUp };

struct UnitObservations {
  // Bits below the leading one of the largest product that survive beside it, and whether that is
  // all that the formats can show.
  std::optional<int> kept_bits;
  bool kept_bits_at_least = false;
  // What becomes of bits below these.
  std::optional<CutDirection> cut;
  // Fraction bits of a sum, and how it is rounded to them.
  std::optional<int> result_bits;
  std::optional<CutDirection> result_cut;
  // The positions that are added up together with position 0, in one step, and how many are in most
  // steps.
  std::vector<size_t> together;
  std::optional<size_t> chunk;
  // The first position whose products meet position 0 in an addition that rounds in another way
  // than a step does: where partial sums end, or a step's carry.
  std::optional<size_t> promotion;
  // Of subnormal operands: they count as zero; else they are aligned as if normal, or under the
  // format's least exponent (as in [Hopper-measured]).
  std::optional<bool> flushes_subnormals;
  std::optional<bool> normalises_subnormals;
  // Sums of products so small reach down to 2^this, and whether only the probe ended there.
  std::optional<int> least_bit;
  bool least_bit_at_most = false;
  // Bits of NaN times one, infinity times zero, infinity minus infinity; and of 2^e - 2^e.
  std::vector<uint32_t> nans;
  uint32_t cancelled_zero = 0;
  bool integers = false;  // nothing was asked: there is nothing to align
};

// Asks `unit`; every answer is appended to `log`, of kind "crafted".
UnitObservations Observe(const TensorCore& unit, std::vector<ProbeAnswer>& log);

// A line each: "what: what was seen".
std::vector<std::string> ObservationLines(const UnitObservations& seen);

// Dot products of one kind of operands that were compared.
struct ProbeAgreement {
  std::string kind;
  uint64_t same = 0;  // NaN where NaN is right is the same
  uint64_t compared = 0;
};

struct MmaProbe {
  std::string unit;
  FormatSpec a, b;
  UnitObservations seen;
  // Rules that gave every product of the unit, the most telling first, at most four; empty if none
  // did.
  std::vector<AccumulationMode> rules;
  // How far rules[0], or without one the closest rule, agrees.
  AccumulationMode closest;
  std::vector<ProbeAgreement> agreement;
  // Whether NaN results of the unit have the bits of the rule.
  bool nan_bits_as_rule = true;

  uint64_t Same() const;
  uint64_t Compared() const;
};

struct ProbeOptions {
  uint64_t products = 100000;  // dot products to compare, about
};

// Throws what the unit throws.
MmaProbe ProbeUnit(const TensorCore& unit, const ProbeOptions& options = {});

// "trunc:13,32 (hopper-fp8-fast)", or "no rule; closest: ...".
std::string FoundText(const MmaProbe& probe);
// "100000 of 100000".
std::string AgreementText(const MmaProbe& probe);
// All that was found, a line each without line ends.
std::vector<std::string> ProbeLines(const MmaProbe& probe);

}  // namespace numsim
