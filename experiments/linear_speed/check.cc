#include "experiments/linear_speed/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/linear_speed/timing.h"
#include "numsim/backend/backend.h"
#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/quantize/scale.h"
#include "numsim/random/distributions.h"

namespace numsim::experiments::linear_speed {
namespace {

constexpr size_t kRotation = 999983;  // odd, so that nearby tiles start at different offsets

constexpr size_t kSampledRows = 8, kSampledCols = 4;
constexpr uint64_t kSampleStream = 16;

std::vector<float> Bf16Values(std::span<const uint16_t> codes) {
  std::vector<float> values(codes.size());
  Decode(kBf16, codes, std::span(values));
  return values;
}

// Returns `count` indices below `size`: the first, the last, and random ones.
std::vector<size_t> SampledIndices(size_t size, size_t count, uint64_t stream) {
  std::vector<size_t> indices = {0, size - 1};
  for (uint64_t i = 0; indices.size() < count; ++i) {
    indices.push_back(RandomWord({size, stream}, i) % size);
  }
  return indices;
}

// An operand of a GEMM, as vectors along the inner dimension.
struct OperandTensor {
  const TiledNormals* tensor;
  bool transposed;  // the vectors are columns

  size_t Vectors() const { return transposed ? tensor->shape().cols : tensor->shape().rows; }
  size_t Inner() const { return transposed ? tensor->shape().rows : tensor->shape().cols; }
};

struct ProductTensors {
  OperandTensor a, b;
};

ProductTensors TensorsOf(LinearGemm product, const LayerTensors& tensors) {
  switch (product) {
    case LinearGemm::kForward:
      return {{&tensors.x, false}, {&tensors.w, false}};
    case LinearGemm::kInputGradient:
      return {{&tensors.g, false}, {&tensors.w, true}};
    case LinearGemm::kWeightGradient:
      break;
  }
  return {{&tensors.g, true}, {&tensors.x, true}};
}

std::vector<float> GatherVectors(const OperandTensor& operand, std::span<const size_t> vectors) {
  const size_t inner = operand.Inner();
  std::vector<float> values(vectors.size() * inner);
  ParallelTasks(vectors.size(), [&](size_t v) {
    for (size_t k = 0; k < inner; ++k) {
      values[v * inner + k] = operand.transposed ? operand.tensor->At(k, vectors[v])
                                                 : operand.tensor->At(vectors[v], k);
    }
  });
  return values;
}

QuantizedMatrix QuantizeVectors(const OperandRecipe& recipe,
                                const OperandTensor& operand,
                                std::span<const size_t> vectors) {
  NUMSIM_CHECK(recipe.rounding.mode == RoundingMode::kNearestEven && !recipe.delayed,
               "{}",
               recipe.format.name);
  const MatrixShape shape{vectors.size(), operand.Inner()};
  QuantizeOptions options;
  options.format = recipe.format.spec;
  options.overflow = recipe.overflow;
  options.layout = recipe.layout;
  options.scale_rule = recipe.scale_rule;
  const std::vector<float> values = GatherVectors(operand, vectors);
  if (recipe.Unscaled() || recipe.layout.granularity == Granularity::kRow) {
    return Quantize(HostMatrix(values, shape), options);
  }
  NUMSIM_CHECK(recipe.layout.granularity == Granularity::kTensor, "{}", ToString(recipe.layout));
  const Scale scale = MakeScale(options.format, operand.tensor->Absmax(), recipe.scale_rule);
  QuantizedMatrix result;
  QuantizeUnder(scale, HostMatrix(std::span<const float>(values), shape), options, result);
  return result;
}

std::vector<double> Norms(const QuantizedMatrix& matrix) {
  std::vector<float> values(matrix.shape.Elements());
  Dequantize(matrix, values);
  std::vector<double> norms;
  for (size_t r = 0; r < matrix.shape.rows; ++r) {
    double sum = 0;
    for (const float value : std::span(values).subspan(r * matrix.shape.cols, matrix.shape.cols)) {
      sum += static_cast<double>(value) * static_cast<double>(value);
    }
    norms.push_back(std::sqrt(sum));
  }
  return norms;
}

// Returns the tolerance for results of a library's 16-bit GEMM, whose order of summation and
// rounding are unknown: one step of bf16, which is at most 2^-7 of the result, plus 2^-8 of the
// typical spread of such results.
std::vector<float> Tolerance(const QuantizedMatrix& a,
                             const QuantizedMatrix& b,
                             std::span<const float> results) {
  const std::vector<double> a_norms = Norms(a), b_norms = Norms(b);
  std::vector<float> tolerance;
  for (size_t i = 0; i < results.size(); ++i) {
    const double spread = a_norms[i / b_norms.size()] * b_norms[i % b_norms.size()] /
                          std::sqrt(static_cast<double>(a.shape.cols));
    tolerance.push_back(static_cast<float>(std::abs(results[i]) * 0x1p-7 + spread * 0x1p-8));
  }
  return tolerance;
}

}  // namespace

TiledNormals::TiledNormals(RandomStream stream, MatrixShape shape, size_t tile) : shape_(shape) {
  std::vector<float> values(std::min(tile, shape.Elements()));
  ParallelFor(values.size(), 1 << 14, [&](size_t begin, size_t end) {
    FillNormal(stream, begin, std::span(values).subspan(begin, end - begin));
  });
  codes_ = Bf16Codes(values);
  values_ = Bf16Values(codes_);
}

size_t TiledNormals::Offset(size_t tile_index) const {
  return tile_index * kRotation % codes_.size();
}

float TiledNormals::At(size_t row, size_t col) const {
  const size_t index = row * shape_.cols + col;
  const size_t size = codes_.size();
  const size_t place = index % size + Offset(index / size);
  return values_[place < size ? place : place - size];
}

float TiledNormals::Absmax() const {
  // The first tile occurs as a whole and holds every value of the tensor.
  float largest = 0;
  for (const float value : values_) largest = std::max(largest, std::abs(value));
  return largest;
}

void TiledNormals::ForEachPiece(const std::function<void(size_t, size_t, size_t)>& copy) const {
  const size_t size = codes_.size();
  for (size_t begin = 0, index = 0; begin < shape_.Elements(); begin += size, ++index) {
    const size_t count = std::min(size, shape_.Elements() - begin);
    const size_t offset = Offset(index);
    const size_t first = std::min(count, size - offset);
    copy(offset, begin, first);
    if (first < count) copy(0, begin + first, count - first);
  }
}

std::vector<float> TiledNormals::Values() const {
  std::vector<float> values(shape_.Elements());
  ForEachPiece([&](size_t from, size_t to, size_t count) {
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(from),
                count,
                values.begin() + static_cast<std::ptrdiff_t>(to));
  });
  return values;
}

LayerTensors::LayerTensors(LinearShape shape, uint64_t seed, size_t tile)
    : x({seed, kStreamX}, shape.X(), tile),
      w({seed, kStreamW}, shape.W(), tile),
      g({seed, kStreamG}, {shape.tokens, shape.out}, tile) {}

MatrixShape ResultShape(LinearShape shape, LinearGemm product) {
  switch (product) {
    case LinearGemm::kForward:
      return {shape.tokens, shape.out};
    case LinearGemm::kInputGradient:
      return shape.X();
    case LinearGemm::kWeightGradient:
      break;
  }
  return shape.W();
}

std::optional<SampledProduct> SampleOnCpu(const LinearRecipe& recipe,
                                          LinearGemm product,
                                          const LayerTensors& tensors) {
  const GemmRecipe& of = recipe[product];
  if (product == LinearGemm::kWeightGradient && recipe.saves == LinearSaves::kQuantized &&
      !(of.b == recipe[LinearGemm::kForward].a &&
        of.b.layout.granularity == Granularity::kTensor)) {
    return std::nullopt;
  }
  const auto& [a_tensor, b_tensor] = TensorsOf(product, tensors);
  SampledProduct sample;
  sample.rows = SampledIndices(a_tensor.Vectors(), kSampledRows, kSampleStream);
  sample.cols = SampledIndices(b_tensor.Vectors(), kSampledCols, kSampleStream + 1);
  const QuantizedMatrix a = QuantizeVectors(of.a, a_tensor, sample.rows);
  const QuantizedMatrix b = QuantizeVectors(of.b, b_tensor, sample.cols);
  std::vector<float> results(sample.rows.size() * sample.cols.size());
  const bool library = of.accumulation.kind == AccumulationKind::kLibrary;
  const AccumulationMode mode =
      library ? AccumulationMode{.kind = AccumulationKind::kFloat64} : of.accumulation;
  Gemm(AsOperand(a, false), AsOperand(b, false), mode, results);
  sample.codes = Bf16Codes(results);
  sample.tolerance.assign(results.size(), 0.0f);
  if (library) sample.tolerance = Tolerance(a, b, results);
  return sample;
}

void CompareSample(const std::string& what,
                   MatrixShape shape,
                   const SampledProduct& sample,
                   std::span<const uint16_t> device) {
  NUMSIM_CHECK(device.size() == sample.codes.size(), "{} elements", device.size());
  const std::vector<float> expected = Bf16Values(sample.codes), got = Bf16Values(device);
  for (size_t i = 0; i < device.size(); ++i) {
    if (sample.codes[i] == device[i] || (std::isnan(expected[i]) && std::isnan(got[i]))) continue;
    // The comparison rejects NaN and, under an exact accumulation mode, a zero of the other sign.
    if (sample.tolerance[i] > 0 && std::abs(got[i] - expected[i]) <= sample.tolerance[i]) continue;
    throw Error::Format("{}: element ({}, {}) of {} x {} is {:g} on the device and {:g} on the CPU",
                        what,
                        sample.rows[i / sample.cols.size()],
                        sample.cols[i % sample.cols.size()],
                        shape.rows,
                        shape.cols,
                        got[i],
                        expected[i]);
  }
}

std::vector<uint16_t> Bf16Codes(std::span<const float> values) {
  std::vector<uint16_t> codes(values.size());
  Encode(MakeEncodePlan(kBf16, {}, Overflow::kNonsaturate), values, std::span(codes));
  return codes;
}

WithoutDevice::WithoutDevice() : before_(BackendName()) {
  if (!UsesDevice()) return;
  for (const std::string& name : AvailableBackends()) {
    if (name == "cuda") continue;
    ForceBackend(name);
    return;
  }
}

WithoutDevice::~WithoutDevice() { ForceBackend(before_); }

}  // namespace numsim::experiments::linear_speed
