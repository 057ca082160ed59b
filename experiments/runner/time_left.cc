#include "experiments/runner/time_left.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace numsim::experiments {

std::string ClockText(double seconds) {
  if (!(seconds < 1e9)) return "?";
  const long whole = std::lround(std::max(0.0, seconds));
  const long hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string RoughText(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  if (seconds < 1.5 * kMinute) return fmt::format("{:.0f} s", seconds);
  if (seconds < 1.5 * kHour) return fmt::format("{:.0f} min", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{:.0f} h", seconds / kHour);
  return fmt::format("{:.0f} days", seconds / kDay);
}

double SecondsLeft(double elapsed, double done, double left) {
  return done > 0 ? elapsed * left / done : std::numeric_limits<double>::infinity();
}

void Pace::Add(double planned, double elapsed) {
  planned_ += planned;
  elapsed_ += elapsed;
}

double Pace::Seconds(double planned) const { return planned * elapsed_ / planned_; }

}  // namespace numsim::experiments
