// For the tests of captions: folders with images.
#pragma once

#include <string>
#include <vector>

#include "numsim/io/npy.h"
#include "tests/data/data_fixture.h"

namespace numsim {

class CaptionTest : public IoTest {
 protected:
  // Bytes 0, 1, 2, ... of that shape.
  void PutImages(std::string_view name, const std::vector<size_t>& shape) const {
    Array array{ElementType::kU8, shape, {}};
    array.bytes.resize(array.Elements());
    for (size_t i = 0; i < array.bytes.size(); ++i) array.bytes[i] = static_cast<std::byte>(i);
    WriteNpy(Path(name), array);
  }
};

}  // namespace numsim
