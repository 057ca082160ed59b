#include "apps/train_progress.h"

#include <fmt/format.h>

#include <cstdio>

namespace numsim::apps {
namespace {

constexpr std::chrono::milliseconds kInterval(200);
constexpr const char* kEraseToEndOfLine = "\x1b[K";

// Returns a text such as "[ 12/100]".
std::string Count(uint64_t done, uint64_t all) {
  return fmt::format("[{:>{}}/{}]", done, fmt::formatted_size("{}", all), all);
}

}  // namespace

ProgressLine::~ProgressLine() {
  if (printed_) std::fputc('\n', stderr);
}

bool ProgressLine::IsDue(bool last) const {
  if (!visible_) return false;
  return !printed_ || last || std::chrono::steady_clock::now() - printed_at_ >= kInterval;
}

void ProgressLine::Print(const std::string& text) {
  fmt::print(stderr, "\r{}{}", text, kEraseToEndOfLine);
  std::fflush(stderr);
  printed_ = true;
  printed_at_ = std::chrono::steady_clock::now();
}

void TrainProgress::Show(const Trainer& trainer, double tokens_per_second, double seconds_left) {
  const uint64_t step = trainer.steps_taken(), steps = trainer.config().train.steps;
  if (!line_.IsDue(step == steps)) return;
  line_.Print(fmt::format("{} loss {:.4f}  lr {:.3g}  {:.0f} {}/s  {} left",
                          Count(step, steps),
                          trainer.last_loss(),
                          trainer.config().schedule.At(step == 0 ? 0 : step - 1),
                          tokens_per_second,
                          trainer.unit(),
                          experiments::ClockText(seconds_left)));
}

void RankProgress::Show(size_t done, size_t all) {
  if (!line_.IsDue(done == all)) return;
  const double left = experiments::SecondsLeft(
      watch_.Seconds(), static_cast<double>(done), static_cast<double>(all - done));
  line_.Print(fmt::format("{} replays  {} left", Count(done, all), experiments::ClockText(left)));
}

}  // namespace numsim::apps
