#include "apps/stats_fold.h"

#include <fmt/format.h>

#include <algorithm>

#include "numsim/base/keyword.h"

namespace numsim::apps {
namespace {

constexpr Keyword<Fold> kFolds[] = {
    {"auto", Fold::kAuto}, {"stack", Fold::kStack}, {"first", Fold::kFirst}};

bool IsConvolution(std::span<const size_t> shape) {
  constexpr size_t kWidest = 7;  // kernel of one dimension; a matrix with so few columns is rare
  constexpr size_t kWidestOfTwo = 32;  // patches of an image transformer
  if (shape.size() == 3) return shape[2] <= kWidest || shape[1] == 1;
  const auto kernel = shape.subspan(2);
  return std::ranges::all_of(kernel, [](size_t extent) { return extent <= kWidestOfTwo; });
}

}  // namespace

Fold ParseFold(std::string_view text) { return ParseKeyword(kFolds, "--fold", text); }

MatrixStack FoldShape(std::span<const size_t> shape, Fold fold) {
  if (shape.size() < 3) return StackOf(shape);
  const bool first = fold == Fold::kFirst || (fold == Fold::kAuto && IsConvolution(shape));
  return first ? FirstDimensionAsRows(shape) : StackOf(shape);
}

}  // namespace numsim::apps
