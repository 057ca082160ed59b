#include "numsim/train/internal/loss_history.h"

#include "numsim/base/error.h"

namespace numsim {

void LossHistory::Add(double loss) {
  if (recent_.empty()) first_ = loss;
  if (recent_.size() == kRecent) recent_.erase(recent_.begin());
  recent_.push_back(loss);
}

double LossHistory::Last() const {
  return recent_.empty() ? std::numeric_limits<double>::quiet_NaN() : recent_.back();
}

double LossHistory::Recent() const {
  double sum = 0;
  for (const double loss : recent_) sum += loss;
  return sum / static_cast<double>(recent_.size());
}

bool LossHistory::Diverged(double times) const {
  return times > 0 && recent_.size() == kRecent && Recent() > times * first_;
}

std::vector<double> LossHistory::Save() const {
  std::vector<double> saved;
  if (!recent_.empty()) saved.push_back(first_);
  saved.insert(saved.end(), recent_.begin(), recent_.end());
  return saved;
}

void LossHistory::Restore(const std::vector<double>& saved) {
  if (saved.size() == 1 || saved.size() > kRecent + 1) {
    throw Error::Format("{} losses, expected none or 2 to {}", saved.size(), kRecent + 1);
  }
  *this = {};
  if (saved.empty()) return;
  first_ = saved.front();
  recent_.assign(saved.begin() + 1, saved.end());
}

}  // namespace numsim
