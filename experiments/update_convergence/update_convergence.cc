// Definition of the experiment `update-convergence`: options, trials.
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

constexpr std::string_view kDescription =
    "Trains weights that are stored in a small format under each update rule, and compares the\n"
    "loss of the stored weights with the same training in float32 (format fp32, rule naive):\n"
    "same start before rounding, same minibatches or noise, same optimiser. A rule's gap is its\n"
    "loss minus that of fp32, as a share of the progress of fp32, which is its loss at the start\n"
    "minus its loss at the end. A rule stays within 1 % if its gap is at most 0.01 at half-time\n"
    "and at the end. Because a small format cannot hold every optimum, each rule is also compared\n"
    "with master-fp32 in its own format, in the same unit.\n"
    "Problems. quadratic: diagonal, with 16384 weights (--size) that start with standard\n"
    "deviation 0.02 (--weight-scale), curvatures spread over a factor of 10^4 (--condition), and\n"
    "gradient noise as large as the gradient at the start (--noise). The optimum is --reach times\n"
    "as far away as --steps steps of the learning rate lead, so that each learning rate can get\n"
    "there; the loss is 1 at the start. logistic: regression on --images images of --input (a\n"
    "folder of idx files, e.g. Fashion-MNIST; empty: generated images), with --batch images per\n"
    "step; the loss is the cross-entropy of all these images in nats. Gradients are scaled by a\n"
    "constant so that their root mean square is 1 at the start, so lr is the size of a step per\n"
    "element in both problems.\n"
    "Optimisers. momentum: u = -m, m = beta1 m + (1 - beta1) g. adam: u = -m^/(sqrt(v^) +\n"
    "epsilon) with bias correction. Their state is float32 under every rule.\n"
    "A rule is left out for formats that it does not serve (split-master only serves bf16), and\n"
    "kahan:FORMAT is left out where it is the same as kahan. A run ends as diverged when its loss\n"
    "exceeds 10^6 times that at the start, and as nonfinite when it meets a NaN or infinity; its\n"
    "loss is infinite from then on.";

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
  settings.GetInteger("size", 1, 1 << 24);
  settings.GetDouble("condition", 1, 1e8);
  settings.GetDouble("noise", 0, 1e6);
  settings.GetDouble("reach", 1e-6, 1e6);
  settings.GetDouble("weight-scale", 0, 1e4);
  settings.GetDouble("beta1", 0, 0.999999);
  settings.GetDouble("beta2", 0, 0.999999);
  settings.GetDouble("epsilon", 1e-30, 1);
  settings.GetInteger("batch", 1, 1 << 16);
  settings.GetInteger("images", 1, 1 << 20);
  settings.GetInteger("image-size", 2, 256);
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

// Returns every kind of rule, and Kahan with a compensation in bf16 for formats of 8 bits.
std::string AllRules() {
  std::string names;
  for (const UpdateKind kind : UpdateKinds()) names += std::string(ToString(kind)) + ",";
  return names + "kahan:bf16";
}

std::vector<Option> Options() {
  const std::string rules = AllRules();
  return {
      {"problems",
       "quadratic,logistic",
       "quadratic,logistic",
       "problems to train, separated by commas: quadratic, logistic"},
      {"optimisers",
       "momentum,adam",
       "momentum,adam",
       "optimisers that compute the updates, separated by commas: momentum, adam"},
      {"formats",
       "e4m3fn,e5m2,fp16,bf16",
       "e4m3fn,e5m2,fp16,bf16",
       "formats of the weights, named or custom, separated by commas"},
      {"rules", rules, rules, "update rules, separated by commas, as in numsim update --rule"},
      {"lr",
       "1e-2,1e-3,1e-4,1e-5",
       "1e-2,1e-3,1e-4,1e-5",
       "learning rates, separated by commas: 1e-12 to 1"},
      {"steps", "240", "1920", "training steps: 2 to 10000000"},
      {.name = "records",
       .quick = "24",
       .paper = "48",
       .help = "number of losses to record, without the start: 2 to --steps",
       .at_most = "steps"},
      {"size", "16384", "16384", "quadratic: number of weights, 1 to 16777216"},
      {"condition", "1e4", "1e4", "quadratic: largest over smallest curvature, 1 to 1e8"},
      {"noise", "1", "1", "quadratic: noise relative to the gradient at the start, 0 to 1e6"},
      {"reach",
       "0.5",
       "0.5",
       "quadratic: distance to the optimum in units of lr times steps, 1e-6 to 1e6"},
      {"weight-scale", "0.02", "0.02", "standard deviation of the weights at the start"},
      {"beta1", "0.9", "0.9", "decay of the mean gradient, for both optimisers: 0 to below 1"},
      {"beta2", "0.99", "0.99", "adam: decay of the mean square, 0 to below 1"},
      {"epsilon", "1e-8", "1e-8", "adam: number added to the square root, 1e-30 to 1"},
      {"batch", "32", "64", "logistic: images per step, 1 to 65536"},
      {"images", "1000", "4000", "logistic: number of training images, the first of --input"},
      {"image-size",
       "14",
       "28",
       "logistic: number of rows, and of columns, of generated images: 2 to 256"},
      {"input", "", "", "logistic: folder of idx files of images; empty: generated images"},
  };
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
  Experiment experiment;
  experiment.name = "update-convergence";
  experiment.title = "training under the update rules: loss, cost, and which fall behind float32";
  experiment.reproduces = "[Seed003] Empirics, Pretraining, and Conclusion";
  experiment.description = std::string(kDescription);
  experiment.options = Options();
  experiment.presets = {{"quick", 1, 15}, {"paper", 1}};
  experiment.tables = TableSpecs();
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.claims = Claims();
  experiment.paper_settings = PaperSettings();
  experiment.scale = TrainingScaleText;
  experiment.trained = Trained;
  experiment.notes = Notes;
  return experiment;
}

}  // namespace numsim::experiments
