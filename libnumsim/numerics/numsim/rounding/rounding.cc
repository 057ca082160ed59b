#include "numsim/rounding/rounding.h"

#include "numsim/base/keyword.h"

namespace numsim {
namespace {

constexpr Keyword<RoundingMode> kModes[] = {
#define NUMSIM_ROUNDING_MODE(enumerator, value, c_name, name, ...) {name, RoundingMode::enumerator},
#include "numsim/rounding/rounding_modes.inc"
#undef NUMSIM_ROUNDING_MODE
};
constexpr Keyword<StochasticVariant> kVariants[] = {
    {"a", StochasticVariant::kA}, {"b", StochasticVariant::kB}, {"c", StochasticVariant::kC}};
constexpr Keyword<Overflow> kPolicies[] = {{"nonsaturate", Overflow::kNonsaturate},
                                           {"saturate", Overflow::kSaturate},
                                           {"propagate", Overflow::kPropagate}};

}  // namespace

std::string_view ToString(RoundingMode mode) { return KeywordToString(kModes, mode); }
std::string_view ToString(StochasticVariant variant) { return KeywordToString(kVariants, variant); }
std::string_view ToString(Overflow overflow) { return KeywordToString(kPolicies, overflow); }

RoundingMode ParseRoundingMode(std::string_view text) {
  return ParseKeyword(kModes, "rounding mode", text);
}
StochasticVariant ParseStochasticVariant(std::string_view text) {
  return ParseKeyword(kVariants, "stochastic variant", text);
}
Overflow ParseOverflow(std::string_view text) { return ParseKeyword(kPolicies, "overflow", text); }

}  // namespace numsim
