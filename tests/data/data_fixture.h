// For the tests of data: the bytes of idx files, made without the library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/gzip.h"
#include "tests/support/io_fixture.h"

namespace numsim {

inline std::string BigEndian(uint32_t word) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(word >> shift & 0xFF);
  return bytes;
}

inline std::string IdxHeader(const std::vector<uint32_t>& shape, char type = 0x08) {
  std::string bytes = {0, 0, type, static_cast<char>(shape.size())};
  for (const uint32_t extent : shape) bytes += BigEndian(extent);
  return bytes;
}

}  // namespace numsim
