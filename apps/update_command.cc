// `numsim update`: applies one step of an update rule to weights stored in a small format.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <tuple>

#include "apps/code_array.h"
#include "apps/command.h"
#include "apps/tensor_argument.h"
#include "apps/update_report.h"
#include "apps/update_state_file.h"
#include "numsim/io/array.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/tensor_file.h"
#include "numsim/quantize/given_scales.h"

namespace numsim::apps {
namespace {

struct UpdateOptions {
  std::string weights, update, out, format, rule, learning_rate;
  std::string weight_decay = "0";
  std::string solver = "selection";
  std::string state_in, state_out, groups;
  uint64_t seed = 0, step = 0;
  double tolerance = UpdateRule().tolerance;
  int iterations = UpdateRule().iterations;
  bool round_weights = false, codes = false, json = false;
};

// Parses `text` to the nearest float32. Throws Error that names `option` if it is not a finite
// number, or if it is negative and `negative_too` is false.
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
                      negative_too ? "" : " >= 0");
}

MatchSolver ParseSolver(const std::string& text) {
  return text == "bisection" ? MatchSolver::kBisection : MatchSolver::kSelection;
}

UpdateRule Rule(const UpdateOptions& options, const Format& format) {
  UpdateRule rule = ParseUpdateRule(options.rule);
  rule.solver = ParseSolver(options.solver);
  rule.tolerance = options.tolerance;
  rule.iterations = options.iterations;
  CheckUpdateRule(rule, format);
  return rule;
}

// Checks that output files do not overwrite each other, and that a state is written if the rule has
// one.
void CheckFiles(const UpdateOptions& options, const UpdateRule& rule, const Format& format) {
  const bool has_state = StateBytesPerWeight(rule, format.spec) > 0;
  if (!has_state && !options.state_in.empty()) {
    throw Error::Format("--state-in: {} has no state", ToString(rule));
  }
  if (!has_state && !options.state_out.empty()) {
    throw Error::Format("--state-out: {} has no state", ToString(rule));
  }
  if (has_state && options.state_out.empty()) {
    throw Error::Format("--state-out is missing: {} has a state in addition to the weights",
                        ToString(rule));
  }
  if (SameFile(options.state_out, options.out)) {
    throw Error("--state-out and OUT are the same file");
  }
  if (SameFile(options.groups, options.out)) throw Error("--groups and OUT are the same file");
  if (SameFile(options.groups, options.state_out)) {
    throw Error("--groups and --state-out are the same file");
  }
  CheckTensorOutput("OUT", options.out, {options.weights, options.update});
  if (!options.state_out.empty() && !IsSafetensorsName(options.state_out)) {
    throw Error::Format("--state-out: {}: a state is a .safetensors file", options.state_out);
  }
  // OUT may replace the weights, and the new state the old one.
  const std::string weights = ParseTensorArgument(options.weights).file;
  const std::string update = ParseTensorArgument(options.update).file;
  CheckKeepsInputs("--state-out", options.state_out, {weights, update});
  CheckKeepsInputs("--groups", options.groups, {weights, update, options.state_in});
}

// Weights as read, and as float32.
struct Weights {
  std::string name;
  Array array;
  bool are_values = false;
  std::vector<float> values;
};

Weights ReadWeights(const UpdateOptions& options, const Format& format) {
  Weights weights;
  std::tie(weights.name, weights.array) = ReadTensor(options.weights);
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
                weights.are_values ? " (use --round-weights to round them first)" : "");
  }
  return weights;
}

std::vector<float> ReadUpdate(const UpdateOptions& options, const Array& weights) {
  const Array update = ReadTensor(options.update).second;
  if (update.shape != weights.shape) {
    throw Error::Format("{} has shape {}, but {} has {}",
                        options.update,
                        ShapeToString(update.shape),
                        options.weights,
                        ShapeToString(weights.shape));
  }
  return ToFloat32(update, options.update);
}

// Returns the codes of the new values. A weight that did not change keeps its code, including the
// payload of a NaN.
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

// Writes all outputs or none, as far as the file system permits: each file is complete under a
// temporary name before the first one gets its final name.
void WriteOutputs(const UpdateOptions& options,
                  const NamedArray& out,
                  const Metadata& metadata,
                  const std::string& state,
                  const std::vector<UpdateOutcome>& groups) {
  std::optional<AtomicFile> state_file, groups_file;
  if (!options.state_out.empty()) {
    state_file.emplace(options.state_out).Write(state);
  }
  if (!options.groups.empty()) {
    groups_file.emplace(options.groups).Write(ToCsv(OutcomeTable(groups)));
  }
  WriteTensor(options.out, out, metadata);
  if (state_file) state_file->Commit();
  if (groups_file) groups_file->Commit();
}

int Update(const UpdateOptions& options) {
  WeightUpdate step;
  step.learning_rate = ParseFloat("--lr", options.learning_rate, false);
  step.weight_decay = ParseFloat("--weight-decay", options.weight_decay, true);
  const Format format = ParseFormat(options.format);
  const UpdateRule rule = Rule(options, format);
  CheckFiles(options, rule, format);
  Weights weights = ReadWeights(options, format);
  const std::vector<float> update = ReadUpdate(options, weights.array);
  const MatrixShape shape = FirstDimensionAsRows(weights.array.shape).shape;
  step.format = format.spec;

  UpdateStateOwner owner{ToString(rule), ToString(format.spec), weights.array.shape, ""};
  const MatrixSpan<float> values = HostMatrix(weights.values, shape);
  UpdateState state = StartUpdates(rule, format.spec, values, values);
  if (!options.state_in.empty()) {
    owner.weights = DigestOf(weights.values);
    state = ReadUpdateState(options.state_in, owner, state);
  }
  step.weights = values;
  step.update = HostMatrix(update, shape);
  std::vector<float> moved(weights.values.size());
  std::vector<UpdateOutcome> groups;
  const RandomStream random{options.seed, options.step};
  const UpdateOutcome outcome =
      ApplyUpdate(rule, step, random, state, HostMatrix(moved, shape), &groups);

  owner.weights = DigestOf(moved);
  const bool codes = !weights.are_values || options.codes;
  const NamedArray out = {weights.name,
                          codes
                              ? StoredCodes(options.out, Codes(weights, format, moved), format.spec)
                              : Values(weights.array, moved)};
  const Metadata metadata = codes ? CodeMetadata(out, format.spec) : Metadata();
  WriteOutputs(options, out, metadata, UpdateStateFile(state, owner), groups);
  fmt::print("{}", options.json ? OutcomeJson(outcome, random) : OutcomeText(outcome, random));
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

void AddFileOptions(CLI::App* sub, UpdateOptions& options) {
  sub->add_option("WEIGHTS",
                  options.weights,
                  "Input .npy or .safetensors file, or FILE.safetensors:NAME: float32 values of "
                  "--format, or its codes as written by `numsim cast`; of several dimensions, the "
                  "first gives the rows")
      ->required()
      ->check(NotEmpty());
  sub->add_option(
         "UPDATE",
         options.update,
         "Input file, as WEIGHTS: float32 of the same shape, the direction of the step, e.g. "
         "minus the gradient")
      ->required()
      ->check(NotEmpty());
  sub->add_option("OUT",
                  options.out,
                  "Output .npy or .safetensors file: the new weights, values or codes like WEIGHTS")
      ->required()
      ->check(NotEmpty());
  CLI::Option* state_in = sub->add_option("--state-in",
                                          options.state_in,
                                          "State that the previous step wrote (default: the "
                                          "initial state)")
                              ->check(NotEmpty());
  sub->add_option("--state-out",
                  options.state_out,
                  "Output .safetensors file for the new state; required if the rule has a state")
      ->check(NotEmpty());
  sub->add_option(
         "--groups", options.groups, "Also write the outcome of each group to this CSV file")
      ->check(NotEmpty());
  sub->add_flag("--round-weights",
                options.round_weights,
                "Round WEIGHTS, any float32 numbers, to --format first; a state starts from the "
                "unrounded numbers")
      ->excludes(state_in);
  sub->add_flag("--codes", options.codes, "Write codes even if WEIGHTS are values");
  sub->add_flag("--json", options.json, "Print the outcome as JSON");
}

void AddStepOptions(CLI::App* sub, UpdateOptions& options) {
  sub->add_option("--format", options.format, "Format: a name or a custom format")->required();
  sub->add_option("--rule", options.rule, RuleHelp())->required();
  sub->add_option("--lr", options.learning_rate, "Learning rate, >= 0")->required();
  sub->add_option("--weight-decay",
                  options.weight_decay,
                  "Decoupled weight decay: the step uses UPDATE - weight decay * WEIGHTS")
      ->capture_default_str();
  sub->add_option("--seed", options.seed, "Seed of the random bits; use a different one per tensor")
      ->check(Unsigned64())
      ->capture_default_str();
  sub->add_option("--step",
                  options.step,
                  "Step number. It chooses the random bits: count it up in a loop, or every "
                  "step rounds with the same ones")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 62))
      ->capture_default_str();
  sub->add_option("--solver",
                  options.solver,
                  "Solver of the matched rules, selection or bisection; the results are the same")
      ->check(CLI::IsMember({"selection", "bisection"}))
      ->capture_default_str();
  sub->add_option("--tolerance",
                  options.tolerance,
                  "Relative tolerance of note-as-printed; 0 always runs all iterations")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  sub->add_option("--iterations", options.iterations, "Maximum iterations of note-as-printed")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
}

}  // namespace

void AddUpdateCommand(Program& program) {
  auto options = std::make_shared<UpdateOptions>();
  CLI::App* sub = program.app.add_subcommand(
      "update", "Apply one step of an update rule to weights stored in a small format");
  AddFileOptions(sub, *options);
  AddStepOptions(sub, *options);
  Example(sub,
          "numsim update weights.npy update.npy out.npy --format bf16 --rule stochastic --lr 1e-5\n"
          "Prints the status, and what the step achieved compared with its target. The exit code "
          "is 1\nif the status is nonfinite, else 0.");
  Choose(program, sub, [options] { return Update(*options); });
}

}  // namespace numsim::apps
