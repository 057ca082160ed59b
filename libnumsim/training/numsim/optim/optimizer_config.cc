#include "numsim/optim/optimizer_config.h"

#include <cmath>
#include <limits>

#include "numsim/base/error.h"
#include "numsim/base/keyword.h"

namespace numsim {
namespace {

constexpr Keyword<DecayFilter> kDecayFilters[] = {
    {"matrices", DecayFilter::kMatrices},
    {"all", DecayFilter::kAll},
    {"none", DecayFilter::kNone},
};

constexpr Keyword<MomentFilter> kMomentFilters[] = {
    {"matrices", MomentFilter::kMatrices},
    {"all", MomentFilter::kAll},
};

// Returns true if `value`, rounded to float32, is finite and at least `least`.
bool IsAtLeast(double value, float least) {
  const auto rounded = static_cast<float>(value);
  return std::isfinite(rounded) && rounded >= least;
}

void CheckAverage(const char* field, double beta) {
  if (IsAtLeast(beta, 0) && static_cast<float>(beta) < 1) return;
  throw KeyError::Format(field, "{} is not in [0, 1) as a float32", beta);
}

void CheckNotNegative(const char* field, double value) {
  if (IsAtLeast(value, 0) && value >= 0) return;
  throw KeyError::Format(field, "{} is not a float32 >= 0", value);
}

void CheckPositive(const char* field, double value) {
  if (IsAtLeast(value, std::numeric_limits<float>::min())) return;
  throw KeyError::Format(field, "{} is not a normal float32 > 0", value);
}

void CheckSigned(const char* field, const Format& format) {
  if (format.spec.IsSigned() && format.spec.zero != Zero::kNone) return;
  throw KeyError::Format(field, "format {} has no sign or no zero", format.name);
}

void CheckMoment(const char* field, const MomentFormat& moment) {
  CheckSigned(field, moment.format);
  if (moment.block >= 1) return;
  throw KeyError::Format(field, "the block size is 0");
}

}  // namespace

DecayFilter ParseDecayFilter(std::string_view text) {
  return ParseKeyword(kDecayFilters, "weight decay filter", text);
}

std::string_view ToString(DecayFilter filter) { return KeywordToString(kDecayFilters, filter); }

std::string DecayFilterNames() { return KeywordNames(kDecayFilters); }

MomentFilter ParseMomentFilter(std::string_view text) {
  return ParseKeyword(kMomentFilters, "moment filter", text);
}

std::string_view ToString(MomentFilter filter) { return KeywordToString(kMomentFilters, filter); }

std::string MomentFilterNames() { return KeywordNames(kMomentFilters); }

OptimizerConfig::OptimizerConfig() {
  const Format fp32 = ParseFormat("fp32");
  m.format = v.format = weights = fp32;
}

void CheckOptimizerConfig(const OptimizerConfig& config) {
  CheckAverage("optimizer.beta1", config.beta1);
  CheckAverage("optimizer.beta2", config.beta2);
  if (!(config.beta2_decay >= 0 && config.beta2_decay <= 1)) {
    throw KeyError::Format("optimizer.beta2_decay", "{} is not in [0, 1]", config.beta2_decay);
  }
  CheckPositive("optimizer.epsilon", config.epsilon);
  CheckNotNegative("optimizer.weight_decay", config.weight_decay);
  CheckNotNegative("optimizer.clip_norm", config.clip_norm);
  CheckPositive("optimizer.stable.threshold", config.stable.threshold);
  const StableOptions& stable = config.stable;
  if (stable.of_moment && (stable.of_update || stable.previous_u)) {
    throw KeyError::Format("optimizer.stable.of_moment",
                           "true together with {}",
                           stable.of_update ? "of_update" : "previous_u");
  }
  CheckMoment("optimizer.m", config.m);
  CheckMoment("optimizer.v", config.v);
  CheckSigned("optimizer.weights", config.weights);
  try {
    CheckUpdateRule(config.update, config.weights);
  } catch (const Error& error) {
    throw KeyError("optimizer.update", error.what());
  }
}

}  // namespace numsim
