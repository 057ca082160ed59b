#include "experiments/study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "experiments/runner/option_names.h"
#include "experiments/runner/settings.h"
#include "experiments/runner/training_of_row.h"
#include "experiments/study/assemble.h"
#include "experiments/study/cell_kinds.h"
#include "experiments/study/check_study.h"
#include "experiments/study/fork.h"
#include "experiments/study/name_list.h"
#include "experiments/study/study_rates.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::study {
namespace {

using Shared = std::shared_ptr<const Study>;

// ---- options

// Returns the values of a preset by option, those of the first included.
std::map<std::string, std::string> ValuesOfPreset(const Study& study, const StudyPreset& preset) {
  std::map<std::string, std::string> values;
  if (&preset != &study.presets.front()) {
    const auto on = std::ranges::find(study.presets, preset.on, &StudyPreset::name);
    values = ValuesOfPreset(study, on == study.presets.end() ? study.presets.front() : *on);
  }
  for (const auto& [key, value] : preset.values) {
    values[OptionOf(study, key).name] = value;
  }
  return values;
}

// Fills in the value of an option under a preset.
void SetValue(const std::string& preset, const std::string& value, Option& option) {
  const bool same = value == option.quick;
  if (preset == "small" || preset == "demo") {
    NUMSIM_CHECK(same || !value.empty(), "{}: --{}", preset, option.name);
    (preset == "small" ? option.small : option.demo) = same ? "" : value;
  } else if (preset == "paper") {
    option.paper = value;
  } else if (preset != "quick") {
    option.others[preset] = value;
  }
}

Option MakeOption(const Study& study, const OptionRow& row) {
  Option option;
  option.name = row.name;
  const auto before = std::ranges::find(study.before, row.name, &Texts::value_type::first);
  if (before != study.before.end()) option.before = before->second;
  const auto help = std::ranges::find(study.help, row.name, &Texts::value_type::first);
  option.help = help != study.help.end() ? help->second
                : row.setting == nullptr ? row.axis->help
                                         : row.setting->help;
  if (row.setting == nullptr) return option;
  option.part_of = row.setting->part_of;
  option.at_most = row.setting->at_most;
  option.cuda = row.setting->cuda;
  if (before == study.before.end()) option.before = row.setting->before;
  return option;
}

std::vector<Option> MakeOptions(const Study& study) {
  std::vector<Option> options;
  const auto first = ValuesOfPreset(study, study.presets.front());
  for (const OptionRow& row : OptionsOf(study)) {
    Option& option = options.emplace_back(MakeOption(study, row));
    option.quick = option.paper = first.at(option.name);
  }
  for (const StudyPreset& preset : study.presets) {
    const auto values = ValuesOfPreset(study, preset);
    if (values.size() != options.size()) {
      throw Error::Format("{}: preset {}: has other options than {}",
                          study.name,
                          preset.name,
                          study.presets.front().name);
    }
    for (Option& option : options) SetValue(preset.name, values.at(option.name), option);
  }
  for (Option& option : options) {
    std::erase_if(option.others, [&](const auto& other) { return other.second == option.paper; });
  }
  const auto of_axis = [&](const Option& option) {
    return std::ranges::any_of(study.axes, [&](const Axis& axis) {
      return std::ranges::count(axis.options, option.name) > 0;
    });
  };
  std::stable_partition(
      options.begin(), options.end(), of_axis);  // what a user is likely to look for
  if (study.forks_from) options.push_back(ForkOption());
  if (study.rates) options.push_back(RatesOption());
  if (Trains(study)) options.push_back(KeysOption());
  return options;
}

// ---- trials

bool IsBranched(const Study& study, const Settings& settings, const Arm& trial) {
  return study.branches.arms && !study.branches.arms(settings, trial).empty();
}

// Checks configurations with their data, which are opened once.
class Checker {
 public:
  void Check(const Assembled& assembled) {
    try {
      CheckTrainConfig(assembled.config);
      TrainConfig fitted = assembled.config;
      const std::shared_ptr<const DataSource>& data = Data(fitted);
      FitToData(fitted, data->shape());
      data->CheckBatch(fitted.train.batch, fitted.model.context);
      // The constructor checks that the tensor of stress.point exists.
      // It also makes the models on both sides of a fork.
      const bool forks = fitted.fork.steps > 0;
      if (forks || !fitted.stress.point.empty()) Trainer(assembled.config, data);
    } catch (const KeyError& error) {
      throw assembled.About(error);
    }
  }

 private:
  const std::shared_ptr<const DataSource>& Data(const TrainConfig& config) {
    std::string text;
    for (const ConfigKey& key : ConfigKeys(config)) {
      if (key.name.starts_with("data.")) text += key.name + "=" + key.value + "\n";
    }
    std::shared_ptr<const DataSource>& data = data_[text];
    if (data == nullptr) data = OpenData(config.data);
    return data;
  }

  std::map<std::string, std::shared_ptr<const DataSource>> data_;
};

std::vector<Arm> ArmsOf(const Study& study, const Settings& settings) {
  return study.arms ? study.arms(study, settings) : AllArms(study, settings);
}

std::vector<Trial> TrialsOf(const Study& study, const Settings& settings) {
  CheckSettings(study, settings);
  Checker checker;
  std::vector<Trial> trials;
  if (study.others.list) trials = study.others.list(settings);
  if (!Trains(study)) return trials;
  for (const Arm& arm : ArmsOf(study, settings)) {
    Assembled assembled;
    for (const Arm& trained : TrainedArms(study, settings, arm)) {
      assembled = Assemble(study, settings, trained, settings.seed);
      checker.Check(assembled);
    }
    std::map<std::string, std::string> parameters;
    for (size_t i = 0; i < arm.size(); ++i) parameters[study.axes[i].name] = arm[i];
    for (int i = 0; i < settings.seeds; ++i) {
      const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
      trials.push_back({.label = fmt::format("{} seed={}", ArmText(study, arm, study.label), seed),
                        .seed = seed,
                        .parameters = parameters,
                        .cost = study.cost ? study.cost(assembled.config) : 1,
                        .arm = ArmText(study, arm, study.arm_text)});
    }
  }
  if (study.seeds_first) std::ranges::stable_sort(trials, {}, &Trial::seed);
  return trials;
}

bool IsTraining(const Study& study, const Trial& trial) {
  return Trains(study) && trial.parameters.contains(study.axes.front().name);
}

// Returns the number of validations at doublings of a training; 0 if the study does not measure them.
int64_t ValidationsOf(const Study& study, const Settings& settings) {
  const bool measured = std::ranges::any_of(study.probes, [](const ProbeSpec& probe) {
    return std::ranges::count(probe.tables, "validations", &MeasuredTable::name) > 0;
  });
  return measured ? settings.GetInteger("validations", 1, kMostValidations) : 0;
}

std::vector<TrainingOfRow> TrainingsOf(const Study& study,
                                       const Settings& settings,
                                       const Trial& trial) {
  if (!IsTraining(study, trial)) return {};
  std::vector<TrainingOfRow> trainings;
  for (const Arm& arm : TrainedArms(study, settings, ArmOf(study, trial))) {
    const TrainConfig config = ConfigOf(study, settings, arm, trial.seed);
    trainings.push_back(
        {KeyOf(study, config, arm, trial.seed), config, ValidationsOf(study, settings)});
  }
  return trainings;
}

// Returns the arms of all trials.
std::vector<Arm> AllTrained(const Study& study, const Settings& settings) {
  std::vector<Arm> all;
  for (const Arm& arm : ArmsOf(study, settings)) {
    const std::vector<Arm> trained = TrainedArms(study, settings, arm);
    all.insert(all.end(), trained.begin(), trained.end());
  }
  return all;
}

// Returns the configurations of arms, of the first seed.
std::vector<TrainConfig> ConfigsOf(const Study& study,
                                   const Settings& settings,
                                   const std::vector<Arm>& arms) {
  std::vector<TrainConfig> configs;
  configs.reserve(arms.size());
  for (const Arm& arm : arms) configs.push_back(ConfigOf(study, settings, arm, settings.seed));
  return configs;
}

// Adds what compares a run's trainings with those of a paper.
void AddPaper(const Shared& study, Experiment& experiment) {
  experiment.trained = [study](const Settings& settings) {
    return TrainedScaleOf(*study, settings, AllTrained(*study, settings));
  };
  if (!study->paper) return;
  experiment.training_settings = SettingsOf(*study->paper);
  experiment.deviations = [study](const Settings& settings) {
    return DeviationsOf(*study->paper, ConfigsOf(*study, settings, AllTrained(*study, settings)));
  };
}

// ---- tables and figures

// Returns the columns that identify an arm.
std::vector<Column> ArmColumns(const Study& study) {
  std::vector<Column> columns;
  for (const Axis& axis : study.axes) {
    if (!axis.cells) columns.push_back({axis.name, axis.meaning});
    columns = Joined(std::move(columns), axis.columns);
  }
  return columns;
}

void Derive(const Study& study, const Settings& settings, Tables& tables) {
  for (const DerivedTable& derived : study.derived) {
    std::vector<Row> rows = derived.rows({study, settings, tables});
    CheckCells(derived.name, derived.columns, rows);
    tables.at(derived.name).rows = std::move(rows);
  }
}

// Returns the figures that have panels; successive ones of the same name are one.
std::vector<Figure> FiguresOf(const Study& study, const Settings& settings, const Tables& tables) {
  std::vector<Figure> figures;
  for (const FigureSource& draw : study.figures) {
    for (Figure& figure : draw({study, settings, tables})) {
      if (figure.panels.empty()) continue;
      if (figures.empty() || figures.back().name != figure.name) {
        figures.push_back(std::move(figure));
        continue;
      }
      for (Panel& panel : figure.panels) figures.back().panels.push_back(std::move(panel));
    }
  }
  return figures;
}

RowsOfTrainings RowsOf(const Shared& study) {
  RowsOfTrainings rows;
  // Other trials would be missing in any rows.
  if (study->takes_rows && !study->others.run) rows.table = study->runs;
  for (const Column& column : ArmColumns(*study)) rows.key.push_back(column.name);
  rows.key.emplace_back("seed");
  rows.texts = study->texts;
  rows.whole = [study](const Settings& settings, const Trial& trial) {
    return !IsBranched(*study, settings, ArmOf(*study, trial));
  };
  rows.trainings = [study](const Settings& settings, const Trial& trial) {
    return TrainingsOf(*study, settings, trial);
  };
  return rows;
}

// Returns the joined choices in the order of the axis.
Choice JoinedChoice(const Axis& axis, const std::string& text) {
  std::vector<bool> has(axis.choices.size());
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('+', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    const auto choice = std::ranges::find(axis.choices, name, &Choice::name);
    if (choice == axis.choices.end() || choice->alone || choice->hidden) {
      throw Error::Format("'{}' in '{}' is none of those that may be joined", name, text);
    }
    has[static_cast<size_t>(choice - axis.choices.begin())] = true;
    begin = end + 1;
  }
  Choice joined;
  for (size_t i = 0; i < has.size(); ++i) {
    if (!has[i]) continue;
    joined.name += (joined.name.empty() ? "" : "+") + axis.choices[i].name;
    joined.keys.insert(joined.keys.end(), axis.choices[i].keys.begin(), axis.choices[i].keys.end());
  }
  return joined;
}

// Returns the canonical name of a value of an option.
std::string NameOf(const Axis& axis, const std::string& option, const std::string& text) {
  try {
    const Choice choice = ChoiceOf(axis, text);
    if (choice.hidden) throw Error("is trained by itself where it is needed");
    return choice.name;
  } catch (const Error& error) {
    throw Error::Format("--{} '{}': {}", option, text, error.what());
  }
}

}  // namespace

std::vector<TableSpec> TablesOf(const Study& study) {
  const std::vector<Column> arm = ArmColumns(study);
  std::vector<Column> key = arm;
  key.push_back({"seed", "seed of weights and batches"});
  std::vector<TableSpec> tables;
  for (const MeasuredTable& table : study.others.tables) {
    tables.push_back({.name = table.name, .columns = table.columns, .timed = table.timed});
  }
  for (const ProbeSpec& probe : study.probes) {
    for (const MeasuredTable& table : probe.tables) {
      tables.push_back({.name = table.name,
                        .columns = table.of_arms ? Joined(key, table.columns) : table.columns});
    }
  }
  for (const DerivedTable& table : study.derived) {
    tables.push_back(
        {.name = table.name,
         .derived = true,
         .columns = Joined(table.of_arms ? arm : std::vector<Column>(), table.columns)});
  }
  return tables;
}

bool Trains(const Study& study) { return !study.axes.empty(); }

size_t NumberOf(const Study& study, const std::string& axis) {
  const auto found = std::ranges::find(study.axes, axis, &Axis::name);
  if (found != study.axes.end()) return static_cast<size_t>(found - study.axes.begin());
  throw NotOneOf("axis", axis, NameList(study.axes, &Axis::name));
}

Choice ChoiceOf(const Axis& axis, const std::string& text) {
  const auto choice = std::ranges::find(axis.choices, text, &Choice::name);
  if (choice != axis.choices.end()) return *choice;
  if (axis.joined && text.find('+') != text.npos) return JoinedChoice(axis, text);
  if (axis.other) return axis.other(text);
  throw NotOneOf(axis.name, text, NameList(axis.choices, &Choice::name));
}

Choice SizeChoice(const std::string& text) {
  ModelSize size;
  try {
    size = ParseSize("size", text);
  } catch (const Error&) {  // names an option; the caller names the one that has the text
    throw Error("is not LAYERSxWIDTH from 1x16 to 128x8192");
  }
  ModelConfig model;
  SetSize(size, model);
  return {Text(size),
          {fmt::format("model.layers={}", model.layers),
           fmt::format("model.width={}", model.width),
           fmt::format("model.heads={}", model.heads)}};
}

std::vector<std::string> ValuesOf(const Axis& axis,
                                  const Settings& settings,
                                  const std::string& option) {
  std::vector<std::string> values;
  if (!axis.baseline.empty()) values.push_back(axis.baseline);
  for (const std::string& text : axis.split(settings.Get(option))) {
    std::string name = NameOf(axis, option, text);
    if (std::ranges::count(values, name) == 0) values.push_back(std::move(name));
  }
  return values;
}

std::vector<std::string> ValuesOf(const Axis& axis, const Settings& settings) {
  return ValuesOf(axis, settings, axis.options.front());
}

Row KeyOf(const Study& study, const TrainConfig& config, const Arm& arm, uint64_t seed) {
  Row key;
  for (size_t i = 0; i < arm.size(); ++i) {
    const Axis& axis = study.axes[i];
    const Row cells = axis.cells ? axis.cells(config) : Row{arm[i]};
    key.insert(key.end(), cells.begin(), cells.end());
  }
  key.emplace_back(seed);
  return key;
}

std::vector<Arm> AllArms(const Study& study, const Settings& settings) {
  std::vector<Arm> arms = {Arm()};
  for (auto axis = study.axes.rbegin(); axis != study.axes.rend(); ++axis) {
    std::vector<Arm> longer;
    for (const Arm& arm : arms) {
      for (const std::string& value : ValuesOf(*axis, settings)) {
        Arm& one = longer.emplace_back(Arm{value});
        one.insert(one.end(), arm.begin(), arm.end());
      }
    }
    arms = std::move(longer);
  }
  return arms;
}

std::function<Arm(const Settings&)> CentreOf(const std::vector<Axis>& axes) {
  return [axes](const Settings& settings) {
    Arm arm;
    for (const Axis& axis : axes) {
      const std::string& option = axis.options.front();
      arm.push_back(NameOf(axis, option, settings.Get(option)));
    }
    return arm;
  };
}

std::vector<Arm> ArmsAroundCentre(const Study& study, const Settings& settings) {
  const Arm centre = study.centre(settings);
  std::vector<Arm> arms = {centre};
  for (size_t i = 0; i < study.axes.size(); ++i) {
    const Axis& axis = study.axes[i];
    for (size_t o = 1; o < axis.options.size(); ++o) {
      const std::string& option = axis.options[o];
      const std::vector<std::string> values = settings.GetListOrNone(option);
      CheckDistinct(option, values);
      for (const std::string& value : values) {
        Arm arm = centre;
        arm[i] = NameOf(axis, option, value);
        if (std::ranges::count(arms, arm) == 0) arms.push_back(std::move(arm));
      }
    }
  }
  return arms;
}

Arm ArmOf(const Study& study, const Trial& trial) {
  Arm arm;
  for (const Axis& axis : study.axes) arm.push_back(trial.parameters.at(axis.name));
  return arm;
}

std::vector<Arm> TrainedArms(const Study& study, const Settings& settings, const Arm& trial) {
  if (!IsBranched(study, settings, trial)) return {trial};
  return study.branches.arms(settings, trial);
}

TrainConfig ConfigOf(const Study& study, const Settings& settings, const Arm& arm, uint64_t seed) {
  return Assemble(study, settings, arm, seed).config;
}

TrainedScale TrainedScaleOf(const Study& study,
                            const Settings& settings,
                            const std::vector<Arm>& arms) {
  const std::vector<TrainConfig> configs = ConfigsOf(
      study,
      settings,
      arms.empty() ? TrainedArms(study, settings, ArmsOf(study, settings).front()) : arms);
  return study.paper ? TrainedScaleOf(*study.paper, configs) : experiments::TrainedScaleOf(configs);
}

std::string ArmText(const Study& study, const Arm& arm, const std::string& pattern) {
  return Fill(pattern, [&](const std::string& name) { return arm.at(NumberOf(study, name)); });
}

Experiment MakeExperiment(Study given) {
  const Shared study = std::make_shared<const Study>(std::move(given));
  Experiment experiment;
  experiment.name = study->name;
  experiment.title = study->title;
  experiment.reproduces = study->reproduces;
  experiment.description = study->description;
  experiment.options = MakeOptions(*study);
  CheckStudy(*study);
  experiment.presets.clear();
  for (const StudyPreset& preset : study->presets) {
    experiment.presets.push_back({preset.name, preset.seeds, preset.seconds});
  }
  if (!study->others.run && !study->others.tables.empty()) {
    throw Error::Format(
        "{}: tables: no trial has rows of {}", study->name, study->others.tables.front().name);
  }
  experiment.tables = TablesOf(*study);
  experiment.trials = [study](const Settings& settings) { return TrialsOf(*study, settings); };
  experiment.run = [study](const Settings& settings, const Trial& trial) {
    if (!IsTraining(*study, trial)) {
      Rows rows = study->others.run(settings, trial);
      CheckCells(study->others.tables, rows);
      return rows;
    }
    return IsBranched(*study, settings, ArmOf(*study, trial))
               ? study->branches.measure(*study, settings, trial)
               : MeasureTraining(*study, settings, trial);
  };
  experiment.timed = study->timed;
  experiment.trained = study->trained;
  if (Trains(*study)) {
    experiment.rows = RowsOf(study);
    experiment.tuning = TuningOf(study);
    AddPaper(study, experiment);
  }
  experiment.derive = [study](const Settings& settings, Tables& tables) {
    Derive(*study, settings, tables);
  };
  experiment.figures = [study](const Settings& settings, const Tables& tables) {
    return FiguresOf(*study, settings, tables);
  };
  experiment.claims = ClaimsOf(study);
  experiment.advice = study->advice;
  experiment.paper_settings = study->paper_settings;
  experiment.unused_options = study->unused_options;
  experiment.scale = [study](const Settings& settings, const Tables& tables) {
    std::string scale = study->scale({*study, settings, tables});
    const uint64_t fork = ForkAfter(settings);
    if (fork == 0) return scale;
    return fmt::format("{}, arms forked after {} steps of a baseline", scale, fork);
  };
  if (study->notes) {
    experiment.notes = [study](const Settings& settings, const Tables& tables) {
      return study->notes({*study, settings, tables});
    };
  }
  experiment.from_former_names = study->from_former_names;
  return experiment;
}

}  // namespace numsim::experiments::study
