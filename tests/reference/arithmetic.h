// The independent oracle of arithmetic: code and flags of an exact result in a
// target format.
//
// The exact result (exact_number.h) is placed between two neighbours in the
// target's list of values by comparisons of big integers alone. Nothing is
// shifted into place, no sticky bit is kept, no intermediate result is rounded.
// From there on oracle.h decides as it does for conversions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/reference/exact_number.h"
#include "tests/reference/oracle.h"

namespace oracle {

// Whether the exact value or the rounded one must lie below the smallest normal
// number to be tiny.
enum class Tininess { kAfterRounding, kBeforeRounding };

struct Outcome {
  uint32_t code = 0;
  Flags flags = 0;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// The questions that a placed number will be asked.
enum class Modes { kDeterministic, kAll };

// An exact number placed among the values of a format. Placing is the costly
// part; one placement answers for every mode, policy and random word.
class Placement {
 public:
  // `target` must outlive this. Under Modes::kDeterministic stochastic settings
  // are not served.
  Placement(const Grid& target, const ExactNumber& x, Modes modes);

  Outcome Round(const Setting& setting, Tininess tininess, uint32_t random = 0) const;

  // The number of words R, out of 2^random_bits, that round the magnitude away
  // from zero; 0 for what is not finite. Requires Modes::kAll.
  uint64_t WordsAway(Variant variant, int random_bits) const;

 private:
  Outcome RoundFinite(bool negative,
                      const Setting& setting,
                      Tininess tininess,
                      uint32_t random) const;
  bool IsTiny(bool negative, const Setting& setting, Tininess tininess, uint32_t random) const;

  const Grid* target_;
  Real::Kind kind_;
  bool negative_;
  bool sign_by_mode_;
  bool zero_;
  Flags flags_;
  // Where it lies. Distances and gaps are not to scale: see PlaceBetween.
  Place place_{};
  // Where it would lie in the binade below the smallest normal one if that were
  // a normal binade, where that matters: from the last value of that binade on.
  bool below_normal_ = false;
  bool in_last_gap_ = false;
  Place last_gap_{};
};

// The operations of numsim/arith/arith.h.
enum class Operation {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFusedMultiplyAdd,
  kFusedAddAdd,
  kSquareRoot,
  kReciprocal,
  kRemainder,
  kConvert,
};
inline constexpr std::array kOperations = {Operation::kAdd,
                                           Operation::kSubtract,
                                           Operation::kMultiply,
                                           Operation::kDivide,
                                           Operation::kFusedMultiplyAdd,
                                           Operation::kFusedAddAdd,
                                           Operation::kSquareRoot,
                                           Operation::kReciprocal,
                                           Operation::kRemainder,
                                           Operation::kConvert};

int Arity(Operation operation);
const char* ToString(Operation operation);

// The exact result. Reads Arity(operation) operands.
ExactNumber Exact(Operation operation, std::span<const ExactNumber> operands);

// Every code of a format of up to 16 bits, decoded.
std::vector<ExactNumber> AllExact(const Grid& grid);

}  // namespace oracle
