// Finds the accumulation mode of a tensor core. The probe first observes the results of crafted dot
// products (Observe()). It then tries every accumulation mode that arith/accumulation_mode.h can
// express (internal/unit_candidates.h), and compares the modes that fit with many more dot
// products, bit for bit.
//
// The method is that of published probes [FPRev], [MMA-Sim]: sums of powers of two show which bits
// are cut and which products are added together. The comparison decides what they leave open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/mma_probe/tensor_core.h"

namespace numsim {

// Direction in which a tensor core rounds the bits that it cuts.
enum class CutDirection : uint8_t { kTowardZero, kNearest, kDown, kUp };

// Properties of a tensor core that crafted dot products show. Each observation rests on a few
// products of powers of two and does not determine an accumulation mode; ProbeUnit() does that. A
// property that could not be observed is empty.
struct UnitObservations {
  // Number of bits below the leading one of the largest product that survive beside it.
  // kept_bits_at_least: all bits that the formats can show survived, so there may be more.
  std::optional<int> kept_bits;
  bool kept_bits_at_least = false;
  // Rounding of the bits below these.
  std::optional<CutDirection> cut;
  // Fraction bits of a sum, and how it is rounded to them.
  std::optional<int> result_bits;
  std::optional<CutDirection> result_cut;
  // Positions that are added in the same step as position 0, and the size of most steps.
  std::vector<size_t> together;
  std::optional<size_t> chunk;
  // First position whose product is added to that of position 0 with a different rounding than
  // within a step. A partial sum ends there, or a step passes its sum on to the next one.
  std::optional<size_t> promotion;
  // flushes_subnormals: subnormal operands are treated as zero. Otherwise, normalises_subnormals
  // tells whether they are aligned like normal numbers (true), or by the format's minimum exponent
  // (false, as in [Hopper-measured]).
  std::optional<bool> flushes_subnormals;
  std::optional<bool> normalises_subnormals;
  // The lowest bit of sums of tiny products is 2^least_bit. least_bit_at_most: the probe could not
  // look below it.
  std::optional<int> least_bit;
  bool least_bit_at_most = false;
  // float32 bits of NaN times one, infinity times zero, infinity minus infinity; and of 2^e - 2^e.
  std::vector<uint32_t> nans;
  uint32_t cancelled_zero = 0;
  bool integers = false;  // operands are integers: nothing to align, so only specials were observed
};

// Observes `unit` with crafted dot products. Appends every answer, of kind "crafted", to `log`.
UnitObservations Observe(const TensorCore& unit, std::vector<ProbeAnswer>& log);

// Describes the observations, one per line, as "property: observed value".
std::vector<std::string> ObservationLines(const UnitObservations& seen);

// Number of dot products with one kind of operands that were compared, and that agreed.
struct ProbeAgreement {
  std::string kind;
  uint64_t same = 0;  // equal bits, or NaN where NaN is expected
  uint64_t compared = 0;
};

struct MmaProbe {
  std::string unit;
  FormatSpec a, b;
  UnitObservations seen;
  // Accumulation modes that reproduced every dot product of the tensor core, the most specific name
  // first; at most four, and none if no mode did.
  std::vector<AccumulationMode> modes;
  // modes[0], or the mode that agreed most often if `modes` is empty; and its agreement.
  AccumulationMode closest;
  std::vector<ProbeAgreement> agreement;
  // True if NaN results of the tensor core have the NaN bits of `closest`.
  bool nan_bits_as_mode = true;

  uint64_t Same() const;
  uint64_t Compared() const;
};

struct ProbeOptions {
  uint64_t products = 100000;  // approximate number of dot products to compare
};

// Probes `unit`. Passes on exceptions of unit.multiply.
MmaProbe ProbeUnit(const TensorCore& unit, const ProbeOptions& options = {});

// Returns the mode found, as in "trunc:13,32 (hopper-fp8-fast)", or "no rule; closest: ...".
std::string FoundText(const MmaProbe& probe);
// Returns the number of equal dot products, as in "100000 of 100000".
std::string AgreementText(const MmaProbe& probe);
// Returns all findings as lines of text without line ends.
std::vector<std::string> ProbeLines(const MmaProbe& probe);

}  // namespace numsim
