// Generated images of coloured shapes with captions that say what they show.
//
// An image shows one object, "a small red circle", or two and how they lie to each other: "a small
// red circle above a large blue square", "... left of ...". Objects are of 2 sizes, 8 colours and 6
// shapes, so there are 96 scenes of one object and 96 * 95 * 2 of two that differ. A scene of two
// has two captions: "A above B" and "B below A" are one concept, and so are "left of" and "right
// of". Place, size, brightness of background and colours vary from image to image, and there is
// some noise.
//
// Scenes are composed: valid_share of them is kept for validation, so their captions and images do
// not occur in training, while all words and all objects do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "numsim/data/internal/caption_set.h"
#include "numsim/data/internal/draws.h"

namespace numsim {

inline constexpr size_t kLeastShapeImage = 16, kMostShapeImage = 64;

struct ShapeObject {
  size_t size = 0;    // small large
  size_t colour = 0;  // red green blue yellow purple orange white black
  size_t form = 0;    // circle square triangle diamond cross ring
};
inline constexpr size_t kShapeSizes = 2, kShapeColours = 8, kShapeForms = 6;
inline constexpr size_t kShapeObjects = kShapeSizes * kShapeColours * kShapeForms;
// "small red circle".
std::string ToString(const ShapeObject& object);

// `first` lies above or left of `second`.
struct ShapeScene {
  size_t objects = 1;  // 1 or 2
  std::array<ShapeObject, 2> object;
  bool above = false;  // or else left of
};
inline constexpr size_t kShapeScenes = kShapeObjects + kShapeObjects * (kShapeObjects - 1) * 2;
// The scene of that number, and so of that concept: those of one object come first. Requires number
// < kShapeScenes.
ShapeScene SceneOf(size_t number);
// `reversed`: the one that begins with the second object, of two.
std::string Caption(const ShapeScene& scene, bool reversed);

class ShapeWorld {
 public:
  // Images of `side` x `side` pixels and 3 channels. Requires kLeastShapeImage <= side <=
  // kMostShapeImage and 0 < valid_share < 1.
  ShapeWorld(uint64_t seed, size_t side, double valid_share);

  // Images 0 .. count-1 of training or validation: one in eight shows one object. The same whatever
  // the count and the number of threads.
  CaptionSet Generate(bool valid, size_t count) const;

 private:
  size_t DrawScene(bool valid, DrawStream& draws) const;

  uint64_t seed_;
  size_t side_;
  // Scenes of training come first, in an order that the seed decides: of one object and of two.
  size_t train_singles_, train_pairs_;
};

// Drawing of the scenes of generate_shapes.h.

// Writes side x side x 3 pixels. Objects lie wholly within the image and do not overlap; of two,
// the distance of their centres along the line that the scene names is more than twice the one
// across. Float64 in one order and square roots: the same bytes anywhere.
void DrawScene(const ShapeScene& scene, size_t side, DrawStream& draws, std::span<uint8_t> pixels);

}  // namespace numsim
