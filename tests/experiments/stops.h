// Stops and kills a training in a trial, and expects that the trial notices nothing.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/runner/trial_context.h"
#include "numsim/base/parallel.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments {

// Runs a trial that ends without a signal, or is stopped, when it asks for the `ask`th time. Continues
// it, and lets it ask more often each time, until it is finished: stops and kills come at different
// steps.
class StoppedTrial {
 public:
  struct Kill {};  // an end without a signal

  // `kill`: saved every step and then ended; otherwise saved at the stop alone.
  StoppedTrial(const Experiment& experiment, const Settings& settings, Trial trial, bool kill)
      : kill_(kill) {
    context_.folder = directory_.Path();
    context_.trial = 7;
    context_.identity = {{"trial", trial.label}};
    context_.save_every = kill ? 0 : std::numeric_limits<double>::infinity();
    context_.stop = [this] { return Asked(); };
    context_.say = [this](const std::string& line) { said_.push_back(line); };
    trial.context = &context_;
    while (!rows_.has_value()) {
      asked_ = 0;
      try {
        rows_ = experiment.run(settings, trial);
      } catch (const TrialStopped&) {
        ++stops_;
      } catch (const Kill&) {
        ++stops_;
      }
      most_ += kill_ ? 5 : most_;
    }
  }

  const Rows& rows() const { return *rows_; }
  int stops() const { return stops_; }
  const std::vector<std::string>& said() const { return said_; }

 private:
  bool Asked() {
    if (++asked_ <= most_) return false;
    if (kill_) throw Kill();
    return true;
  }

  const TemporaryDirectory directory_;
  const bool kill_;
  TrialContext context_;
  int asked_ = 0, most_ = 1, stops_ = 0;
  std::vector<std::string> said_;
  std::optional<Rows> rows_;
};

// Expects that a trial whose training takes some steps has the same rows after stops and after kills.
inline void ExpectStopsChangeNothing(const Experiment& experiment,
                                     const Settings& settings,
                                     const Trial& trial) {
  const int threads = ThreadCount();
  SetThreadCount(1);  // such small models are no faster with more
  const Rows expected = experiment.run(settings, trial);
  for (const bool kill : {false, true}) {
    const StoppedTrial stopped(experiment, settings, trial, kill);
    EXPECT_GE(stopped.stops(), 2) << trial.label;
    EXPECT_FALSE(stopped.said().empty());
    for (const std::string& line : stopped.said()) {
      EXPECT_NE(line.find("\" continues at step "), std::string::npos) << line;
    }
    EXPECT_TRUE(stopped.rows() == expected) << trial.label << (kill ? ", killed" : ", stopped");
  }
  SetThreadCount(threads);
}

}  // namespace numsim::experiments
