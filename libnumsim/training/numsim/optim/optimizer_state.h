// Writes and reads the state of an optimiser as named pieces of bytes.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/optim/optimizer.h"

namespace numsim {

template <typename T>
NamedBytes SaveValues(std::string name, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return {std::move(name), {bytes.begin(), bytes.end()}};
}

// Looks up pieces by name, and detects pieces that were never looked up.
class StateReader {
 public:
  // The pieces must outlive the reader.
  explicit StateReader(std::span<const NamedBytes> pieces);

  // Returns the bytes of the piece. Throws Error "optimiser state: 'NAME' is missing".
  std::span<const std::byte> Find(std::string_view name);

  // Fills `values`. Throws Error naming the piece if it is missing or has another length.
  template <typename T>
  void Read(std::string_view name, std::span<T> values) {
    const std::span<const std::byte> bytes = FindOfLength(name, values.size_bytes());
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  }

  // Throws Error naming the first piece that was not looked up.
  void CheckAllFound() const;

 private:
  std::span<const std::byte> FindOfLength(std::string_view name, size_t length);

  std::span<const NamedBytes> pieces_;
  std::vector<bool> found_;
};

}  // namespace numsim
