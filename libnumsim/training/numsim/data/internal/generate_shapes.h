// Generated images of coloured shapes with captions that describe them.
//
// An image shows either one object, "a small red circle", or two objects and their relative
// position: "a small red circle above a large blue square" or "... left of ...". Objects have one
// of 2 sizes, 8 colours and 6 forms. So there are 96 scenes of one object and 96 * 95 * 2 scenes of
// two different objects. A scene of two objects has two captions of the same meaning: "A above B"
// and "B below A" are one concept, and so are "left of" and "right of". Position, size, background
// brightness and colours vary from image to image, and some noise is added.
//
// Validation tests composition: valid_share of the scenes is reserved for validation. Their
// captions and images do not occur in training, but all words and all objects do.
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
  size_t size = 0;    // small, large
  size_t colour = 0;  // red, green, blue, yellow, purple, orange, white, black
  size_t form = 0;    // circle, square, triangle, diamond, cross, ring
};
inline constexpr size_t kShapeSizes = 2, kShapeColours = 8, kShapeForms = 6;
inline constexpr size_t kShapeObjects = kShapeSizes * kShapeColours * kShapeForms;
// Returns a description such as "small red circle".
std::string ToString(const ShapeObject& object);

// A scene of one or two objects. Of two, the first is above or left of the second.
struct ShapeScene {
  size_t objects = 1;  // 1 or 2
  std::array<ShapeObject, 2> object;
  bool above = false;  // true: above, false: left of
};
inline constexpr size_t kShapeScenes = kShapeObjects + kShapeObjects * (kShapeObjects - 1) * 2;
// Returns the scene with the given number. The number also identifies the concept; scenes of one
// object come first. Requires number < kShapeScenes.
ShapeScene SceneOf(size_t number);
// Returns the caption of a scene. With `reversed`, the caption of a scene of two objects begins
// with the second object.
std::string Caption(const ShapeScene& scene, bool reversed);

// Generates sets of images with captions.
class ShapeWorld {
 public:
  // Sets up images of `side` x `side` pixels with 3 channels. Requires kLeastShapeImage <= side <=
  // kMostShapeImage and 0 < valid_share < 1.
  ShapeWorld(uint64_t seed, size_t side, double valid_share);

  // Returns images 0 .. count-1 of the training or the validation set. On average one image in
  // eight shows a single object. Image i depends neither on `count` nor on the number of threads.
  CaptionSet Generate(bool valid, size_t count) const;

 private:
  size_t DrawScene(bool valid, DrawStream& draws) const;

  uint64_t seed_;
  size_t side_;
  // The seed decides the order of the scenes of one object and of those of two. In each order the
  // training scenes come first; these are their numbers.
  size_t train_singles_, train_pairs_;
};

// Writes side x side x 3 pixels. Objects lie wholly within the image and do not overlap. Of two
// objects, the distance between the centres in the direction that the scene names is more than
// twice the distance in the other direction. Uses only float64 arithmetic in a fixed order and
// square roots, so the bytes are the same on every platform.
void DrawScene(const ShapeScene& scene, size_t side, DrawStream& draws, std::span<uint8_t> pixels);

}  // namespace numsim
