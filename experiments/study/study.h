// Studies: experiments as data. Where models are trained, a trial is a TOML of `numsim train`; an arm is the
// names of choices on axes; a choice is a list of keys. From these follow options, trials and their labels,
// checkpoints, tables of curves and outcomes, errors and the file that repeats a trial (`numsim describe
// --trial`). Otherwise a study has no axes, and its trials are measurements by a function.
// docs/adding-an-experiment.md has examples of both.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/shared/paper_training.h"
#include "experiments/study/claim_row.h"
#include "experiments/study/probe.h"
#include "numsim/base/split_list.h"

namespace numsim::experiments::study {

// Assignments of keys of `numsim train`: "optimizer.clip_norm=1". A value "$" is the value of the option
// or of the axis, "$NAME" that of the option NAME.
using Keys = std::vector<std::string>;

struct Choice {
  std::string name;
  Keys keys = {};
  std::string meaning = {};  // for the description
  bool alone = false;        // cannot be joined
  bool hidden = false;       // no option lists it: Study::arms adds it
};

// The numbers that an option takes.
struct Limits {
  double low = 0, high = 0;
  bool whole = true;
};

// An option with one value. Those of CommonSettings need no row in a study.
struct Setting {
  std::string name;
  std::string help;
  std::vector<Choice> choices = {};  // values with keys of their own
  Keys keys = {};                    // of any other value
  bool only_choices = false;         // there is no other value
  std::optional<Limits> limits = {};
  std::string part_of = {}, at_most = {}, before = {};  // as in Option
  std::string most = {};  // option whose value is the largest allowed; that of at_most also is
  std::string cuda = {};  // as in Option
};

// Returns the option `model` with these models, clip, vit or llama, whose data have the sizes of the
// options shapes, image and text-size.
Setting ModelSetting(const std::vector<std::string>& models);
// The options that studies share. A preset may also write one as its first key: `peak = 1e-3` in
// [schedule] is the option lr.
const std::vector<Setting>& CommonSettings();

// A respect in which arms differ, shown in every table.
struct Axis {
  std::string name, meaning;  // of the column
  std::vector<Choice> choices = {};
  bool joined = false;  // choices may be joined by '+', in any order
  // Makes the choice of any other text, or throws Error; empty: there is no other.
  std::function<Choice(const std::string&)> other = {};
  // Options that list its values; errors name the one that has the value.
  std::vector<std::string> options = {};
  std::string help = {};              // of the first of these options
  std::string baseline = {};          // always a value, and the first
  std::optional<Limits> limits = {};  // of the numbers that its options list
  // Another axis: each of its choices has an option of its own in `options`, in their order.
  std::string option_by = {};
  std::vector<std::string> (*split)(std::string_view list) = SplitList;
  // Columns in place of one of the axis's name, and their cells in a training; none: the axis is the
  // column. Results::OfArm, CompareArms and the tables and figures that studies share need the latter.
  std::vector<Column> columns = {};
  std::function<Row(const TrainConfig&)> cells = {};
};

// Trials that train nothing. They and their tables come before the others. A study that has some does
// not take --rows.
struct OtherTrials {
  std::vector<MeasuredTable> tables = {};  // without axes and seed
  // Returns the trials, which have no parameters of the names of axes.
  std::function<std::vector<Trial>(const Settings&)> list = {};
  std::function<Rows(const Settings&, const Trial&)> run = {};
};

// Texts by key: {"model.layers", "6"}.
using Texts = std::vector<std::pair<std::string, std::string>>;

// The values of options: keys of common settings, and other options with "study." before their names.
struct StudyPreset {
  std::string name;
  Texts values;  // the first: of all options, in their order; others: those that differ from `on`
  int seeds = 1;
  double seconds = 0;
  std::string on = {};  // another preset; empty: the first
};

struct DerivedTable {
  std::string name;
  std::vector<Column> columns;
  bool of_arms = false;  // those of the axes come before them
  std::function<std::vector<Row>(const Results&)> rows = {};
};

// The learning rates of arms, which `numsim tune` may choose.
struct RateRule {
  std::vector<std::string> options;  // that have the rate
  std::string axis = {};             // of rates, if there is one
};

struct Study;

// Returns figures of a run; those without panels are left out.
using FigureSource = std::function<std::vector<Figure>(const Results&)>;

// Trials that train several arms from one state, which no file of `numsim train` repeats.
struct Branches {
  // Returns the arms of a trial, which takes the place of an arm; none: the trial trains its own arm.
  std::function<std::vector<Arm>(const Settings&, const Arm& trial)> arms = {};
  std::function<Rows(const Study&, const Settings&, const Trial&)> measure = {};
};

struct Study {
  std::string name, title, reproduces, description;
  Texts fixed = {};     // keys of every trial that no option sets
  Texts defaults = {};  // the same, which --set may change
  Texts help = {};      // of options of axes, and of common settings whose own help does not fit
  Texts before = {};    // of options, as Option::before
  std::vector<StudyPreset> presets;
  std::vector<Setting> settings = {};
  std::vector<Axis> axes;
  // Keys that are computed from settings and arm; they are set last.
  std::function<Keys(const Settings&, const Arm&)> computed = {};
  // Returns the arms in the order of the rows, and checks what the limits of options do not say. Empty:
  // all combinations of the axes' options, the first axis varying fastest.
  std::function<std::vector<Arm>(const Study&, const Settings&)> arms = {};
  Branches branches = {};
  // Returns the arm from whose state an arm goes on after --fork-after steps. Empty: arms cannot fork,
  // and the study does not have that option.
  std::function<Arm(const Settings&, const Arm&)> forks_from = {};
  std::optional<RateRule> rates = {};
  bool seeds_first = false;  // trials are in the order of seeds, and then of arms
  // Returns the arm of a claim's axes that are not named there; empty: the baselines.
  std::function<Arm(const Settings&)> centre = {};
  std::string label;     // of a trial, "{format} {intervention}"; the seed is added
  std::string arm_text;  // in verdicts, "{intervention} / {format}"
  std::function<std::string(const Results&)> scale;     // of a run
  std::function<double(const TrainConfig&)> cost = {};  // Trial::cost; empty: 1
  OtherTrials others = {};
  std::vector<ProbeSpec> probes;
  std::string runs = "final";           // the table with a row per training
  bool takes_rows = true;               // of trainings that were made elsewhere
  std::vector<std::string> texts = {};  // other columns that hold texts
  std::vector<DerivedTable> derived = {};
  std::vector<ClaimRow> claims = {};
  // Parts of claims whose rows do not have them.
  Claims common = {};
  std::vector<FigureSource> figures = {};
  std::vector<Advice> advice = {};
  std::optional<PaperTraining> paper = {};        // whose settings the summary compares
  std::vector<PaperSetting> paper_settings = {};  // beside those of PaperTraining
  std::function<std::string(const Results&)> notes = {};
  // Returns the options that had no effect with these settings; summaries leave them out.
  std::function<std::vector<std::string>(const Settings&)> unused_options = {};
  // Of a study without axes, which trains nothing: whether its measured values are times, and the scale
  // beside its verdicts, if it has one.
  bool timed = false;
  std::function<TrainedScale(const Settings&)> trained = {};
  std::function<std::string(const std::string&)> from_former_names = {};
};

// Returns true unless the study has no axes: all its trials are then others.
bool Trains(const Study& study);

// Throws Error naming the claim and the arm if a claim's arm is none that the axes can make, naming
// preset and option if a preset has an option that the study does not have, and for a choice that sets
// no key of `numsim train`.
Experiment MakeExperiment(Study given);

// Returns the tables of a study, with the columns of arms and seeds, in the order of the results.
std::vector<TableSpec> TablesOf(const Study& study);
// Returns the number of an axis. Throws Error with the names if the study has none of that name.
size_t NumberOf(const Study& study, const std::string& axis);
// Returns the choice of a text on an axis, with its canonical name. Throws Error with the names.
Choice ChoiceOf(const Axis& axis, const std::string& text);
// Returns the choice of a size LAYERSxWIDTH.
Choice SizeChoice(const std::string& text);
// Returns the canonical names of the values of an option of an axis, each once, the baseline first.
std::vector<std::string> ValuesOf(const Axis& axis,
                                  const Settings& settings,
                                  const std::string& option);
// Returns the values of its first option.
std::vector<std::string> ValuesOf(const Axis& axis, const Settings& settings);
// Returns the function of Study::centre: the arm that the first option of each axis names.
std::function<Arm(const Settings&)> CentreOf(const std::vector<Axis>& axes);
// Returns the centre, then the arms that differ from it in one axis by a value that another option of the
// axis lists. Throws Error for a value that is listed twice.
std::vector<Arm> ArmsAroundCentre(const Study& study, const Settings& settings);
// Returns the arm of a trial.
Arm ArmOf(const Study& study, const Trial& trial);
// Returns the cells that identify the rows of a training: of its arm, then the seed.
Row KeyOf(const Study& study, const TrainConfig& config, const Arm& arm, uint64_t seed);
// Returns the arms that a trial trains.
std::vector<Arm> TrainedArms(const Study& study, const Settings& settings, const Arm& trial);
// Returns all combinations of the values of the axes.
std::vector<Arm> AllArms(const Study& study, const Settings& settings);
// Returns the configuration of a trial. Throws Error naming the option that sets a wrong value.
TrainConfig ConfigOf(const Study& study, const Settings& settings, const Arm& arm, uint64_t seed);
// Returns the scale of the largest training of these arms, beside the paper's; without arms, of the first
// that the study trains, which is its centre.
TrainedScale TrainedScaleOf(const Study& study,
                            const Settings& settings,
                            const std::vector<Arm>& arms);
// Returns the text of an arm by a template with axes in braces.
std::string ArmText(const Study& study, const Arm& arm, const std::string& pattern);

}  // namespace numsim::experiments::study
