// Durations as text and estimates of the time left, for the progress lines of runs, of the demo and
// of trainings.
#pragma once

#include <chrono>
#include <string>

namespace numsim::experiments {

// Formats a duration as minutes and seconds, "1:05", or with hours, "1:00:00". A negative one is
// "0:00", one that is not finite "?".
std::string ClockText(double seconds);

// Formats a duration of a preset roughly: "20 s", "5 min", "3 h", "2 days".
std::string RoughText(double seconds);

class Stopwatch {
 public:
  // Returns the seconds since construction.
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Returns the seconds that the rest of some work takes at the pace so far, if `done` of it took
// `elapsed` seconds and `left` is left, in the same unit; infinite if nothing is done yet.
double SecondsLeft(double elapsed, double done, double left);

// Estimates how long planned work takes at the pace of the work done so far. kInTime seconds of
// work count as done exactly on plan, so that the first measurements do not swing the estimate.
class Pace {
 public:
  // Records that work planned to take `planned` seconds took `elapsed` seconds.
  void Add(double planned, double elapsed);
  // Returns the estimated seconds for work planned to take `planned` seconds.
  double Seconds(double planned) const;

 private:
  static constexpr double kInTime = 5;
  double planned_ = kInTime, elapsed_ = kInTime;
};

}  // namespace numsim::experiments
