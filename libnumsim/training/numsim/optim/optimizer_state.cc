#include "numsim/optim/optimizer_state.h"

#include "numsim/base/error.h"

namespace numsim {

StateReader::StateReader(std::span<const NamedBytes> pieces)
    : pieces_(pieces), found_(pieces.size()) {}

std::span<const std::byte> StateReader::Find(std::string_view name) {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].name != name) continue;
    found_[i] = true;
    return pieces_[i].bytes;
  }
  throw Error::Format("optimiser state: '{}' is missing", name);
}

std::span<const std::byte> StateReader::FindOfLength(std::string_view name, size_t length) {
  const std::span<const std::byte> bytes = Find(name);
  if (bytes.size() != length) {
    throw Error::Format(
        "optimiser state: '{}' has {} bytes, expected {}", name, bytes.size(), length);
  }
  return bytes;
}

void StateReader::CheckAllFound() const {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (!found_[i]) throw Error::Format("optimiser state: '{}' is unknown", pieces_[i].name);
  }
}

}  // namespace numsim
