// Definition of the experiment `update-convergence`: what study.toml does not say, and trials.
#include "experiments/update_convergence/update_convergence.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "experiments/runner/settings.h"
#include "experiments/shared/training.h"
#include "numsim/base/error.h"
#include "numsim/base/keyword.h"

namespace numsim::experiments {
namespace update_convergence {
namespace {

constexpr Keyword<Optimiser> kOptimisers[] = {{"momentum", Optimiser::kMomentum},
                                              {"adam", Optimiser::kAdam}};
constexpr Keyword<ProblemKind> kProblems[] = {{"quadratic", ProblemKind::kQuadratic},
                                              {"logistic", ProblemKind::kLogistic}};
constexpr Keyword<RunStatus> kStatuses[] = {{"ok", RunStatus::kOk},
                                            {"diverged", RunStatus::kDiverged},
                                            {"nonfinite", RunStatus::kNonfinite}};

constexpr size_t kGeneratedClasses = 10;

void ParseRate(const std::string& text, float& rate) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, rate);
  if (read.ec != std::errc() || read.ptr != end || !(rate >= 1e-12f && rate <= 1)) {
    throw Error::Format("--lr \"{}\": expected learning rates from 1e-12 to 1", text);
  }
}

// Returns the learning rates as shortest decimals, however the option writes them.
std::vector<std::string> RateTexts(const Settings& settings) {
  std::vector<std::string> texts;
  for (const std::string& text : settings.GetList("lr")) {
    float rate = 0;
    ParseRate(text, rate);
    texts.push_back(fmt::format("{}", rate));
  }
  CheckDistinct("lr", texts);
  return texts;
}

// Throws Error if the optimum of the quadratic is too close to the start for float32.
void CheckReach(const Settings& settings) {
  const double scale = settings.GetDouble("weight-scale", 0, 1e4);
  const double reach = settings.GetDouble("reach", 1e-6, 1e6);
  for (const std::string& text : RateTexts(settings)) {
    float rate = 0;
    ParseRate(text, rate);
    const double distance =
        reach * static_cast<double>(rate) * static_cast<double>(RecordedSteps(settings).back());
    if (distance < 1e-5 * scale) {
      throw Error::Format(
          "--reach {}, --lr {}, --steps: the optimum is {:.2g} away from weights of --weight-scale "
          "{}, too close for float32",
          reach,
          text,
          distance,
          scale);
    }
  }
}

void CheckOptions(const Settings& settings) {
  for (const char* const name : {"problems", "optimisers"}) {
    CheckDistinct(name, settings.GetList(name));
  }
  RecordedSteps(settings);
}

// Returns the work of one step of all runs of a trial, in elements.
double Cost(const Settings& settings, ProblemKind problem, size_t rules) {
  const auto gradient = problem == ProblemKind::kLogistic
                            ? static_cast<double>(settings.GetInteger("batch", 1, 1 << 16))
                            : 2.0;
  const double weights =
      problem == ProblemKind::kLogistic
          ? kGeneratedClasses *
                std::pow(static_cast<double>(settings.GetInteger("image-size", 2, 256)), 2)
          : static_cast<double>(settings.GetInteger("size", 1, 1 << 24));
  return weights * (gradient * static_cast<double>(rules + 1) + 10 * static_cast<double>(rules));
}

struct Optimised {
  std::string problem, optimiser, format, rate;
  double cost;
};

void AddSeeds(const Settings& settings, const Optimised& what, std::vector<Trial>& trials) {
  for (int i = 0; i < settings.seeds; ++i) {
    const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
    trials.push_back(
        {.label = fmt::format(
             "{} {} {} lr={} seed={}", what.problem, what.optimiser, what.format, what.rate, seed),
         .seed = seed,
         .parameters = {{"problem", what.problem},
                        {"optimiser", what.optimiser},
                        {"format", what.format},
                        {"lr", what.rate}},
         .cost = what.cost});
  }
}

// Returns the trials. Each trains under all rules of a format at one learning rate; at each rate
// the fp32 baseline comes before the other formats.
std::vector<Trial> Trials(const Settings& settings) {
  CheckOptions(settings);
  const std::vector<Format> formats = Formats(settings);
  std::vector<Trial> trials;
  for (const std::string& problem : settings.GetList("problems")) {
    const ProblemKind kind = ParseProblemKind(problem);
    if (kind == ProblemKind::kLogistic) {
      ReadImages(settings, settings.seed);
    } else {
      CheckReach(settings);
    }
    for (const std::string& optimiser : settings.GetList("optimisers")) {
      ParseOptimiser(optimiser);
      for (const std::string& rate : RateTexts(settings)) {
        AddSeeds(settings,
                 {problem, optimiser, std::string(kBaselineFormat), rate, Cost(settings, kind, 0)},
                 trials);
        for (const Format& format : formats) {
          const double cost = Cost(settings, kind, RulesFor(settings, format).size());
          AddSeeds(settings, {problem, optimiser, format.name, rate, cost}, trials);
        }
      }
    }
  }
  return trials;
}

// Returns the scale of the larger problem beside the training of [Seed003], "Pretraining". A step of the
// quadratic sees one gradient, of the logistic regression a batch of images.
TrainedScale Trained(const Settings& settings) {
  const std::vector<std::string> problems = settings.GetList("problems");
  const auto has = [&](const char* name) { return std::ranges::count(problems, name) > 0; };
  const double side = settings.GetDouble("image-size", 2, 256);
  const double steps = settings.GetDouble("steps", 2, 1e7);
  TrainedScale scale{.paper_parameters = 200e6, .paper_tokens = 60e6};
  if (has("logistic")) {
    scale.parameters = static_cast<double>(kGeneratedClasses) * (side * side + 1);
    scale.tokens = steps * settings.GetDouble("batch", 1, 65536);
  } else if (has("quadratic")) {
    scale.parameters = settings.GetDouble("size", 1, 16777216);
    scale.tokens = steps;
  }
  return scale;
}

}  // namespace

std::string_view ToString(Optimiser optimiser) { return KeywordToString(kOptimisers, optimiser); }
Optimiser ParseOptimiser(std::string_view text) {
  return ParseKeyword(kOptimisers, "optimiser", text);
}

std::string_view ToString(ProblemKind kind) { return KeywordToString(kProblems, kind); }
ProblemKind ParseProblemKind(std::string_view text) {
  return ParseKeyword(kProblems, "problem", text);
}

std::string_view ToString(RunStatus status) { return KeywordToString(kStatuses, status); }

std::vector<UpdateRule> RulesFor(const Settings& settings, const Format& format) {
  std::vector<UpdateRule> rules;
  bool kahan = false;  // true once kahan with a compensation in the format itself was seen
  for (const UpdateRule& rule : ParseUpdateRuleList(settings.Get("rules"))) {
    if (rule.kind == UpdateKind::kKahan) {
      const bool own = !rule.compensation || rule.compensation->spec == format.spec;
      if (own && kahan) continue;  // kahan:FORMAT is the same rule as kahan
      kahan = kahan || own;
    }
    if (Serves(rule, format)) rules.push_back(rule);
  }
  return rules;
}

std::vector<Format> Formats(const Settings& settings) {
  std::vector<std::string> rule_names, format_names;
  for (const UpdateRule& rule : ParseUpdateRuleList(settings.Get("rules"))) {
    rule_names.push_back(ToString(rule));
  }
  CheckDistinct("rules", rule_names);
  std::vector<Format> formats = ParseFormatList(settings.Get("formats"));
  for (const Format& format : formats) {
    if (!format.spec.IsSigned()) {
      throw Error::Format("--formats: {} is unsigned, weights need a sign", format.name);
    }
    if (format.name == kBaselineFormat) {
      throw Error::Format("--formats: fp32 is the baseline, which is always included");
    }
    if (RulesFor(settings, format).empty()) {
      throw Error::Format(
          "--rules \"{}\": no rule serves the format {}", settings.Get("rules"), format.name);
    }
    format_names.push_back(format.name);
  }
  CheckDistinct("formats", format_names);
  return formats;
}

double BytesPerWeight(const UpdateRule& rule, const FormatSpec& format) {
  return format.Bits() / 8.0 + StateBytesPerWeight(rule, format);
}

std::vector<uint64_t> RecordedSteps(const Settings& settings) {
  const auto steps = static_cast<uint64_t>(settings.GetInteger("steps", 2, 10000000));
  const auto records =
      static_cast<uint64_t>(settings.GetInteger("records", 2, static_cast<int64_t>(steps)));
  std::vector<uint64_t> recorded;
  for (uint64_t i = 0; i <= records; ++i) {
    const uint64_t step = i * steps / records;
    // Insert half-time if no part ends there.
    if (step > steps / 2 && recorded.back() < steps / 2) recorded.push_back(steps / 2);
    recorded.push_back(step);
  }
  return recorded;
}

ImageSet ReadImages(const Settings& settings, uint64_t seed) {
  const auto count = static_cast<size_t>(settings.GetInteger("images", 1, 1 << 20));
  const auto size = static_cast<size_t>(settings.GetInteger("image-size", 2, 256));
  const std::string& folder = settings.Get("input");
  if (folder.empty()) {
    return GenerateImages({seed, kStreamImages}, count, size, size, kGeneratedClasses);
  }
  ImageSet images = ReadIdxImages(folder, true);
  if (images.count < count) {
    throw Error::Format("--images {}: {} holds only {}", count, folder, images.count);
  }
  images.count = count;
  images.pixels.resize(count * images.rows * images.cols);
  images.labels.resize(count);
  return images;
}

std::unique_ptr<TrainingProblem> MakeProblem(const Settings& settings, const Trial& trial) {
  const double scale = settings.GetDouble("weight-scale", 0, 1e4);
  if (ParseProblemKind(trial.parameters.at("problem")) == ProblemKind::kLogistic) {
    LogisticOptions options;
    options.batch = static_cast<size_t>(settings.GetInteger("batch", 1, 1 << 16));
    options.weight_scale = scale;
    options.seed = trial.seed;
    return MakeLogistic(ReadImages(settings, trial.seed), options);
  }
  QuadraticOptions options;
  options.size = static_cast<size_t>(settings.GetInteger("size", 1, 1 << 24));
  options.condition = settings.GetDouble("condition", 1, 1e8);
  options.noise = settings.GetDouble("noise", 0, 1e6);
  options.reach = settings.GetDouble("reach", 1e-6, 1e6);
  options.weight_scale = scale;
  options.learning_rate = static_cast<double>(LearningRate(trial));
  options.steps = RecordedSteps(settings).back();
  options.seed = trial.seed;
  return MakeQuadratic(options);
}

float LearningRate(const Trial& trial) {
  float rate = 0;
  ParseRate(trial.parameters.at("lr"), rate);
  return rate;
}

}  // namespace update_convergence

Experiment UpdateConvergence() {
  using namespace update_convergence;
  study::Functions functions{
      .values = {{"training",
                  [](const Settings& settings) { return TrainingScaleText(settings); }}},
      .tables = {{"runs",
                  [](const study::Results& results) {
                    return RunRows(results.tables.at("losses"));
                  }},
                 {"final", FinalRows},
                 {"cheapest", CheapestRows}},
      .rows = {{"low-rates", LowRates}},
      .several_figures = {{"gaps-and-losses", Figures}},
      .measurements = {{"trainings", {Trials, Measure}}},
      .unfit = {{"no-low-rate", NoLowRate}},
      .bounds = {{"short-trainings", HeedShortTrainings}}};
  study::Study study = study::ReadStudy(
      study::StudyText("update_convergence"), "update_convergence/study.toml", functions);
  study.trained = Trained;
  study.notes = Notes;
  return study::MakeExperiment(std::move(study));
}

}  // namespace numsim::experiments
