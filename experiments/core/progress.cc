#include "experiments/core/progress.h"

#include <fmt/format.h>

#include <cstdio>

namespace numsim::experiments {
namespace {

// A longer line would wrap on a terminal, and a carriage return goes back one screen line only.
constexpr int kLabelWidth = 60;
constexpr const char* kEraseToEndOfLine = "\x1b[K";

}  // namespace

Progress::Progress(bool visible, size_t done, size_t total)
    : visible_(visible), total_(total), done_(done) {}

Progress::~Progress() {
  if (printed_) std::fputc('\n', stderr);
}

void Progress::Started(std::string_view label) {
  if (!visible_) return;
  const std::lock_guard lock(mutex_);
  Print(label);
}

void Progress::Finished(std::string_view label) {
  if (!visible_) return;
  const std::lock_guard lock(mutex_);
  ++done_;
  Print(label);
}

void Progress::Print(std::string_view label) {
  const int digits = static_cast<int>(fmt::formatted_size("{}", total_));
  fmt::print(stderr,
             "\r[{:>{}}/{}] {:.{}}{}",
             done_,
             digits,
             total_,
             label,
             kLabelWidth,
             kEraseToEndOfLine);
  std::fflush(stderr);
  printed_ = true;
}

}  // namespace numsim::experiments
