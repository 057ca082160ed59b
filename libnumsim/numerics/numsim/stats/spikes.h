// Spikes in the losses and in the RMS_t of a training, by the heuristics of [SwitchBack] Appendix E,
// and how well one series of events predicts another.
//
// An RMS spike is a step with RMS_t >= 2.3. A loss spike is a step whose loss exceeds the running mean
// by 3.2 running standard deviations, if it happens again less than 10 steps later. Of several events
// less than 10 steps after the first, only the first counts. Steps at the start of the training are
// ignored. The paper does not say over how many losses mean and deviation run: here they run over the
// finite ones of the `window` losses before the step, and the deviation divides by their number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace numsim {

struct SpikeRule {
  double rms = 2.3;         // an RMS spike has at least this RMS_t
  double deviations = 3.2;  // a loss that deviates has more standard deviations than this
  size_t window = 128;      // losses over which mean and deviation run
  uint64_t ignored = 1000;  // steps at the start in which nothing counts
  uint64_t merge = 10;      // events within this many steps count as the first of them
  size_t confirm = 2;       // losses that deviate within `merge` steps for a loss spike
  // An event at step e predicts a spike at e + first_lead, ..., e + last_lead.
  uint64_t first_lead = 1, last_lead = 8;
  // Largest shift, forward or back, of the null distribution of Predict. Short shifts keep a trend that
  // events and spikes share over a training, e.g. with the learning rate, and chance then includes it.
  uint64_t most_shift = std::numeric_limits<uint64_t>::max();
};
// Throws Error naming the field ("spikes.window") unless thresholds are positive and finite,
// window >= 2, merge and confirm >= 1 and 1 <= first_lead <= last_lead.
void CheckSpikeRule(const SpikeRule& rule);

// Mean and deviation need at least this many losses, or the whole window if it is shorter.
inline constexpr size_t kLeastLosses = 16;

// Returns, for the loss that follows `before`, how many standard deviations it lies above their mean.
// NaN if there are fewer than kLeastLosses finite losses (and fewer than `window`); infinity for a loss
// that is not finite. Of losses that are all equal, an equal one is 0 deviations away, and any other
// infinitely many. Only the last `window` losses count.
double LossDeviation(std::span<const double> before, double loss, size_t window);
// Returns LossDeviation of every loss.
std::vector<double> LossDeviations(std::span<const double> losses, size_t window);

// Return the steps at which spikes begin, in ascending order. Element t of a series belongs to step t.
// A NaN is no event.
std::vector<uint64_t> RmsSpikes(std::span<const double> rms, const SpikeRule& rule);
std::vector<uint64_t> LossSpikes(std::span<const double> losses, const SpikeRule& rule);
// Returns the steps at which a series of LossDeviations has spikes.
std::vector<uint64_t> DeviationSpikes(std::span<const double> deviations, const SpikeRule& rule);
// Returns the first of each group of events: an event within `merge` steps of the first of the group
// before it belongs to that group. Requires ascending steps.
std::vector<uint64_t> MergeEvents(std::span<const uint64_t> steps, uint64_t merge);

// Returns the number of steps that each spike costs: those from its beginning up to and including the
// one at which the mean of the last `merge` losses, as far as they are since its beginning, is no longer
// above the mean of the up to `merge` losses before it; all that are left if it stays above, or if a
// mean is NaN. Spikes that begin in this time are part
// of the spike before and cost 0. Requires ascending steps.
std::vector<uint64_t> RecoverySteps(std::span<const double> losses,
                                    std::span<const uint64_t> spikes,
                                    const SpikeRule& rule);
// Returns the sum of RecoverySteps.
uint64_t StepsLost(std::span<const double> losses,
                   std::span<const uint64_t> spikes,
                   const SpikeRule& rule);

// The events and spikes of one training, in ascending steps.
struct EventSeries {
  uint64_t first = 0, last = 0;  // the steps that count: first <= step < last
  std::vector<uint64_t> events, spikes;
};

// How well events predict spikes, over several trainings.
struct Prediction {
  uint64_t events = 0, spikes = 0;
  uint64_t predicted = 0;  // spikes that follow an event by first_lead to last_lead steps
  uint64_t followed = 0;   // events that such a spike follows
  double lead = 0;         // mean steps from the first such event to its spike; NaN if none is
  // Null distribution: the events of each training are shifted along the circle of its steps (a lead
  // does not cross its ends), each shift with the same probability, independently of the other
  // trainings. `expected` is the mean of `predicted`, `p` the probability of at least that many.
  double expected = 0, p = 1;

  double Recall() const;     // predicted / spikes; NaN without spikes
  double Precision() const;  // followed / events; NaN without events
};
// Returns the prediction over all series. The null distribution is exact: all shifts of up to
// rule.most_shift are counted.
// Requires that the events and spikes of each series lie in its steps.
Prediction Predict(std::span<const EventSeries> series, const SpikeRule& rule);

}  // namespace numsim
