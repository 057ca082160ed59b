// `numsim update`: one step of a rule that moves weights kept in a small format.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "apps/code_array.h"
#include "apps/command.h"
#include "apps/update_report.h"
#include "apps/update_state_file.h"
#include "numsim/io/array.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/npy.h"
#include "numsim/io/tensor_file.h"

namespace numsim::apps {
namespace {

struct Options {
  std::string weights, update, out, format, rule, learning_rate;
  std::string weight_decay = "0";
  std::string solver = "selection";
  std::string state_in, state_out, groups;
  uint64_t seed = 0, step = 0;
  double tolerance = UpdateRule().tolerance;
  int iterations = UpdateRule().iterations;
  bool round_weights = false, codes = false, json = false;
};

// The float32 next to the number that `text` is.
float ParseFloat(const char* option, const std::string& text, bool negative_too) {
  const size_t blanks = std::min(text.find_first_not_of(' '), text.size());
  const char* const end = text.data() + text.size();
  float value = 0;
  const auto [stop, status] = std::from_chars(text.data() + blanks, end, value);
  const bool good = status == std::errc() && stop == end && std::isfinite(value) &&
                    (negative_too || !(value < 0));
  if (good) return value;
  throw Error::Format("{} '{}' is not a finite float32{}",
                      option,
                      text.substr(blanks),
                      negative_too ? "" : " of at least 0");
}

MatchSolver ParseSolver(const std::string& text) {
  return text == "bisection" ? MatchSolver::kBisection : MatchSolver::kSelection;
}

UpdateRule Rule(const Options& options, const Format& format) {
  UpdateRule rule = ParseUpdateRule(options.rule);
  rule.solver = ParseSolver(options.solver);
  rule.tolerance = options.tolerance;
  rule.iterations = options.iterations;
  CheckUpdateRule(rule, format);
  return rule;
}

// Output files must not replace each other, and a state must go somewhere.
void CheckFiles(const Options& options, const UpdateRule& rule, const Format& format) {
  const bool has_state = StateBytesPerWeight(rule, format.spec) > 0;
  if (!has_state && !options.state_in.empty()) {
    throw Error::Format("--state-in: {} keeps no state", ToString(rule));
  }
  if (!has_state && !options.state_out.empty()) {
    throw Error::Format("--state-out: {} keeps no state", ToString(rule));
  }
  if (has_state && options.state_out.empty()) {
    throw Error::Format("--state-out is missing: {} keeps a state beside the weights",
                        ToString(rule));
  }
  const auto same = [](const std::string& a, const std::string& b) {
    using std::filesystem::absolute;
    return !a.empty() && !b.empty() &&
           absolute(a).lexically_normal() == absolute(b).lexically_normal();
  };
  if (same(options.state_out, options.out)) throw Error("--state-out and OUT are the same file");
  if (same(options.groups, options.out)) throw Error("--groups and OUT are the same file");
  if (same(options.groups, options.state_out)) {
    throw Error("--groups and --state-out are the same file");
  }
}

// Weights as they came, and as float32.
struct Weights {
  Array array;
  bool are_values = false;
  std::vector<float> values;
};

Weights ReadWeights(const Options& options, const Format& format) {
  Weights weights;
  weights.array = ReadNpy(options.weights);
  weights.are_values = HoldsValues(weights.array, format, options.weights);
  if (weights.are_values) {
    weights.values = ToFloat32(weights.array, options.weights);
  } else if (options.round_weights) {
    throw Error::Format("--round-weights: {} holds codes", options.weights);
  } else {
    weights.values =
        ToFloat32(DecodedArray(weights.array, format, options.weights), options.weights);
  }
  if (!options.round_weights) {
    CheckValues(weights.values,
                format,
                options.weights,
                weights.are_values ? " (--round-weights rounds them first)" : "");
  }
  return weights;
}

std::vector<float> ReadUpdate(const Options& options, const Array& weights) {
  const Array update = ReadNpy(options.update);
  if (update.shape != weights.shape) {
    throw Error::Format("{} has the shape {}, {} has {}",
                        options.update,
                        ShapeToString(update.shape),
                        options.weights,
                        ShapeToString(weights.shape));
  }
  return ToFloat32(update, options.update);
}

// Codes of the new values. A weight that did not move keeps its code, a NaN its payload.
Array Codes(const Weights& weights, const Format& format, const std::vector<float>& moved) {
  const EncodePlan plan =
      MakeEncodePlan(format.spec, {RoundingMode::kNearestEven}, Overflow::kNonsaturate);
  Array codes = ArrayLike(weights.array, CodeType(format.spec));
  WithCodes(codes, [&](auto out) {
    using Code = typename decltype(out)::element_type;
    Encode(plan, std::span(moved), out);
    if (weights.are_values) return;
    const Code* const before = weights.array.Data<Code>();
    for (size_t i = 0; i < out.size(); ++i) {
      const bool same =
          std::bit_cast<uint32_t>(moved[i]) == std::bit_cast<uint32_t>(weights.values[i]);
      if (same) out[i] = before[i];
    }
  });
  return codes;
}

Array Values(const Array& like, const std::vector<float>& values) {
  Array array = ArrayLike(like, ElementType::kF32);
  std::copy(values.begin(), values.end(), array.Data<float>());
  return array;
}

// All outputs or none, as far as the file system lets them: each is complete under a temporary
// name before the first gets its own.
void WriteOutputs(const Options& options,
                  const Array& out,
                  const std::string& state,
                  const std::vector<UpdateOutcome>& groups) {
  std::optional<AtomicFile> state_file, groups_file;
  if (!options.state_out.empty()) {
    state_file.emplace(options.state_out).Write(state);
  }
  if (!options.groups.empty()) {
    groups_file.emplace(options.groups).Write(ToCsv(OutcomeTable(groups)));
  }
  WriteNpy(options.out, out);
  if (state_file) state_file->Commit();
  if (groups_file) groups_file->Commit();
}

int Update(const Options& options) {
  WeightUpdate step;
  step.learning_rate = ParseFloat("--lr", options.learning_rate, false);
  step.weight_decay = ParseFloat("--weight-decay", options.weight_decay, true);
  const Format format = ParseFormat(options.format);
  const UpdateRule rule = Rule(options, format);
  CheckFiles(options, rule, format);
  Weights weights = ReadWeights(options, format);
  const std::vector<float> update = ReadUpdate(options, weights.array);
  const MatrixShape shape = AsMatrix(weights.array.shape);
  step.format = format.spec;
  step.rows = shape.rows;
  step.cols = shape.cols;

  const UpdateStateOwner owner{ToString(rule), ToString(format.spec), weights.array.shape};
  UpdateState state =
      StartUpdates(rule, format.spec, shape.rows, shape.cols, weights.values, weights.values);
  if (!options.state_in.empty()) state = ReadUpdateState(options.state_in, owner, state);
  step.weights = weights.values;
  step.update = update;
  std::vector<float> moved(weights.values.size());
  std::vector<UpdateOutcome> groups;
  const UpdateOutcome outcome =
      ApplyUpdate(rule, step, {options.seed, options.step}, state, moved, &groups);

  const bool codes = !weights.are_values || options.codes;
  const Array out = codes ? Codes(weights, format, moved) : Values(weights.array, moved);
  WriteOutputs(options, out, UpdateStateFile(state, owner), groups);
  fmt::print("{}", options.json ? OutcomeJson(outcome) : OutcomeText(outcome));
  return outcome.status == UpdateStatus::kNonfinite ? 1 : 0;
}

std::string RuleHelp() {
  std::string kinds;
  for (const UpdateKind kind : UpdateKinds()) {
    kinds += (kinds.empty() ? "" : ", ") + std::string(ToString(kind));
  }
  return "KIND[:ARGUMENT][@SCOPE], e.g. stochastic:16, kahan:bf16, norm-matched@row, "
         "projection-matched:none@block:128. Kinds: " +
         kinds;
}

void AddFileOptions(CLI::App* sub, Options& options) {
  sub->add_option("WEIGHTS",
                  options.weights,
                  ".npy: float32 values of --format, or its codes as `numsim cast` writes them; a "
                  "first dimension of several gives the rows")
      ->required()
      ->check(NotEmpty());
  sub->add_option("UPDATE",
                  options.update,
                  "float32 .npy of the same shape: the direction to move in, e.g. minus the "
                  "gradient")
      ->required()
      ->check(NotEmpty());
  sub->add_option("OUT", options.out, "New weights, in the form of WEIGHTS")
      ->required()
      ->check(NotEmpty());
  CLI::Option* state_in = sub->add_option("--state-in",
                                          options.state_in,
                                          "State that the last step wrote (default: that of a "
                                          "first step)")
                              ->check(NotEmpty());
  sub->add_option("--state-out",
                  options.state_out,
                  "Where the new state goes, as .safetensors; required by rules that keep one")
      ->check(NotEmpty());
  sub->add_option("--groups", options.groups, "Also write the outcome of each group as CSV")
      ->check(NotEmpty());
  sub->add_flag("--round-weights",
                options.round_weights,
                "WEIGHTS are any float32 numbers, rounded first; a state starts from them as given")
      ->excludes(state_in);
  sub->add_flag("--codes", options.codes, "Write codes also where WEIGHTS are values");
  sub->add_flag("--json", options.json, "Print the outcome as JSON");
}

void AddStepOptions(CLI::App* sub, Options& options) {
  sub->add_option("--format", options.format, "Format: a name or a custom format")->required();
  sub->add_option("--rule", options.rule, RuleHelp())->required();
  sub->add_option("--lr", options.learning_rate, "Learning rate, at least 0")->required();
  sub->add_option("--weight-decay", options.weight_decay, "Decoupled weight decay, in the rule")
      ->capture_default_str();
  sub->add_option("--seed", options.seed, "Seed of the random bits: one for each tensor")
      ->check(Unsigned64())
      ->capture_default_str();
  sub->add_option("--step", options.step, "Number of the step: each has its own random bits")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 62))
      ->capture_default_str();
  sub->add_option("--solver", options.solver, "selection or bisection, of matched rules: same bits")
      ->check(CLI::IsMember({"selection", "bisection"}))
      ->capture_default_str();
  sub->add_option("--tolerance", options.tolerance, "Of note-as-printed: relative; 0: all passes")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  sub->add_option("--iterations", options.iterations, "Of note-as-printed: most candidates")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
}

}  // namespace

void AddUpdateCommand(Program& program) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = program.app.add_subcommand(
      "update", "Take one step with weights kept in a small format, by a rule");
  AddFileOptions(sub, *options);
  AddStepOptions(sub, *options);
  Example(sub,
          "numsim update weights.npy update.npy out.npy --format bf16 --rule stochastic --lr 1e-5\n"
          "Prints the status and what was achieved against its target. The exit code is 1 where "
          "the\nstatus is nonfinite, else 0.");
  Choose(program, sub, [options] { return Update(*options); });
}

}  // namespace numsim::apps
