#include "apps/train_progress.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

namespace numsim::apps {
namespace {

constexpr std::chrono::milliseconds kInterval(200);
constexpr const char* kEraseToEndOfLine = "\x1b[K";

// "1:02:03", "2:03"; nothing known: "?".
std::string Duration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "?";
  const long whole = std::lround(seconds);
  const long hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

}  // namespace

TrainProgress::~TrainProgress() {
  if (printed_) std::fputc('\n', stderr);
}

void TrainProgress::Show(const Trainer& trainer, double tokens_per_second, double seconds_left) {
  if (!visible_) return;
  const auto now = std::chrono::steady_clock::now();
  const uint64_t step = trainer.steps_taken(), steps = trainer.config().train.steps;
  if (printed_ && step != steps && now - last_ < kInterval) return;
  fmt::print(stderr,
             "\r[{:>{}}/{}] loss {:.4f}  lr {:.3g}  {:.0f} {}/s  {} left{}",
             step,
             fmt::formatted_size("{}", steps),
             steps,
             trainer.last_loss(),
             trainer.config().schedule.At(step == 0 ? 0 : step - 1),
             tokens_per_second,
             trainer.unit(),
             Duration(seconds_left),
             kEraseToEndOfLine);
  std::fflush(stderr);
  printed_ = true;
  last_ = now;
}

}  // namespace numsim::apps
