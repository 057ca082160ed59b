// Errors of drawn tensors under the arithmetic of the layers: real scales, bits of a seed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/fp4_errors/fp4_errors.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/hadamard.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/random/distributions.h"
#include "numsim/random/streams.h"

namespace numsim::experiments::fp4_errors {
namespace {

// Random streams of a seed.
constexpr uint64_t kDrawn = 0, kSigns = 1, kBits = 2;

// A way to quantise: the arithmetic of a recipe's operand.
struct Treatment {
  const char* name;
  const char* format;
  const char* layout;
  ScaleRule rule;
  bool stochastic = false;
};
constexpr Treatment kTreatments[] = {
    {"nvfp4", "e2m1fn", "block:16", ScaleRule::kNvfp4},
    {"nvfp4-sr", "e2m1fn", "block:16", ScaleRule::kNvfp4, true},
    {"four-over-six", "e2m1fn", "block:16", ScaleRule::kFourOverSixMse},
    {"ms-eden", "e2m1fn", "block:16", ScaleRule::kMsEden},
    {"e1m2", "e1m2:inf=none,nan=none", "block:16", ScaleRule::kNvfp4},
    {"mxfp4-even", "e2m1fn", "block:32", ScaleRule::kE8m0Even},
    {"mxfp4-floor", "e2m1fn", "block:32", ScaleRule::kE8m0},
};

QuantizeOptions OptionsOf(const Treatment& treatment, size_t transform, uint64_t seed) {
  QuantizeOptions options;
  options.format = ParseFormat(treatment.format).spec;
  if (treatment.stochastic) options.rounding.mode = RoundingMode::kStochastic;
  options.layout = ParseScaleLayout(treatment.layout);
  options.scale_rule = treatment.rule;
  options.random.stream = {seed, kBits};
  if (treatment.rule == ScaleRule::kMsEden) options.correction_run = transform;
  return options;
}

// Returns x >= 0 rounded to e4m3fn as under NVFP4, for normal numbers of it.
double RoundToE4m3(double x) {
  if (x >= 448) return 448;
  const double ulp = std::ldexp(1.0, std::max(std::ilogb(x), -6) - 3);
  return std::nearbyint(x / ulp) * ulp;
}

// Stochastic rounding that is unbiased: NVFP4 with scales 17/16 as large, so that no element lies beyond 6
// after the scale has been rounded. In float64.
void RoundWithHeadroom(const std::vector<float>& x, uint64_t seed, std::vector<float>& out) {
  constexpr double kHeadroom = 17.0 / 16;
  constexpr size_t kBlock = 16;
  const Grid& grid = GridOf("e2m1");
  double most = 0;
  for (const float value : x) most = std::max(most, std::fabs(static_cast<double>(value)));
  const double encode = 448 * 6 / (most * kHeadroom);
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    double largest = 0;
    for (size_t i = begin; i < begin + kBlock; ++i) {
      largest = std::max(largest, std::fabs(static_cast<double>(x[i])));
    }
    const double scale = RoundToE4m3(largest * kHeadroom / 6 * encode) / encode;
    for (size_t i = begin; i < begin + kBlock; ++i) {
      const double y = scale == 0 ? 0 : std::fabs(static_cast<double>(x[i])) / scale;
      const auto above = std::ranges::upper_bound(grid.values, y);
      double q = grid.Largest();
      if (above != grid.values.end()) {
        const double low = *(above - 1), share = (y - low) / (*above - low);
        q = std::floor(share * 0x1p32) + RandomWord({seed, kBits}, i) >= 0x1p32 ? *above : low;
      }
      out[i] = static_cast<float>(std::copysign(q * scale, static_cast<double>(x[i])));
    }
  }
}

BlockError ErrorOf(const std::vector<float>& x, const std::vector<float>& quantised) {
  double squares = 0, errors = 0, products = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto value = static_cast<double>(x[i]);
    const double error = static_cast<double>(quantised[i]) - value;
    squares += value * value;
    errors += error * error;
    products += error * value;
  }
  return {errors / squares, products / squares};
}

}  // namespace

std::vector<Row> DrawRows(const Settings& settings, const std::string& source, uint64_t seed) {
  const MatrixShape shape{static_cast<size_t>(settings.GetInteger("tensor-rows", 1, 1 << 20)),
                          static_cast<size_t>(settings.GetInteger("tensor-columns", 128, 1 << 20))};
  std::vector<float> drawn(shape.Elements());
  Fill(ParseDistribution(source), {seed, kDrawn}, 0, drawn);
  std::vector<Row> rows;
  for (const size_t transform : {0, 16, 128}) {
    std::vector<float> x = drawn, quantised(drawn.size());
    if (transform != 0) {
      const HadamardSigns signs = DrawSigns({seed, kSigns});
      HadamardTransform(x, shape, transform, signs, HadamardAxis::kRows, x);
    }
    const auto add = [&](const char* treatment) {
      const BlockError error = ErrorOf(x, quantised);
      const std::string name = transform == 0 ? "none" : fmt::format("hadamard-{}", transform);
      rows.push_back({source, name, treatment, seed, error.error, error.shrinkage});
    };
    for (const Treatment& treatment : kTreatments) {
      if (treatment.rule == ScaleRule::kMsEden && transform != 128) continue;
      FakeQuantize(x, shape, OptionsOf(treatment, transform, seed), quantised);
      add(treatment.name);
    }
    RoundWithHeadroom(x, seed, quantised);
    add("sr-headroom");
  }
  return rows;
}

}  // namespace numsim::experiments::fp4_errors
