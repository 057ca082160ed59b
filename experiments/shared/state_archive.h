// Writes the variables of a measurement into bytes and reads them back to the same bits. One list of
// variables serves both: archive(losses, scale). Not for other builds: there are no names in it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/io/cell.h"

namespace numsim::experiments {

class StateArchive {
 public:
  // Writes.
  StateArchive() = default;
  // Reads these bytes.
  explicit StateArchive(std::string bytes) : reading_(true), bytes_(std::move(bytes)) {}

  // Write or read numbers, texts, vectors, maps, optional values, cells, and structs with a member
  // Keep(StateArchive&). Reading throws Error if the bytes end before.
  template <typename... T>
  void operator()(T&... values) {
    (Visit(values), ...);
  }
  const std::string& bytes() const { return bytes_; }
  // Throws Error unless everything has been read.
  void RequireEnd() const {
    if (at_ != bytes_.size()) throw Error("the saved state is longer than expected");
  }

 private:
  void Raw(void* value, size_t size) {
    if (!reading_) {
      bytes_.append(static_cast<const char*>(value), size);
      return;
    }
    if (bytes_.size() - at_ < size) throw Error("the saved state is shorter than expected");
    std::memcpy(value, bytes_.data() + at_, size);
    at_ += size;
  }
  // Writes or reads a number of elements, each of which has at least one byte.
  size_t Count(size_t count) {
    Raw(&count, sizeof count);
    if (reading_ && count > bytes_.size() - at_) {
      throw Error("the saved state is shorter than expected");
    }
    return count;
  }

  template <typename T>
  requires std::is_arithmetic_v<T>
  void Visit(T& value) { Raw(&value, sizeof value); }
  template <typename T>
  requires requires(T& value, StateArchive& archive) { value.Keep(archive); }
  void Visit(T& value) { value.Keep(*this); }
  void Visit(std::string& text) {
    text.resize(Count(text.size()));
    if (!text.empty()) Raw(text.data(), text.size());
  }
  // A cell that was a number comes back as its text, which stands for the same number.
  void Visit(Cell& cell) {
    std::string text = cell.Text();
    Visit(text);
    if (reading_) cell = Cell(std::move(text));
  }
  template <typename T>
  void Visit(std::vector<T>& values) {
    values.resize(Count(values.size()));
    if constexpr (std::is_arithmetic_v<T>) {
      if (!values.empty()) Raw(values.data(), values.size() * sizeof(T));
    } else {
      for (T& value : values) Visit(value);
    }
  }
  template <typename T>
  void Visit(std::optional<T>& value) {
    bool has = value.has_value();
    Visit(has);
    if (reading_) value = has ? std::optional<T>(std::in_place) : std::nullopt;
    if (has) Visit(*value);
  }
  template <typename K, typename V, typename Less>
  void Visit(std::map<K, V, Less>& values) {
    const size_t count = Count(values.size());
    if (!reading_) {
      for (auto& [key, value] : values) {
        K copy = key;
        Visit(copy);
        Visit(value);
      }
      return;
    }
    values.clear();
    for (size_t i = 0; i < count; ++i) {
      K key{};
      Visit(key);
      Visit(values[std::move(key)]);
    }
  }

  bool reading_ = false;
  std::string bytes_;
  size_t at_ = 0;  // of the next byte to read
};

}  // namespace numsim::experiments
