#include "experiments/linear_error/operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/io/tensor_file.h"
#include "numsim/quantize/quantize.h"
#include "numsim/random/distributions.h"

namespace numsim::experiments::linear_error {
namespace {

// Random streams of a seed. Those of the layers' stochastic rounding start at 16 (measure.cc).
enum Stream : uint64_t {
  kStreamX,
  kStreamW,
  kStreamG,
  kStreamMeanX,
  kStreamMeanG,
  kStreamColumns,
  kStreamTokensX,
  kStreamTokensG,
  kStreamRows,
};

constexpr Keyword<OperandKind> kOperandKinds[] = {
    {"normal", OperandKind::kNormal},
    {"student-t3", OperandKind::kStudentT3},
    {"outlier-columns", OperandKind::kOutlierColumns},
    {"outlier-tokens", OperandKind::kOutlierTokens},
    {"coherent", OperandKind::kCoherent},
};

void ScaleRow(std::span<float> row, double factor) {
  for (float& value : row) value = static_cast<float>(static_cast<double>(value) * factor);
}

// Returns the outlier columns: those with the smallest random words, at least one.
std::vector<size_t> OutlierColumns(size_t cols, double share, uint64_t seed) {
  std::vector<size_t> order(cols);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return RandomWord({seed, kStreamColumns}, a) < RandomWord({seed, kStreamColumns}, b);
  });
  const auto count = static_cast<size_t>(std::llround(share * static_cast<double>(cols)));
  order.resize(std::clamp<size_t>(count, 1, cols));
  return order;
}

void PlantColumns(const Settings& settings, uint64_t seed, size_t cols, std::span<float> x) {
  const double size = settings.GetDouble("outlier-column-size", 1, 1e6);
  const double share = settings.GetDouble("outlier-columns", 0, 1);
  for (const size_t col : OutlierColumns(cols, share, seed)) {
    for (size_t i = col; i < x.size(); i += cols) ScaleRow(x.subspan(i, 1), size);
  }
}

void PlantTokens(const Settings& settings, RandomStream tokens, size_t cols, std::span<float> x) {
  const double size = settings.GetDouble("outlier-token-size", 1, 1e6);
  const double share = settings.GetDouble("outlier-tokens", 0, 1);
  for (size_t t = 0; t < x.size() / cols; ++t) {
    const bool outlier = RandomWord(tokens, t) < share * 4294967296.0;
    if (outlier) ScaleRow(x.subspan(t * cols, cols), size);
  }
}

void AddCommonPart(const Settings& settings, RandomStream mean, size_t cols, std::span<float> x) {
  const double coherence = settings.GetDouble("coherence", 0, 1);
  const double own = std::sqrt(1 - coherence), common = std::sqrt(coherence);
  std::vector<double> part(cols);
  for (size_t j = 0; j < cols; ++j) part[j] = RandomBits(mean, j, 1) != 0 ? common : -common;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(own * static_cast<double>(x[i]) + part[i % cols]);
  }
}

LinearOperands Draw(const Settings& settings, OperandKind kind, LinearShape shape, uint64_t seed) {
  LinearOperands drawn{std::vector<float>(shape.tokens * shape.in),
                       std::vector<float>(shape.out * shape.in),
                       std::vector<float>(shape.tokens * shape.out)};
  const Distribution tokens =
      kind == OperandKind::kStudentT3 ? Distribution::kStudent3 : Distribution::kNormal;
  Fill(tokens, {seed, kStreamX}, 0, drawn.x);
  FillNormal({seed, kStreamW}, 0, drawn.w);
  Fill(tokens, {seed, kStreamG}, 0, drawn.g);
  switch (kind) {
    case OperandKind::kNormal:
    case OperandKind::kStudentT3:
      break;
    case OperandKind::kOutlierColumns:
      PlantColumns(settings, seed, shape.in, drawn.x);
      break;
    case OperandKind::kOutlierTokens:
      PlantTokens(settings, {seed, kStreamTokensX}, shape.in, drawn.x);
      PlantTokens(settings, {seed, kStreamTokensG}, shape.out, drawn.g);
      break;
    case OperandKind::kCoherent:
      AddCommonPart(settings, {seed, kStreamMeanX}, shape.in, drawn.x);
      AddCommonPart(settings, {seed, kStreamMeanG}, shape.out, drawn.g);
      break;
  }
  return drawn;
}

// A tensor of --input as a matrix: its first dimension counts the rows, the others are flattened.
struct InputTensor {
  std::string file, name, description;
  MatrixShape shape;
};

// Stands for the seed of a trial in the paths of --input.
constexpr std::string_view kSeedPlace = "{seed}";

// Returns the files of --input for a seed.
std::vector<std::string> InputPaths(const Settings& settings, uint64_t seed) {
  std::vector<std::string> paths = settings.GetList("input");
  for (std::string& path : paths) {
    for (size_t at = path.find(kSeedPlace); at != path.npos; at = path.find(kSeedPlace)) {
      path.replace(at, kSeedPlace.size(), std::to_string(seed));
    }
  }
  return paths;
}

// Returns the tensor that an option names, or nothing when the option is empty.
std::optional<InputTensor> FindInput(const Settings& settings,
                                     std::string_view option,
                                     uint64_t seed) {
  const std::string& name = settings.Get(option);
  if (name.empty()) return std::nullopt;
  std::string missing;
  for (const std::string& path : InputPaths(settings, seed)) {
    const TensorFile file(path);
    const auto& tensors = file.Tensors();
    const auto found = std::find_if(
        tensors.begin(), tensors.end(), [&](const TensorInfo& info) { return info.name == name; });
    if (found == tensors.end()) {
      missing += (missing.empty() ? "" : ", ") + path;
      continue;
    }
    const std::string description = file.Describe(*found);
    if (found->shape.size() < 2) {
      throw Error::Format("--{}: {} has {} dimensions, expected at least 2",
                          option,
                          description,
                          found->shape.size());
    }
    MatrixShape shape{found->shape[0], 1};
    for (size_t i = 1; i < found->shape.size(); ++i) shape.cols *= found->shape[i];
    if (shape.Elements() == 0) throw Error::Format("--{}: {} is empty", option, description);
    return InputTensor{path, name, description, shape};
  }
  throw Error::Format("--{}: no tensor '{}' in {}", option, name, missing);
}

std::vector<float> ReadInput(const InputTensor& tensor) {
  const TensorFile file(tensor.file);
  std::vector<float> values = ToFloat32(file.Read(tensor.name), tensor.description);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    throw Error::Format(
        "{}: element {} is {}, expected finite numbers", tensor.description, i, values[i]);
  }
  return values;
}

// Sets `out` to `tokens` rows of the tensor, starting with row `first` and wrapping to row 0 after
// the last one.
void TakeRows(const InputTensor& tensor, size_t first, size_t tokens, std::vector<float>& out) {
  const std::vector<float> values = ReadInput(tensor);
  const size_t cols = tensor.shape.cols;
  out.resize(tokens * cols);
  for (size_t t = 0; t < tokens; ++t) {
    std::copy_n(&values[(first + t) % tensor.shape.rows * cols], cols, &out[t * cols]);
  }
}

// Returns the size of `a` or `b`, 0 if neither tensor is given. Throws Error if both are given and
// their sizes differ.
size_t Agree(const char* what,
             const std::optional<InputTensor>& a,
             size_t a_size,
             const std::optional<InputTensor>& b,
             size_t b_size) {
  if (a && b && a_size != b_size) {
    throw Error::Format("--input: {} is {} in {} and {} in {}",
                        what,
                        a_size,
                        a->description,
                        b_size,
                        b->description);
  }
  return a ? a_size : b ? b_size : 0;
}

FileShape ShapeOfFiles(const Settings& settings, uint64_t seed) {
  const std::optional<InputTensor> x = FindInput(settings, "tensor-x", seed);
  const std::optional<InputTensor> w = FindInput(settings, "tensor-w", seed);
  const std::optional<InputTensor> g = FindInput(settings, "tensor-g", seed);
  if (!x && !w && !g) {
    throw Error("--input needs --tensor-x, --tensor-w or --tensor-g to name the tensors to use");
  }
  const auto rows = [](const auto& tensor) { return tensor ? tensor->shape.rows : 0; };
  const auto cols = [](const auto& tensor) { return tensor ? tensor->shape.cols : 0; };
  return {Agree("the number of inputs", x, cols(x), w, cols(w)),
          Agree("the number of outputs", w, rows(w), g, cols(g)),
          Agree("the number of tokens", x, rows(x), g, rows(g))};
}

}  // namespace

std::string_view ToString(OperandKind kind) { return KeywordToString(kOperandKinds, kind); }

OperandKind ParseOperandKind(std::string_view text) {
  return ParseKeyword(kOperandKinds, "operands", text);
}

bool HasTensors(const Settings& settings) { return !settings.Get("input").empty(); }

std::vector<std::string> OperandNames(const Settings& settings) {
  std::vector<std::string> names = settings.GetList("operands");
  if (!HasTensors(settings)) return names;
  std::erase(names, kTensors);
  std::string name = "file";
  for (const char* const operand : {"x", "w", "g"}) {
    const std::string& tensor = settings.Get(std::string("tensor-") + operand);
    if (!tensor.empty()) name += fmt::format(" {}={}", operand, tensor);
  }
  names.push_back(name);
  return names;
}

bool TensorsDifferBySeed(const Settings& settings) {
  const std::vector<std::string> paths = settings.GetList("input");
  return std::all_of(paths.begin(), paths.end(), [](const std::string& path) {
    return path.find(kSeedPlace) != std::string::npos;
  });
}

FileShape ShapeOfFiles(const Settings& settings) {
  const FileShape first = ShapeOfFiles(settings, settings.seed);
  if (settings.Get("input").find(kSeedPlace) == std::string::npos) return first;
  for (int i = 1; i < settings.seeds; ++i) {
    const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
    if (ShapeOfFiles(settings, seed) == first) continue;
    throw Error::Format("--input: the tensors of seed {} have other shapes than those of seed {}",
                        seed,
                        settings.seed);
  }
  return first;
}
void CheckOperandOptions(const Settings& settings) {
  settings.GetDouble("outlier-columns", 0, 1);
  settings.GetDouble("outlier-column-size", 1, 1e6);
  settings.GetDouble("outlier-tokens", 0, 1);
  settings.GetDouble("outlier-token-size", 1, 1e6);
  settings.GetDouble("coherence", 0, 1);
  for (const std::string& text : settings.GetList("operands")) {
    if (text == kTensors && !HasTensors(settings)) {
      throw Error::Format("--operands: {} needs --input FILE", kTensors);
    }
    if (text != kTensors) ParseOperandKind(text);
  }
  if (HasTensors(settings)) return;
  for (const char* const option : {"tensor-x", "tensor-w", "tensor-g"}) {
    if (!settings.Get(option).empty()) throw Error::Format("--{} needs --input FILE", option);
  }
}

LinearOperands MakeOperands(const Settings& settings,
                            const std::string& operands,
                            LinearShape shape,
                            uint64_t seed) {
  if (!AreTensors(operands)) return Draw(settings, ParseOperandKind(operands), shape, seed);
  LinearOperands made = Draw(settings, OperandKind::kNormal, shape, seed);
  const size_t rows = ShapeOfFiles(settings, seed).rows;
  const uint64_t word = RandomWord({seed, kStreamRows}, 0);
  const auto first = static_cast<size_t>(word * rows >> 32);
  if (const auto x = FindInput(settings, "tensor-x", seed))
    TakeRows(*x, first, shape.tokens, made.x);
  if (const auto g = FindInput(settings, "tensor-g", seed))
    TakeRows(*g, first, shape.tokens, made.g);
  if (const auto w = FindInput(settings, "tensor-w", seed)) made.w = ReadInput(*w);
  return made;
}

}  // namespace numsim::experiments::linear_error
