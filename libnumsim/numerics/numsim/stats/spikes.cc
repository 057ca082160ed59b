#include "numsim/stats/spikes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "numsim/base/error.h"
#include "numsim/base/require.h"

namespace numsim {
namespace {

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();
constexpr double kAboveAll = std::numeric_limits<double>::infinity();

// Returns a + b, or the largest number if that is larger.
uint64_t Plus(uint64_t a, uint64_t b) { return a + b < a ? ~uint64_t{0} : a + b; }

double MeanOfLosses(std::span<const double> losses) {
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum / static_cast<double>(losses.size());
}

// Returns the steps from rule.ignored on at which `is_event` holds.
template <typename IsEvent>
std::vector<uint64_t> EventsOf(std::span<const double> series,
                               const SpikeRule& rule,
                               const IsEvent& is_event) {
  std::vector<uint64_t> steps;
  for (size_t t = rule.ignored; t < series.size(); ++t) {
    if (is_event(series[t])) steps.push_back(t);
  }
  return steps;
}

// Returns the first of the sorted steps in [low, high], or nullptr.
const uint64_t* FirstIn(std::span<const uint64_t> steps, uint64_t low, uint64_t high) {
  const auto found = std::lower_bound(steps.begin(), steps.end(), low);
  return found != steps.end() && *found <= high ? &*found : nullptr;
}

// Returns the first event that predicts the spike, or nullptr.
const uint64_t* EventBefore(std::span<const uint64_t> events,
                            uint64_t spike,
                            const SpikeRule& rule) {
  if (spike < rule.first_lead) return nullptr;
  const uint64_t low = spike < rule.last_lead ? 0 : spike - rule.last_lead;
  return FirstIn(events, low, spike - rule.first_lead);
}

uint64_t CountPredicted(std::span<const uint64_t> events,
                        std::span<const uint64_t> spikes,
                        const SpikeRule& rule) {
  return static_cast<uint64_t>(std::count_if(spikes.begin(), spikes.end(), [&](uint64_t spike) {
    return EventBefore(events, spike, rule) != nullptr;
  }));
}

// Returns the probability of each number of predicted spikes of a series, over the shifts of its
// events.
std::vector<double> ShiftDistribution(const EventSeries& series, const SpikeRule& rule) {
  const uint64_t length = series.last - series.first;
  std::vector<uint64_t> counts(series.spikes.size() + 1);
  std::vector<uint64_t> shifted(series.events.size());
  for (uint64_t shift = 0; shift < length; ++shift) {
    if (std::min(shift, length - shift) > rule.most_shift) continue;
    std::transform(series.events.begin(), series.events.end(), shifted.begin(), [&](uint64_t step) {
      return series.first + (step - series.first + shift) % length;
    });
    std::sort(shifted.begin(), shifted.end());
    ++counts[CountPredicted(shifted, series.spikes, rule)];
  }
  const uint64_t shifts = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  std::vector<double> shares(counts.size());
  std::transform(counts.begin(), counts.end(), shares.begin(), [&](uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(shifts);
  });
  return shares;
}

// Returns the distribution of the sum of two independent numbers.
std::vector<double> Convolve(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> sum(a.size() + b.size() - 1);
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) sum[i + j] += a[i] * b[j];
  }
  return sum;
}

void CheckSeries(const EventSeries& series) {
  for (const std::vector<uint64_t>* const steps : {&series.events, &series.spikes}) {
    NUMSIM_REQUIRE(
        std::is_sorted(steps->begin(), steps->end()) &&
            (steps->empty() || (steps->front() >= series.first && steps->back() < series.last)),
        "Predict: events and spikes must be ascending steps from {} to {}",
        series.first,
        series.last);
  }
}

}  // namespace

void CheckSpikeRule(const SpikeRule& rule) {
  const auto require = [](bool valid, const char* field, const char* expected) {
    if (!valid) throw Error::Format("spikes.{}: expected {}", field, expected);
  };
  require(rule.rms > 0 && std::isfinite(rule.rms), "rms", "a finite number above 0");
  require(rule.deviations > 0 && std::isfinite(rule.deviations),
          "deviations",
          "a finite number above 0");
  require(rule.window >= 2, "window", "at least 2 losses");
  require(rule.merge >= 1, "merge", "at least 1 step");
  require(rule.confirm >= 1, "confirm", "at least 1 loss");
  require(rule.first_lead >= 1 && rule.first_lead <= rule.last_lead,
          "first_lead",
          "1 <= first_lead <= last_lead");
}

double LossDeviation(std::span<const double> before, double loss, size_t window) {
  if (before.size() > window) before = before.last(window);
  std::vector<double> finite;
  std::copy_if(before.begin(), before.end(), std::back_inserter(finite), [](double x) {
    return std::isfinite(x);
  });
  if (finite.size() < std::min(kLeastLosses, window)) return kNotKnown;
  if (!std::isfinite(loss)) return kAboveAll;
  // Compared exactly: the rounded mean of equal losses may differ from them.
  const double first = finite.front();
  if (std::all_of(finite.begin(), finite.end(), [&](double x) { return x == first; })) {
    return loss == first ? 0 : std::copysign(kAboveAll, loss - first);
  }
  const double mean = MeanOfLosses(finite);
  double squares = 0;
  for (const double other : finite) squares += (other - mean) * (other - mean);
  return (loss - mean) / std::sqrt(squares / static_cast<double>(finite.size()));
}

std::vector<double> LossDeviations(std::span<const double> losses, size_t window) {
  std::vector<double> deviations(losses.size());
  for (size_t t = 0; t < losses.size(); ++t) {
    deviations[t] = LossDeviation(losses.first(t), losses[t], window);
  }
  return deviations;
}

std::vector<uint64_t> MergeEvents(std::span<const uint64_t> steps, uint64_t merge) {
  std::vector<uint64_t> firsts;
  for (const uint64_t step : steps) {
    if (firsts.empty() || step - firsts.back() >= merge) firsts.push_back(step);
  }
  return firsts;
}

std::vector<uint64_t> RmsSpikes(std::span<const double> rms, const SpikeRule& rule) {
  return MergeEvents(EventsOf(rms, rule, [&](double x) { return x >= rule.rms; }), rule.merge);
}

std::vector<uint64_t> LossSpikes(std::span<const double> losses, const SpikeRule& rule) {
  return DeviationSpikes(LossDeviations(losses, rule.window), rule);
}

std::vector<uint64_t> DeviationSpikes(std::span<const double> deviations, const SpikeRule& rule) {
  const std::vector<uint64_t> steps =
      EventsOf(deviations, rule, [&](double x) { return x > rule.deviations; });
  std::vector<uint64_t> confirmed;
  for (size_t i = 0; rule.confirm <= steps.size() - i && i < steps.size(); ++i) {
    if (steps[i + rule.confirm - 1] - steps[i] < rule.merge) confirmed.push_back(steps[i]);
  }
  return MergeEvents(confirmed, rule.merge);
}

std::vector<uint64_t> RecoverySteps(std::span<const double> losses,
                                    std::span<const uint64_t> spikes,
                                    const SpikeRule& rule) {
  std::vector<uint64_t> steps;
  uint64_t recovered = 0;
  for (const uint64_t spike : spikes) {
    steps.push_back(0);
    if (spike < recovered || spike >= losses.size()) continue;
    const uint64_t known = std::min<uint64_t>(spike, rule.merge);
    const double before =
        known == 0 ? kAboveAll : MeanOfLosses(losses.subspan(spike - known, known));
    recovered = spike;
    double after = kAboveAll;
    while (recovered < losses.size() && !(after <= before)) {
      ++recovered;
      const uint64_t recent = std::min(recovered - spike, rule.merge);
      after = MeanOfLosses(losses.subspan(recovered - recent, recent));
    }
    steps.back() = recovered - spike;
  }
  return steps;
}

uint64_t StepsLost(std::span<const double> losses,
                   std::span<const uint64_t> spikes,
                   const SpikeRule& rule) {
  const std::vector<uint64_t> steps = RecoverySteps(losses, spikes, rule);
  return std::accumulate(steps.begin(), steps.end(), uint64_t{0});
}

double Prediction::Recall() const {
  return spikes == 0 ? kNotKnown : static_cast<double>(predicted) / static_cast<double>(spikes);
}

double Prediction::Precision() const {
  return events == 0 ? kNotKnown : static_cast<double>(followed) / static_cast<double>(events);
}

Prediction Predict(std::span<const EventSeries> series, const SpikeRule& rule) {
  Prediction result;
  std::vector<double> distribution = {1};
  uint64_t leads = 0;
  for (const EventSeries& one : series) {
    CheckSeries(one);
    result.events += one.events.size();
    result.spikes += one.spikes.size();
    for (const uint64_t spike : one.spikes) {
      const uint64_t* const event = EventBefore(one.events, spike, rule);
      if (event == nullptr) continue;
      ++result.predicted;
      leads += spike - *event;
    }
    for (const uint64_t event : one.events) {
      const uint64_t low = Plus(event, rule.first_lead), high = Plus(event, rule.last_lead);
      result.followed += FirstIn(one.spikes, low, high) != nullptr ? 1 : 0;
    }
    if (one.spikes.empty()) continue;
    distribution = Convolve(distribution, ShiftDistribution(one, rule));
  }
  result.lead = result.predicted == 0
                    ? kNotKnown
                    : static_cast<double>(leads) / static_cast<double>(result.predicted);
  result.p = 0;
  for (size_t count = 0; count < distribution.size(); ++count) {
    result.expected += static_cast<double>(count) * distribution[count];
    if (count >= result.predicted) result.p += distribution[count];
  }
  result.p = std::min(result.p, 1.0);
  return result;
}

}  // namespace numsim
