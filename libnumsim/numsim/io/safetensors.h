// Tensors in .safetensors files [safetensors].
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
  std::string dtype;                // as the file names it: "F32", "I64"
  std::optional<ElementType> type;  // none: numsim cannot read this dtype
  std::vector<size_t> shape;
};

// An open file. Its header is checked as a whole when it is opened; tensors are read on demand, by
// any number of threads. Readable: F64 F32 F16 BF16 F8_E4M3 F8_E5M2 U8 U16 U32.
class SafetensorsFile {
 public:
  // Throws Error naming the file and, where there is one, the tensor and field at fault: a header
  // that is above 100 MB (the reference's limit), goes beyond the file or is not the JSON it has to
  // be (repeated, missing and unknown keys, metadata that are not texts), a length that does not
  // fit dtype and shape, subnormal gaps or overlaps between tensors, bytes that belong to none.
  explicit SafetensorsFile(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;

  // In the order of their data in the file.
  const std::vector<TensorInfo>& Tensors() const;

  // The entries of __metadata__, in the order of the file.
  const std::vector<std::pair<std::string, std::string>>& Metadata() const;

  // Throws Error naming the tensor when there is none of that name, or naming its dtype when numsim
  // cannot read it. Allocates the tensor's size, which is known to lie within the file.
  Array Read(std::string_view name) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace numsim
