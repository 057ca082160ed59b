// The table `outcomes` of a study whose trainings are judged by their validation loss, its figures, and
// parts of other derived tables.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/claims/frame.h"
#include "experiments/study/lines.h"
#include "experiments/study/study.h"

namespace numsim::experiments::study {

// A training has collapsed if its validation loss is less than this share below the loss of a model that
// guesses at random.
inline constexpr double kCollapsed = 0.05;
// Returns true if the training of a row of the table of trainings diverged or collapsed.
bool Failed(const Frame& run);

// A gap of the validation loss: to the arm that has the baseline on these axes and is the same on the
// others.
struct GapColumn {
  std::string name, meaning;
  std::vector<std::string> baseline_of;
};
// Returns the table: per arm, numbers of seeds, the mean validation loss, and gaps with their intervals,
// paired by seed.
DerivedTable Outcomes(const std::vector<GapColumn>& gaps);

// A column of means over the seeds of an arm, or the number of those that diverged.
struct MeanColumn {
  std::string name, meaning;
  bool interval = false;  // NAME_low and NAME_high have the 95 % interval
  bool finished = false;  // of the runs that finished
  bool diverged = false;
  std::function<double(const Frame& run)> outcome =
      {};  // what the mean is of; empty: the column NAME
};
// Returns a table of means over seeds: the number of seeds per arm, then these columns.
DerivedTable ArmMeans(const std::string& name, const std::vector<MeanColumn>& columns);

// Returns the figure of losses against steps in `curves`: a panel for each value of an axis, with the
// baseline of both axes beside each. Losses above those of the panel of the baseline are cut.
std::function<Figure(const Results&)> LossFigure(const std::string& name,
                                                 const std::string& title,
                                                 const std::string& panel,
                                                 const std::string& line,
                                                 PanelTitle panel_title);
// Returns the figure of the column `gap` of `outcomes`: a point for each value of an axis but its
// baseline, infinite if a seed diverged.
std::function<Figure(const Results&)> GapFigure(const std::string& name,
                                                const std::string& title,
                                                const std::string& along,
                                                const std::string& line);

// Returns the validation loss at the end of a run, or that of its start if it diverged: it counts as no
// better.
double LossOrStart(const Frame& run);
// Returns the rows of the last step of each training.
Frame LastSteps(const Results& results, const Frame& frame);
// Returns value(a, b) for the rows of each seed that both frames have.
SeedValues ForBoth(const Frame& a,
                   const Frame& b,
                   const std::function<double(const Frame&, const Frame&)>& value);

}  // namespace numsim::experiments::study
