// How an optimiser's moment is stored, a second time.
//
// Codes are found by searching the list of all values of a format, powers by
// powl, the dynamic map by writing its construction down as its authors did. No
// header of the library is included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace oracle {

enum class MomentScaling { kNone, kTensor, kBlock, kCoat, kDynamic };

struct MomentRule {
  std::string format;  // of AllFormats(); anything under kDynamic
  MomentScaling scaling = MomentScaling::kNone;
  size_t block = 128;
  bool is_signed = true;
  int random_bits = 0;  // 0: to nearest
};

struct StoredMoment {
  std::vector<uint32_t> codes;
  std::vector<float> scales;  // one a tensor or block; kCoat: a and k of each block
  std::vector<float> values;  // what the codes are worth; kCoat: to within 1 ulp
};

// draws: the random word of each element, read where random_bits != 0.
StoredMoment StoreMoment(const MomentRule& rule,
                         std::span<const float> in,
                         std::span<const uint32_t> draws);

// The 256 values in ascending order.
std::vector<float> DynamicValues(bool is_signed);

}  // namespace oracle
