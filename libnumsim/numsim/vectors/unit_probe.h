// Which rule of accumulation does a matrix unit follow? A probe asks it for products, looks at
// crafted ones (unit_observation.h), tries every rule that arith/accumulator.h can say
// (unit_candidates.h), and compares what is left with many products more, bit for bit.
//
// The method is that of published probes [FPRev], [MMA-Sim]: sums of powers of two show what is cut
// and which products meet. What they leave open, the comparison decides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "numsim/arith/accumulator.h"
#include "numsim/vectors/matrix_unit.h"
#include "numsim/vectors/unit_observation.h"

namespace numsim {

// Dot products of one kind of operands that were compared.
struct ProbeAgreement {
  std::string kind;
  uint64_t same = 0;  // NaN where NaN is right is the same
  uint64_t compared = 0;
};

struct UnitProbe {
  std::string unit;
  FormatSpec a, b;
  UnitObservations seen;
  // Rules that gave every product of the unit, the most telling first, at most four; empty if none
  // did.
  std::vector<Accumulator> rules;
  // How far rules[0], or without one the closest rule, agrees.
  Accumulator closest;
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
UnitProbe ProbeUnit(const MatrixUnit& unit, const ProbeOptions& options = {});

// "trunc:13,32 (hopper-fp8-fast)", or "no rule; closest: ...".
std::string FoundText(const UnitProbe& probe);
// "100000 of 100000".
std::string AgreementText(const UnitProbe& probe);
// All that was found, a line each without line ends.
std::vector<std::string> ProbeLines(const UnitProbe& probe);

}  // namespace numsim
