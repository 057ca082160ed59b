#include "numsim/data/internal/generate_shapes.h"

#include <span>
#include <string_view>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/data/internal/shuffle.h"
#include "numsim/data/internal/split.h"

namespace numsim {
namespace {

constexpr std::string_view kSizeNames[kShapeSizes] = {"small", "large"};
constexpr std::string_view kColourNames[kShapeColours] = {
    "red", "green", "blue", "yellow", "purple", "orange", "white", "black"};
constexpr std::string_view kFormNames[kShapeForms] = {
    "circle", "square", "triangle", "diamond", "cross", "ring"};

constexpr uint64_t kSingleOrder = 0,
                   kPairOrder = 1;    // epoch numbers for the shuffles of scenes
constexpr uint32_t kSingleShare = 8;  // on average, one in this many images shows a single object
constexpr size_t kImagesOfAThread = 16;

ShapeObject ObjectOf(size_t number) {
  return {number / kShapeForms / kShapeColours,
          number / kShapeForms % kShapeColours,
          number % kShapeForms};
}

}  // namespace

std::string ToString(const ShapeObject& object) {
  return fmt::format(
      "{} {} {}", kSizeNames[object.size], kColourNames[object.colour], kFormNames[object.form]);
}

ShapeScene SceneOf(size_t number) {
  NUMSIM_CHECK(number < kShapeScenes, "scene {}", number);
  if (number < kShapeObjects) return {1, {ObjectOf(number), {}}, false};
  const size_t pair = number - kShapeObjects;
  const size_t first = pair / 2 / (kShapeObjects - 1);
  const size_t other = pair / 2 % (kShapeObjects - 1);
  const size_t second = other + (other >= first ? 1 : 0);
  return {2, {ObjectOf(first), ObjectOf(second)}, pair % 2 == 0};
}

std::string Caption(const ShapeScene& scene, bool reversed) {
  const std::string first = ToString(scene.object[0]);
  if (scene.objects == 1) return "a " + first;
  const std::string second = ToString(scene.object[1]);
  if (reversed) {
    return fmt::format("a {} {} a {}", second, scene.above ? "below" : "right of", first);
  }
  return fmt::format("a {} {} a {}", first, scene.above ? "above" : "left of", second);
}

ShapeWorld::ShapeWorld(uint64_t seed, size_t side, double valid_share)
    : seed_(DeriveSeed(seed, RandomPurpose::kShapes)),
      side_(side),
      train_singles_(TrainShare(kShapeObjects, valid_share)),
      train_pairs_(TrainShare(kShapeScenes - kShapeObjects, valid_share)) {
  NUMSIM_CHECK(side >= kLeastShapeImage && side <= kMostShapeImage, "side {}", side);
}

size_t ShapeWorld::DrawScene(bool valid, DrawStream& draws) const {
  const bool single = draws.Below(kSingleShare) == 0;
  const size_t scenes = single ? kShapeObjects : kShapeScenes - kShapeObjects;
  const size_t train = single ? train_singles_ : train_pairs_;
  const size_t place = valid ? train + draws.Below(static_cast<uint32_t>(scenes - train))
                             : draws.Below(static_cast<uint32_t>(train));
  const EpochShuffle shuffle(seed_, single ? kSingleOrder : kPairOrder, scenes);
  return shuffle(place) + (single ? 0 : kShapeObjects);
}

CaptionSet ShapeWorld::Generate(bool valid, size_t count) const {
  const size_t bytes = side_ * side_ * 3;
  CaptionSet set{count, side_, side_, 3, {}, {}, {}};
  set.pixels.resize(count * bytes);
  set.captions.resize(count);
  set.concepts.resize(count);
  ParallelFor(count, kImagesOfAThread, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      DrawStream draws({seed_, 2 * uint64_t{i} + (valid ? 1 : 0)});
      const size_t number = DrawScene(valid, draws);
      const ShapeScene scene = SceneOf(number);
      set.concepts[i] = static_cast<int32_t>(number);
      set.captions[i] = Caption(scene, draws.Below(2) == 1);
      numsim::DrawScene(scene, side_, draws, std::span(set.pixels).subspan(i * bytes, bytes));
    }
  });
  return set;
}

}  // namespace numsim
