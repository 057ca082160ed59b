#include "experiments/quantization_variance/input.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "numsim/base/error.h"
#include "numsim/io/tensor_file.h"
#include "numsim/random/distributions.h"

namespace numsim::experiments::quantization_variance {
namespace {

constexpr uint64_t kStreamRows = 2;  // beside the streams of measure.cc

bool HasSecond(const Settings& settings) {
  return !settings.Get("input-b").empty() || !settings.Get("tensor-b").empty();
}

// Returns the file of the second tensor: that of the first unless --input-b names another.
std::string SecondFile(const Settings& settings) {
  const std::string path = settings.Get("input-b");
  return path.empty() ? settings.Get("input") : path;
}

// One tensor of a file: its description for errors, its name, and its shape as a matrix.
struct Found {
  std::string description, name;
  MatrixShape shape;
};

Found Find(const std::string& path, const std::string& tensor) {
  const TensorFile file(path);
  const TensorInfo& info = file.Find(tensor);
  if (info.shape.size() < 2) {
    throw Error::Format(
        "{}: has {} dimensions, expected at least 2", file.Describe(info), info.shape.size());
  }
  Found found{file.Describe(info), info.name, {info.shape[0], 1}};
  for (size_t i = 1; i < info.shape.size(); ++i) found.shape.cols *= info.shape[i];
  return found;
}

Found FindFirst(const Settings& settings) {
  return Find(settings.Get("input"), settings.Get("tensor"));
}
Found FindSecond(const Settings& settings) {
  return Find(SecondFile(settings), settings.Get("tensor-b"));
}

}  // namespace

bool HasInput(const Settings& settings) { return !settings.Get("input").empty(); }

void CheckInputOptions(const Settings& settings) {
  if (HasInput(settings)) return;
  for (const char* const option : {"tensor", "input-b", "tensor-b"}) {
    if (settings.Get(option).empty()) continue;
    throw Error::Format("--{} needs --input FILE", option);
  }
}

size_t InputColumns(const Settings& settings) {
  const Found first = FindFirst(settings);
  if (!HasSecond(settings)) return first.shape.cols;
  const Found second = FindSecond(settings);
  if (second.shape.cols != first.shape.cols) {
    throw Error::Format(
        "{}: has rows of {} elements, expected {}, the length of the rows of {}; the first "
        "dimension counts the rows",
        second.description,
        second.shape.cols,
        first.shape.cols,
        first.description);
  }
  return first.shape.cols;
}

std::string InputSource(const Settings& settings) {
  const std::string source = "tensor " + FindFirst(settings).name;
  return HasSecond(settings) ? source + " x " + FindSecond(settings).name : source;
}

std::vector<std::string> UnusedOptions(const Settings& settings) {
  std::vector<std::string> unused;
  if (HasInput(settings)) unused.emplace_back("distributions");
  for (const char* const option : {"input-b", "tensor-b"}) {
    if (settings.Get(option).empty()) unused.emplace_back(option);
  }
  return unused;
}

InputRows::Matrix InputRows::Read(const std::string& path, const std::string& tensor) {
  const Found found = Find(path, tensor);
  const TensorFile file(path);
  Matrix matrix{found.shape, ToFloat32(file.Read(found.name), found.description)};
  for (size_t i = 0; i < matrix.values.size(); ++i) {
    if (std::isfinite(matrix.values[i])) continue;
    throw Error::Format(
        "{}: element {} is {}, expected finite numbers", found.description, i, matrix.values[i]);
  }
  return matrix;
}

InputRows::InputRows(const Settings& settings, uint64_t seed, size_t longest)
    : seed_(seed), longest_(longest), a_(Read(settings.Get("input"), settings.Get("tensor"))) {
  if (HasSecond(settings)) {
    b_ = Read(SecondFile(settings), settings.Get("tensor-b"));
  } else if (a_.shape.rows < 2) {
    throw Error::Format("{}: has only one row", FindFirst(settings).description);
  }
}

void InputRows::FillPair(size_t pair, size_t k, float* u, float* v) const {
  const auto draw = [&](uint64_t i, size_t below) {
    const uint64_t word = RandomWord({seed_, kStreamRows}, 4 * uint64_t{pair} + i);
    return static_cast<size_t>(word * below >> 32);
  };
  const Matrix& b = b_.values.empty() ? a_ : b_;
  const size_t row_u = draw(0, a_.shape.rows);
  const size_t row_v = b_.values.empty() ? (row_u + 1 + draw(1, a_.shape.rows - 1)) % a_.shape.rows
                                         : draw(1, b.shape.rows);
  const size_t cols = a_.shape.cols;
  const size_t column = draw(2, cols - longest_ + 1) + k * draw(3, longest_ / k);
  std::copy_n(&a_.values[row_u * cols + column], k, u);
  std::copy_n(&b.values[row_v * cols + column], k, v);
}

}  // namespace numsim::experiments::quantization_variance
