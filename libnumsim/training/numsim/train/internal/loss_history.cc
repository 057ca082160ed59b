#include "numsim/train/internal/loss_history.h"

#include <algorithm>
#include <span>

#include "numsim/base/error.h"
#include "numsim/stats/spikes.h"

namespace numsim {

void LossHistory::Add(double loss) {
  if (kept_.empty()) first_ = loss;
  if (kept_.size() == kKept) kept_.erase(kept_.begin());
  kept_.push_back(loss);
}

double LossHistory::Last() const {
  return kept_.empty() ? std::numeric_limits<double>::quiet_NaN() : kept_.back();
}

double LossHistory::Recent() const {
  const auto recent = std::span(kept_).last(std::min(kept_.size(), kRecent));
  double sum = 0;
  for (const double loss : recent) sum += loss;
  return sum / static_cast<double>(recent.size());
}

bool LossHistory::Diverged(double times) const {
  return times > 0 && kept_.size() >= kRecent && Recent() > times * first_;
}

double LossHistory::Deviation() const {
  if (kept_.empty()) return std::numeric_limits<double>::quiet_NaN();
  return LossDeviation(std::span(kept_).first(kept_.size() - 1), kept_.back(), kWindow);
}

std::vector<double> LossHistory::Save() const {
  std::vector<double> saved;
  if (!kept_.empty()) saved.push_back(first_);
  saved.insert(saved.end(), kept_.begin(), kept_.end());
  return saved;
}

void LossHistory::Restore(const std::vector<double>& saved) {
  if (saved.size() == 1 || saved.size() > kKept + 1) {
    throw Error::Format("{} losses, expected none or 2 to {}", saved.size(), kKept + 1);
  }
  *this = {};
  if (saved.empty()) return;
  first_ = saved.front();
  kept_.assign(saved.begin() + 1, saved.end());
}

}  // namespace numsim
