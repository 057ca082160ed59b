// The library's names for what the oracle means: the oracle includes no header of the library.
#pragma once

#include "numsim/rounding/rounding.h"
#include "tests/reference/oracle.h"

namespace numsim {

inline RoundingMode ToLibrary(oracle::Mode mode) {
  switch (mode) {
    case oracle::Mode::kNearestEven:
      return RoundingMode::kNearestEven;
    case oracle::Mode::kNearestAway:
      return RoundingMode::kNearestAway;
    case oracle::Mode::kTowardZero:
      return RoundingMode::kTowardZero;
    case oracle::Mode::kUp:
      return RoundingMode::kUp;
    case oracle::Mode::kDown:
      return RoundingMode::kDown;
    case oracle::Mode::kToOdd:
      return RoundingMode::kToOdd;
    case oracle::Mode::kStochastic:
      break;
  }
  return RoundingMode::kStochastic;
}

inline StochasticVariant ToLibrary(oracle::Variant variant) {
  switch (variant) {
    case oracle::Variant::kA:
      return StochasticVariant::kA;
    case oracle::Variant::kB:
      return StochasticVariant::kB;
    case oracle::Variant::kC:
      break;
  }
  return StochasticVariant::kC;
}

inline Overflow ToLibrary(oracle::Policy policy) {
  switch (policy) {
    case oracle::Policy::kNonsaturate:
      return Overflow::kNonsaturate;
    case oracle::Policy::kSaturate:
      return Overflow::kSaturate;
    case oracle::Policy::kPropagate:
      break;
  }
  return Overflow::kPropagate;
}

// The policy is apart: ToLibrary(setting.policy).
inline Rounding RoundingOf(const oracle::Setting& setting) {
  return {ToLibrary(setting.mode), ToLibrary(setting.variant), setting.random_bits};
}

}  // namespace numsim
