// Shapes read from files: sizes that cannot overflow, and their text.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace numsim {

// Returns the number of elements of `shape` (1 for a scalar), or nullopt when elements times
// `element_bits` does not fit into 63 bits. Zero extents are left out of that test, so that every
// partial product of an accepted shape fits too.
std::optional<size_t> CheckedElements(std::span<const size_t> shape, size_t element_bits);

// Returns "(2, 3)", "(5,)" or "()", as NumPy writes shapes.
std::string ShapeText(std::span<const size_t> shape);

}  // namespace numsim
