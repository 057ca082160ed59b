#include <algorithm>
#include <array>
#include <cmath>

#include "numsim/base/error.h"
#include "numsim/data/internal/generate_shapes.h"

namespace numsim {
namespace {

using Colour = std::array<double, 3>;

constexpr Colour kColours[kShapeColours] = {{225, 40, 40},
                                            {40, 180, 60},
                                            {50, 80, 230},
                                            {240, 220, 50},
                                            {150, 50, 190},
                                            {245, 140, 30},
                                            {245, 245, 245},
                                            {15, 15, 15}};
constexpr double kColourJitter = 12;  // grey levels, in either direction
constexpr double kNoise = 6;          // grey levels, in either direction
// Range of grey levels of the background, away from white and black.
constexpr double kLeastGrey = 90, kMostGrey = 165;

// Radii as fractions of the side length: the mean per size, and the variation in either direction.
constexpr double kRadius[kShapeSizes] = {0.115, 0.205};
constexpr double kRadiusJitter = 0.015;
constexpr double kGap = 0.03;     // minimum gap between two objects
constexpr double kAcross = 0.05;  // maximum offset of each of two objects from the middle line

struct Placed {
  ShapeObject object;
  double radius = 0, x = 0, y = 0;  // pixels
  Colour colour{};
};

// Returns approximately the distance, in pixels, from (x, y) to the edge of the form of radius r;
// positive inside the form, negative outside.
double Inside(size_t form, double x, double y, double r) {
  const double ax = std::abs(x), ay = std::abs(y);
  const double distance = std::sqrt(x * x + y * y);
  switch (form) {
    case 0:  // circle
      return r - distance;
    case 1:  // square
      return 0.88 * r - std::max(ax, ay);
    case 2:  // triangle pointing upwards
      return std::min(0.8 * r - y, (r + y - 1.9 * ax) / 2.147);
    case 3:  // diamond
      return (r - ax - ay) * 0.7071067811865476;
    case 4:  // cross
      return std::max(std::min(r - ax, 0.32 * r - ay), std::min(0.32 * r - ax, r - ay));
    case 5:  // ring
      return 0.22 * r - std::abs(distance - 0.78 * r);
    default:
      NUMSIM_CHECK(false, "form {}", form);
      return 0;
  }
}

// Returns a random value in (-limit, limit).
double Jitter(double limit, DrawStream& draws) { return (2 * draws.Unit() - 1) * limit; }

Placed DrawObject(const ShapeObject& object, double side, DrawStream& draws) {
  Placed placed;
  placed.object = object;
  placed.radius = (kRadius[object.size] + Jitter(kRadiusJitter, draws)) * side;
  for (size_t c = 0; c < 3; ++c) {
    placed.colour[c] = kColours[object.colour][c] + Jitter(kColourJitter, draws);
  }
  return placed;
}

void PlaceOne(Placed& one, double side, DrawStream& draws) {
  one.x = one.radius + draws.Unit() * (side - 2 * one.radius);
  one.y = one.radius + draws.Unit() * (side - 2 * one.radius);
}

// Places the first object above the second, or left of it if `above` is false.
void PlaceTwo(Placed& first, Placed& second, bool above, double side, DrawStream& draws) {
  const double gap = kGap * side;
  const double spare = side - gap - 2 * (first.radius + second.radius);
  const double before = draws.Unit() * spare;
  const double between = draws.Unit() * (spare - before);
  const double along_first = before + first.radius;
  const double along_second = along_first + first.radius + gap + between + second.radius;
  const double middle = side / 2 + Jitter(0.15 * side, draws);
  const double across_first = middle + Jitter(kAcross * side, draws);
  const double across_second = middle + Jitter(kAcross * side, draws);
  const auto within = [side](double across, double radius) {
    return std::clamp(across, radius, side - radius);
  };
  (above ? first.y : first.x) = along_first;
  (above ? second.y : second.x) = along_second;
  (above ? first.x : first.y) = within(across_first, first.radius);
  (above ? second.x : second.y) = within(across_second, second.radius);
}

// Mixes the object's colour into that of the pixel with centre (x, y), weighted by the fraction of
// the pixel that the object covers.
void Paint(const Placed& placed, double x, double y, Colour& colour) {
  const double dx = x - placed.x, dy = y - placed.y;
  if (std::abs(dx) > placed.radius + 1 || std::abs(dy) > placed.radius + 1) return;
  const double cover =
      std::clamp(0.5 + Inside(placed.object.form, dx, dy, placed.radius), 0.0, 1.0);
  for (size_t c = 0; c < 3; ++c) colour[c] += cover * (placed.colour[c] - colour[c]);
}

}  // namespace

void DrawScene(const ShapeScene& scene, size_t side, DrawStream& draws, std::span<uint8_t> pixels) {
  NUMSIM_CHECK(pixels.size() == side * side * 3, "{} bytes", pixels.size());
  const auto extent = static_cast<double>(side);
  const double grey = kLeastGrey + draws.Unit() * (kMostGrey - kLeastGrey);
  std::array<Placed, 2> placed;
  for (size_t k = 0; k < scene.objects; ++k) {
    placed[k] = DrawObject(scene.object[k], extent, draws);
  }
  if (scene.objects == 1) {
    PlaceOne(placed[0], extent, draws);
  } else {
    PlaceTwo(placed[0], placed[1], scene.above, extent, draws);
  }
  for (size_t row = 0, i = 0; row < side; ++row) {
    for (size_t col = 0; col < side; ++col, i += 3) {
      Colour colour = {grey, grey, grey};
      for (size_t k = 0; k < scene.objects; ++k) {
        Paint(placed[k], static_cast<double>(col) + 0.5, static_cast<double>(row) + 0.5, colour);
      }
      const uint32_t noise = draws.Word();  // 10 bits for each of the three channels
      for (size_t c = 0; c < 3; ++c) {
        const auto steps = static_cast<double>(static_cast<int32_t>(noise >> 10 * c & 0x3FF) - 512);
        const double level = std::clamp(colour[c] + steps * (kNoise / 512), 0.0, 255.0);
        pixels[i + c] = static_cast<uint8_t>(static_cast<int32_t>(level + 0.5));
      }
    }
  }
}

}  // namespace numsim
