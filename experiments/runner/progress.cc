#include "experiments/runner/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace numsim::experiments {
namespace {

// A longer line would wrap on a terminal, where a carriage return goes back only one screen line.
constexpr size_t kLabelWidth = 60;  // includes the head and the time left
constexpr const char* kEraseToEndOfLine = "\x1b[K";

}  // namespace

Progress::Progress(bool visible, size_t done, size_t total)
    : visible_(visible), total_(total), done_(done) {}

Progress::~Progress() {
  if (!printed_) return;
  fmt::print(stderr, "{}{}", head_ ? "\r" : "\n", head_ ? kEraseToEndOfLine : "");
  std::fflush(stderr);
}

void Progress::BeginWith(ProgressHead head, double left) {
  head_ = std::move(head);
  left_ = first_left_ = left;
}

void Progress::Started(std::string_view label) {
  if (!visible_) return;
  const std::lock_guard lock(mutex_);
  Print(label);
}

void Progress::Finished(std::string_view label, double share) {
  if (!visible_) return;
  const std::lock_guard lock(mutex_);
  ++done_;
  left_ -= share;
  Print(label);
}

void Progress::Print(std::string_view label) {
  const int digits = static_cast<int>(fmt::formatted_size("{}", total_));
  const double left = std::max(0.0, left_);
  const std::string head = head_ ? head_(left) : "";
  const double seconds = SecondsLeft(watch_.Seconds(), first_left_ - left, left);
  const std::string tail = head_ ? "" : fmt::format("{} left  ", ClockText(seconds));
  fmt::print(stderr,
             "\r{}[{:>{}}/{}] {}{:.{}}{}",
             head,
             done_,
             digits,
             total_,
             tail,
             label,
             kLabelWidth - std::min(head.size() + tail.size(), kLabelWidth),
             kEraseToEndOfLine);
  std::fflush(stderr);
  printed_ = true;
}

}  // namespace numsim::experiments
