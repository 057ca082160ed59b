// Which bits of an implementation's random register serve which element.
#pragma once

#include <cstdint>

namespace numsim {

// A register of 32 random bits serves `elements` elements, numbered as the source operands of the
// instruction: 0 is the first. Element i takes the `bits` bits of the register from shift[i] up,
// in reversed order where reversed[i] is set.
struct RandomLayout {
  int8_t bits = 0;
  int8_t elements = 1;
  int8_t shift[4] = {0, 0, 0, 0};
  bool reversed[4] = {false, false, false, false};

  // R of that element: `bits` random bits in the low end. Requires element < elements.
  constexpr uint32_t Random(uint32_t word, int element) const noexcept {
    if (bits == 0) return 0;
    const uint32_t field = (word >> shift[element]) & (~uint32_t{0} >> (32 - bits));
    if (!reversed[element]) return field;
    uint32_t mirrored = 0;
    for (int i = 0; i < bits; ++i) mirrored |= ((field >> i) & 1) << (bits - 1 - i);
    return mirrored;
  }
};

}  // namespace numsim
