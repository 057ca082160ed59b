// Divides the layers of `linear-speed` into groups that a device holds at the same time.
#include <algorithm>

#include "experiments/linear_speed/timing.h"
#include "numsim/gemm/gemm_device.h"

namespace numsim::experiments::linear_speed {
namespace {

constexpr size_t kLibraryBytes = size_t{128} << 20;  // workspace of GEMMs, scales

bool MultipliesIntegers(const GemmRecipe& product) {
  return product.a.format.spec.sign == Sign::kTwosComplement &&
         product.b.format.spec.sign == Sign::kTwosComplement;
}

size_t InnerOf(LinearShape shape, LinearGemm product) {
  switch (product) {
    case LinearGemm::kForward:
      return shape.in;
    case LinearGemm::kInputGradient:
      return shape.out;
    case LinearGemm::kWeightGradient:
      break;
  }
  return shape.tokens;
}

}  // namespace

bool FitsDevice(const LinearRecipe& recipe, LinearShape shape) {
  for (const LinearGemm product : kProducts) {
    const bool integers = MultipliesIntegers(recipe[product]);
    if (integers && InnerOf(shape, product) > kMostProductsOfAnyInt8) return false;
  }
  return true;
}

size_t DeviceBytes(const LinearRecipe& recipe, LinearShape shape) {
  const size_t x = shape.tokens * shape.in;
  const size_t w = shape.out * shape.in;
  const size_t g = shape.tokens * shape.out;
  if (recipe.kind == kStandard) return kLibraryBytes;
  // Codes in both orders, and one more byte per element for an X that is dequantised; int32 sums of
  // int8 GEMMs if a library computes them.
  size_t bytes = kLibraryBytes + 3 * x + 2 * w + 2 * g;
  for (const LinearGemm product : kProducts) {
    if (MultipliesIntegers(recipe[product])) return bytes + 4 * std::max({x, w, g});
  }
  return bytes;
}

std::vector<std::vector<size_t>> DeviceGroups(std::span<const TimedLayer> layers,
                                              LinearShape shape,
                                              size_t bytes) {
  std::vector<size_t> standards, others;
  size_t always = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!FitsDevice(layers[i].recipe, shape)) continue;
    const bool standard = layers[i].recipe.kind == kStandard;
    (standard ? standards : others).push_back(i);
    if (standard) always += DeviceBytes(layers[i].recipe, shape);
  }
  std::vector<std::vector<size_t>> groups;
  size_t used = 0;
  for (const size_t i : others) {
    const size_t more = DeviceBytes(layers[i].recipe, shape);
    if (groups.empty() || used + more > bytes) {
      groups.push_back(standards);
      used = always;
    }
    groups.back().push_back(i);
    used += more;
  }
  if (groups.empty() && !standards.empty()) groups.push_back(standards);
  return groups;
}

}  // namespace numsim::experiments::linear_speed
