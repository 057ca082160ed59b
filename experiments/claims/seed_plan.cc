#include "experiments/claims/seed_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/claims/power.h"
#include "experiments/claims/student_t.h"

namespace numsim::experiments {
namespace {

// The standard error of a contrast at the pilot's number of seeds.
struct Scatter {
  double standard_error;
  int freedom;
};

// The scatter of a claim's contrasts at other numbers of seeds.
class Scatters {
 public:
  Scatters(std::vector<Scatter> pilot, int seeds) : pilot_(std::move(pilot)), seeds_(seeds) {}

  size_t size() const { return pilot_.size(); }
  double ErrorAt(size_t i, int seeds) const {
    return pilot_[i].standard_error * std::sqrt(static_cast<double>(seeds_) / seeds);
  }
  int FreedomAt(size_t i, int seeds) const {
    const double each = static_cast<double>(pilot_[i].freedom) / (seeds_ - 1);
    return std::max(1, static_cast<int>(std::floor(each * (seeds - 1) + 1e-9)));
  }

 private:
  std::vector<Scatter> pilot_;
  int seeds_;
};

double CriticalValue(double tail, int freedom) { return -StudentQuantile(tail, freedom); }

// Returns the probability that every contrast is found beyond its bound, `distance` away from it, at this
// one-sided level, and that at least one is at the level of each.
double SupportBeyond(const Scatters& scatters, int seeds, double distance, double level) {
  double missed = 0;
  for (size_t i = 0; i < scatters.size(); ++i) {
    const int freedom = scatters.FreedomAt(i, seeds);
    missed +=
        1 -
        PowerBeyond(distance / scatters.ErrorAt(i, seeds), CriticalValue(level, freedom), freedom);
  }
  return 1 - missed;
}
double OneBeyond(const Scatters& scatters, int seeds, double distance, double level) {
  const double each = level / static_cast<double>(scatters.size());
  double most = 0;
  for (size_t i = 0; i < scatters.size(); ++i) {
    const int freedom = scatters.FreedomAt(i, seeds);
    most = std::max(
        most,
        PowerBeyond(distance / scatters.ErrorAt(i, seeds), CriticalValue(each, freedom), freedom));
  }
  return most;
}
double SupportWithin(const Scatters& scatters, int seeds, double margin, double level) {
  double missed = 0;
  for (size_t i = 0; i < scatters.size(); ++i) {
    const int freedom = scatters.FreedomAt(i, seeds);
    const double reach = margin / scatters.ErrorAt(i, seeds);
    missed += 1 - PowerWithin(reach, reach, CriticalValue(level, freedom), freedom);
  }
  return 1 - missed;
}

// Returns how far from its bound the truth is taken to be; 0: it is not known.
double DistanceOf(const JudgedClaim& claim) {
  const double margin = std::abs(claim.margin);
  return margin > 0 ? margin : std::abs(claim.spec->papers_effect);
}

int SeedsFor(const JudgedClaim& claim, const Scatters& scatters, double alpha) {
  const double distance = DistanceOf(claim);
  const bool within = claim.spec->kind == ClaimKind::kEquivalence;
  return LeastSeeds([&](int seeds) {
    const double support = within ? SupportWithin(scatters, seeds, distance, alpha)
                                  : SupportBeyond(scatters, seeds, distance, alpha / 2);
    return std::min(support, OneBeyond(scatters, seeds, distance, alpha / 2));
  });
}

double SquaredWeights(const Contrast& contrast) {
  double sum = 0;
  for (const ContrastTerm& term : contrast) sum += term.weight * term.weight;
  return sum;
}

}  // namespace

SeedPlan PlanSeeds(const JudgedClaim& claim, int pilot_seeds, int primary, double alpha) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  SeedPlan plan{.contrast_sd = kUnknown, .residual_sd = kUnknown};
  const ClaimKind kind = claim.spec->kind;
  if (!claim.evidence.not_tested.empty()) {
    plan.note = "not tested: " + claim.evidence.not_tested;
  } else if (kind == ClaimKind::kExact) {
    plan.note = "decided by exact arithmetic: one seed";
  } else if (kind == ClaimKind::kDivergence) {
    plan.note = "a share of runs: it has no scatter that a pilot could measure";
  } else if (pilot_seeds < 2) {
    plan.note = "one seed has no scatter";
  }
  if (!plan.note.empty()) return plan;
  std::vector<Scatter> scatters;
  plan.contrast_sd = plan.residual_sd = 0;
  for (size_t i = 0; i < claim.result.contrasts.size(); ++i) {
    const ContrastResult& contrast = claim.result.contrasts[i];
    if (!(contrast.standard_error >= 0) || contrast.freedom < 1) {
      plan.contrast_sd = plan.residual_sd = kUnknown;
      plan.note = "its scatter is not known: runs are missing or diverged";
      return plan;
    }
    const double sd = contrast.standard_error * std::sqrt(static_cast<double>(pilot_seeds));
    if (sd >= plan.contrast_sd) {
      plan.contrast_sd = sd;
      plan.residual_sd = sd / std::sqrt(SquaredWeights(claim.evidence.contrasts.at(i)));
      plan.freedom = contrast.freedom;
    }
    scatters.push_back({contrast.standard_error, contrast.freedom});
  }
  if (scatters.empty()) {
    plan.contrast_sd = plan.residual_sd = kUnknown;
    plan.note = claim.result.reason.empty() ? "there is no contrast" : claim.result.reason;
  } else if (DistanceOf(claim) == 0) {
    plan.note = "its margin is 0, and no effect of the paper is stated";
  } else if (plan.contrast_sd == 0) {
    plan.seeds = 2;
  } else {
    plan.seeds = SeedsFor(claim, Scatters(std::move(scatters), pilot_seeds), alpha / primary);
  }
  return plan;
}

}  // namespace numsim::experiments
