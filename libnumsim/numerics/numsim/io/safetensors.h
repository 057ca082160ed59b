// Reads tensors from .safetensors files [safetensors].
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/io/array.h"

namespace numsim {

struct TensorInfo {
  std::string name;
  std::string dtype;                // as named in the file, e.g. "F32", "I64"
  std::optional<ElementType> type;  // nullopt: numsim cannot read this dtype
  std::vector<size_t> shape;
};

// An open .safetensors file. The whole header is checked on opening; tensors are read on demand, by
// any number of threads. Every dtype of the format is read except C64 and those that are not known.
class SafetensorsFile {
 public:
  // Throws Error naming the file and, if applicable, the tensor and field at fault. Rejects a
  // header that exceeds 100 MB (the reference implementation's limit) or the file, or that is not
  // the required JSON (repeated, missing or unknown keys, metadata that are not strings); a length
  // that does not match dtype and shape; gaps or overlaps between tensors; and bytes that belong to
  // no tensor.
  explicit SafetensorsFile(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;

  // The tensors in the order of their data in the file.
  const std::vector<TensorInfo>& Tensors() const;

  // The entries of __metadata__, in the order of the file.
  const std::vector<std::pair<std::string, std::string>>& Metadata() const;

  // Reads a tensor. Throws Error naming the tensor if there is none of that name, or naming its
  // dtype if numsim cannot read it. Allocates the tensor's size, which was checked against the
  // file's size. The codes of F4, F6_E2M3 and F6_E3M2, which a file packs (the first in the lowest
  // bits), get one byte each.
  Array Read(std::string_view name) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace numsim
