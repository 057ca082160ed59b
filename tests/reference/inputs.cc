#include "tests/reference/inputs.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace oracle {

std::vector<int64_t> Positions(const Grid& grid, int64_t stride) {
  std::vector<int64_t> positions;
  for (int64_t p = 0; p <= grid.end(true); p += stride) positions.push_back(p);
  if (stride > 1) {
    const int64_t binade_size = int64_t{1} << grid.format().mantissa_bits;
    for (int64_t begin = 0; begin <= grid.end(true); begin += binade_size) {
      for (int64_t p = begin - 2; p <= begin + 2; ++p) positions.push_back(p);
    }
    for (int64_t p = grid.end(true) - 3; p <= grid.end(true); ++p) positions.push_back(p);
  }
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  std::erase_if(positions, [&](int64_t p) { return p < 0 || p > grid.end(true); });
  return positions;
}

std::vector<double> Landmarks(const Grid& grid, int64_t stride) {
  std::vector<double> points;
  if (!grid.format().has_zero) {
    for (double part : {0.0, 0.25, 0.5, 0.75}) points.push_back(part * grid.Value(0));
  }
  for (int64_t p : Positions(grid, stride)) {
    const double low = grid.Value(p);
    const double gap = p < grid.end(true) ? grid.Value(p + 1) - low : low;
    for (double part : {0.0, 0.25, 0.5, 0.75}) points.push_back(low + part * gap);
  }
  return points;
}

std::array<uint32_t, 7> NearF32(double x) {
  const auto center = static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(x)));
  std::array<uint32_t, 7> near;
  for (int k = 0; k < 7; ++k) {
    near[k] = static_cast<uint32_t>(std::max<int64_t>(center + k - 3, 0));
  }
  return near;
}

std::array<uint64_t, 11> NearF64(double x) {
  const auto center = std::bit_cast<int64_t>(x);
  constexpr std::array<int64_t, 11> kOffsets = {-(int64_t{1} << 29),
                                                -(int64_t{1} << 28),
                                                -(int64_t{1} << 20),
                                                -2,
                                                -1,
                                                0,
                                                1,
                                                2,
                                                int64_t{1} << 20,
                                                int64_t{1} << 28,
                                                int64_t{1} << 29};
  std::array<uint64_t, 11> near;
  for (int k = 0; k < 11; ++k) {
    near[k] = static_cast<uint64_t>(std::max<int64_t>(center + kOffsets[k], 0));
  }
  return near;
}

std::vector<uint32_t> SpecialF32() {
  std::vector<uint32_t> all = {0,
                               1,
                               2,
                               3,
                               0x00555555,
                               0x007FFFFE,
                               0x007FFFFF,
                               0x00400000,
                               0x00400001,
                               0x7F7FFFFF,
                               0x7F800000,
                               0x7F800001,
                               0x7FC00000,
                               0x7FC12345,
                               0x7FFFFFFF,
                               0x7FBFFFFF};
  for (uint32_t field = 0; field < 255; ++field) {
    for (uint32_t fraction : {0x000000u, 0x000001u, 0x2AAAAAu, 0x400000u, 0x7FFFFFu}) {
      all.push_back(field << 23 | fraction);
    }
  }
  for (int bit = 0; bit < 23; ++bit) all.push_back(uint32_t{1} << bit);
  return all;
}

std::vector<uint64_t> SpecialF64() {
  std::vector<uint64_t> all = {0,
                               1,
                               2,
                               0x0005555555555555,
                               0x000FFFFFFFFFFFFF,
                               0x7FEFFFFFFFFFFFFF,
                               0x7FF0000000000000,
                               0x7FF0000000000001,  // NaN whose payload a float32 cannot hold
                               0x7FF8000000000000,
                               0x7FFFFFFFFFFFFFFF,
                               0x7FF7FFFFFFFFFFFF,
                               0x47EFFFFFE0000000,   // largest float32
                               0x47EFFFFFEFFFFFFF,   // rounds to it
                               0x47EFFFFFF0000000,   // rounds to 2^128
                               0x47F0000000000000};  // 2^128
  for (uint64_t field = 0; field < 2047; ++field) {
    for (uint64_t fraction : {uint64_t{0}, uint64_t{1}, uint64_t{0xAAAAAAAAAAAAA}}) {
      all.push_back(field << 52 | fraction);
    }
  }
  for (int bit = 0; bit < 52; ++bit) all.push_back(uint64_t{1} << bit);
  return all;
}

uint64_t TestRandom::Next() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

}  // namespace oracle
