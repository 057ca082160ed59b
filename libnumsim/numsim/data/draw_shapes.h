// Drawing of the scenes of generate_shapes.h.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/data/draws.h"
#include "numsim/data/generate_shapes.h"

namespace numsim {

// Writes side x side x 3 pixels. Objects lie wholly within the image and do not overlap; of two,
// the distance of their centres along the line that the scene names is more than twice the one
// across. Float64 in one order and square roots: the same bytes anywhere.
void DrawScene(const ShapeScene& scene, size_t side, DrawStream& draws, std::span<uint8_t> pixels);

}  // namespace numsim
